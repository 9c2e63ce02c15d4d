"""Claims whose workload was chosen after the figures were seen: each has a curve of what other workloads give."""

import pytest

from windrow.bench import adaptwid, agg_skew, skew, slide_by_tuple, wid_vs_buffering
from windrow.bench.adaptwid import ALGORITHMS, SLIDING, SMALL, arrivals, measured, relative
from windrow.bench.drive import Cost
from windrow.bench.experiment import AFTERWARDS
from windrow.sources.links import Link


def test_slide_by_tuple_measures_three_sizes_of_a_batch():
    cost = {"blocks": 2.0, "bins": 3.0, "buffering": 1.0}
    names = [case.name for case in slide_by_tuple.SIZES]
    assert len(names) == 6
    figures = {f"us_per_tuple_{u}_{slide_by_tuple.RANGES[-1]}": c for u, c in cost.items()}
    figures |= {name: cost[name.split("_")[3]] for name in names}
    curves = slide_by_tuple._curves(figures)
    assert all(AFTERWARDS in claim for claim in curves)
    bins, buffering = (list(curves[slide_by_tuple.BELOW[u]].values()) for u in ("bins", "buffering"))
    assert (bins, buffering) == ([1.5] * 3, [0.5] * 3)
    assert list(curves[slide_by_tuple.TWICE].values()) == [2.0] * 3


def test_a_case_is_pushed_in_batches_of_its_size(monkeypatch):
    pushed = []
    made = slide_by_tuple.query

    def recorded(case, data):
        running = made(case, data).run()
        push = running.push
        monkeypatch.setattr(running, "push", lambda name, rows: pushed.append(rows.height) or push(name, rows))
        return type("Query", (), {"run": lambda self: running})()

    monkeypatch.setattr(slide_by_tuple, "query", recorded)
    slide_by_tuple.spent(slide_by_tuple.Case("blocks", 100, batch=300), 600)
    assert pushed == [300, 300, 300]


def test_wid_vs_buffering_gives_both_sizes_of_a_batch():
    slides = (4000, 1)
    batches = wid_vs_buffering.BATCHES
    found = {(algorithm, s, b): 1.0 for algorithm in wid_vs_buffering.ALGORITHMS for s in slides for b in batches}
    outcome = wid_vs_buffering._outcome({**found, ("scan", 4000, 4000): 0.1}, slides, True)
    assert list(outcome.curves) == [wid_vs_buffering.NEVER, wid_vs_buffering.GROWS]
    for claim, curve in outcome.curves.items():
        assert AFTERWARDS in claim
        assert claim in outcome.holds
        assert len(curve) == len(slides) * len(batches)


def test_skew_gives_how_flat_it_is_at_other_disorders():
    def links(band):
        return {name: skew.feed(Link(name, 1, band=band), 130) for name in ("M1", "M2", "C")}

    curves = skew.by_band(agg_skew.QUERY, links, "C", (0, 4), known=1.1)
    (claim,) = curves
    assert claim in skew.claims({f"bytes_{p}_{s}": 1 for p in skew.PLANS for s in (0, 4)}, (0, 4), True)
    assert list(curves[claim]) == [f"disorder of {b:g} s" for b in (*skew.BANDS, skew.BAND)]
    assert all(value >= 1 for value in curves[claim].values())


def test_the_ways_of_adaptwid_take_turns_and_the_least_time_counts(monkeypatch):
    """Issue 11: all runs of one algorithm came before the first of the next."""
    ran, seconds = [], iter([5.0, 4.0, 3.0, 2.0, 1.0, 9.0, 9.0, 9.0, *[7.0] * 4])

    def drive(feed, operator, steps, sizes=False):
        ran.append(type(operator).__name__)
        return Cost(next(seconds), [1.0], 10 if sizes else 0, 1)

    monkeypatch.setattr(adaptwid, "drive", drive)
    found = measured(SLIDING[0], [], 3)
    names = ["Wid", "Buffering", "AdaptWid", "AdaptPaned"]
    assert ran == [*names, *names[::-1], *names]
    assert [found[algorithm].seconds for algorithm in ALGORITHMS] == [5.0, 4.0, 3.0, 1.0]
    assert all(cost.bytes == 10 for cost in found.values())


@pytest.mark.parametrize("algorithm", ["eager", "adapt"])
def test_repeated_runs_of_adaptwid_keep_memory_and_results(algorithm):
    steps = arrivals(SLIDING[0], SMALL["DS3"], 500, 1)
    once, twice = (measured(SLIDING[0], steps, runs)[algorithm] for runs in (1, 2))
    assert (once.bytes, once.results) == (twice.bytes, twice.results)
    assert relative(SLIDING[0], 500, 1) > 0


def test_claims_of_adaptwid_follow_from_the_figures():
    places = [(q.name, name) for q in SLIDING[:1] for name in SMALL]
    costs = {"eager": (2.0, 1.0), "lazy": (1.0, 2.0), "adapt": (2.0, 5.0), "adaptpaned": (3.0, 3.0)}
    found = {(*p, algorithm): Cost(s, [latency], 100, 1) for p in places for algorithm, (s, latency) in costs.items()}
    assert all(adaptwid._claims(found, 1000).values())
    assert adaptwid._figures(found)["seconds_adapt_over_eager"] == 1
    slower = {place: Cost(2.1, [5.1], 100, 1) if place[2] == "adapt" else cost for place, cost in found.items()}
    failed = [claim for claim, holds in adaptwid._claims(slower, 1000).items() if not holds]
    assert failed == [adaptwid.no_slower(1000), adaptwid.SLOWER_PROMISES]
    assert all(AFTERWARDS in claim for claim in failed)
