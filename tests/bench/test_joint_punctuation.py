"""joint-punctuation: what is measured, and that a claim fails where it should."""

import pytest

from windrow.bench.joint_punctuation import BAND, BANDS, LAGS, PROMISES, arrivals, asked, claims, packets, released

MINUTES = 9


def measured(lag):
    links = packets(20, BAND, MINUTES)
    return {name: released(asked(name, links, BAND), links, lag, MINUTES) for name in PROMISES}


@pytest.mark.parametrize("lag", [-2, 0])
def test_a_group_comes_out_when_the_promises_say_so(lag):
    found = measured(lag)
    late = [max(0, -lag), max(0, lag) + 0.5]  # when each link sends its punctuation

    def when(left, right):
        """Both links have promised more than these minutes."""
        return max(left + 1 + late[0], right + 1 + late[1])

    assert len(found["joint"]) > MINUTES
    for a, b in found["joint"]:
        assert found["joint"][a, b] == when(a, b)
        expected = {"left": when(a, a + BAND), "right": when(b + BAND, b), "later": when(max(a, b), max(a, b))}
        for name, at in expected.items():
            assert found[name].get((a, b), at) == at


def test_links_send_each_minute_when_it_is_over():
    assert list(arrivals(0, 2)) == [(1, "S0", 0), (1.5, "S1", 0), (2, "S0", 1), (2.5, "S1", 1)]
    assert list(arrivals(-2, 1)) == [(1.5, "S1", 0), (3, "S0", 0)]


def test_claims_fail_where_the_figures_say_otherwise():
    delays = {"joint": 1.0, "left": 2.0, "right": 2.0, "later": 1.5}
    figures = {f"mean_{name}_lag_{lag}": delay for name, delay in delays.items() for lag in LAGS}
    figures |= {f"mean_{name}_band_{band}": delay for name, delay in delays.items() for band in BANDS}
    figures |= {f"mean_left_band_{band}": float(band) for band in BANDS} | {f"groups_lag_{lag}": 1.0 for lag in LAGS}
    assert all(claims(figures, same=True, later=False).values())
    assert [*claims(figures, same=False, later=True).values()] == [False, True, True, True, False]
    assert not all(claims({**figures, "mean_joint_lag_0": 9.0}, same=True, later=False).values())
    assert not all(claims({**figures, "mean_joint_band_4": 9.0}, same=True, later=False).values())
