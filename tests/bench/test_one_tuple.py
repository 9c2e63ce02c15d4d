"""one-tuple: both ways to give a tuple have the same results, and the claims fail where they should."""

import polars as pl

from windrow.bench.one_tuple import MOST, SOURCES, WARM, claims, figures_of, generate, query, streams, timed


def test_frames_and_dicts_release_the_same():
    rows = generate(WARM + 300)
    assert {source for source, _ in rows} == set(SOURCES)
    frames = timed(query(*streams()), [(source, pl.DataFrame([row])) for source, row in rows])
    dicts = timed(query(*streams()), [(source, [row]) for source, row in rows])
    assert len(frames) == 300
    assert [released for _, released in frames] == [released for _, released in dicts]
    assert any(released for _, released in frames)


def test_the_run_with_the_least_median_counts():
    fast, slow = [(1.0, 0), (2.0, 0), (9.0, 3)], [(5.0, 0), (6.0, 0), (7.0, 3)]
    figures = figures_of({"frame": [slow, fast], "dict": [slow]})
    assert figures["us_median"] == figures["us_median_frame"] == 2.0
    assert figures["us_median_frame_released"] == 9.0
    assert figures["us_median_dict"] == 6.0


def test_the_claims_fail_beyond_the_limit():
    assert all(claims({"us_median": MOST, "us_median_dict": MOST}).values())
    assert not any(claims({"us_median": MOST + 1, "us_median_dict": MOST + 1}).values())
