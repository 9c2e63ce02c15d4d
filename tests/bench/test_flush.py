"""The parts of flush that decide: arrivals, what fits into the ring, and the claims."""

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st
from matplotlib.figure import Figure

from windrow.bench import flush

CHECK = settings(deadline=None, derandomize=True, max_examples=60)
TIMES = st.lists(st.floats(5e-5, 0.01), min_size=1, max_size=12)


def overflows(times, ring, rate):
    """Chunk by chunk, as it happens."""
    clock = 0.0
    for i, each in enumerate([*times, *times]):
        clock = max(clock, (i + 1) * flush.CHUNK / rate) + each
        if clock * rate - i * flush.CHUNK > ring + 1e-6:
            return True
    return False


@CHECK
@given(times=TIMES, ring=st.sampled_from([500, 1000, 5000]), rate=st.sampled_from([5e4, 1e5, 1e6]))
def test_what_fits_is_what_a_simulation_says(times, ring, rate):
    assert flush.fits(np.array(times), ring, rate) == (not overflows(times, ring, rate))


@CHECK
@given(times=TIMES, ring=st.sampled_from([1000, 5000]))
def test_the_rate_sustained_is_the_greatest_of_its_steps(times, ring):
    rate = flush.sustained(np.array(times), ring)
    assert rate == 0 or flush.fits(np.array(times), ring, rate)
    assert rate + flush.STEP >= flush.FASTEST or not flush.fits(np.array(times), ring, rate + flush.STEP)
    assert rate == 0 or 0 < flush.busy(np.array(times), rate) <= 1


def test_every_window_has_the_same_tuples_in_another_order():
    tuples, order = flush.arrivals(1000, 3)
    assert len(tuples) == 8000
    assert len(np.unique(tuples[:, 1:3], axis=0)) > 990
    assert all(sorted(each) == list(range(16)) for each in order.tolist())
    assert order[0].tolist() != order[1].tolist()


def test_all_variants_count_every_tuple(monkeypatch):
    monkeypatch.setitem(flush.GROUPS, "66k", 1000)
    for variant, policy in flush.VARIANTS.items():
        assert len(flush.service(flush.Case(variant, "66k", "2"), 2, 1)) == 2 * 16
        tuples, order = flush.arrivals(1000, 3)
        entries = flush.Entries(500, 3, [0], 1, policy)
        left = []
        for window, chunks in enumerate(order):
            tuples[:, 0] = window
            left += [entries.put(tuples[c * flush.CHUNK : (c + 1) * flush.CHUNK]).copy() for c in chunks]
        out = np.concatenate([*left, entries.all()])
        assert [out[out[:, 0] == w, 4].sum() for w in range(3)] == [8000] * 3
        assert variant != "iop" or (np.diff(out[:, 0]) >= 0).all()


def test_claims_follow_from_the_figures():
    good = {
        "oop_over_iop_260k": 1.5,
        "spread_iop": 2.0,
        "spread_oop": 1.9,
        "spread_oop_sf": 1.9,
        "tuples_per_s_260k": 5e6,
    }
    assert all(flush.claims(good).values())
    bad = {"oop_over_iop_260k": 1.4, "spread_oop_sf": 2.0, "tuples_per_s_260k": 4.9e6}
    for name, value in bad.items():
        assert sum(flush.claims({**good, name: value}).values()) == 2


def test_the_claim_says_that_its_ring_was_chosen_and_the_plot_shows_all_rings():
    """Issue 11."""
    assert "(a ring of 32,768 tuples: chosen after seeing the figures)" in flush.MORE
    groups = ("66k", "260k")
    figures = {f"rate_{flush.Case(v, g, f)}": 1.0 for v in flush.VARIANTS for g in groups for f in flush.FACTORS}
    figures |= {f"rate_{v}_260k_2_ring_{ring}": 1.0 for v in flush.VARIANTS for ring in flush.RINGS}
    figures |= {f"oop_over_iop_260k_ring_{ring}": float(ring) for ring in flush.RINGS} | {"oop_over_iop_260k": 1.0}
    figure = Figure()
    flush._plot(figure, figures, groups)
    ratios = figure.axes[-1].lines[0]
    assert list(ratios.get_ydata()) == [float(ring) for ring in flush.RINGS]
