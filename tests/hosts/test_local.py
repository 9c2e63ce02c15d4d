"""The in-process host: fed by hand, with whatever people have."""

from datetime import UTC, date, datetime

import polars as pl
import pytest

import windrow as wr
from windrow.testing import accounted
from windrow.testing.replay import latest

DAY = {"d": pl.Date(), "x": pl.Int64()}


def query(**options):
    empty = pl.DataFrame(schema=DAY)
    return wr.stream(empty, progress="d", name="s", **options).window(range="2 days", slide="1 day").agg(n=wr.count())


def test_rows_and_promises_in_results_out():
    run = query().run()
    run.push("s", [{"d": date(2024, 1, 1), "x": 1}, {"d": "broken", "x": 2}])
    assert run.results().height == 0
    run.promise("s", date(2024, 1, 2))
    assert run.results().rows() == [(date(2023, 12, 31), date(2024, 1, 2), 1)]
    counts = {
        "rows_joined": 0,
        "rows_freed": 0,
        "rows_shed": 0,
        "pairs_near": 0,
        "pairs_missed": 0,
        "rows_in": 2,
        "rows_bad": 1,
        "rows_late": 0,
        "rows_revised": 0,
        "rows_out": 1,
        "files_bad": 0,
        "rows_lost": 0,
    }
    assert run.counts == {**counts, "promises_ignored": 0, "promises_unmatched": 0}
    assert run.bad_rows()["reason"].to_list() == ["the progress value cannot be parsed"]
    assert run.state_bytes() > 0
    run.end()
    assert run.results().rows() == [(date(2024, 1, 1), date(2024, 1, 3), 1)]
    assert run.state_bytes() <= 64  # the promise of the source


def test_an_unknown_source_is_refused_not_ignored():
    run = query().run()
    for call in (lambda: run.push("t", []), lambda: run.promise("t", 1)):
        with pytest.raises(wr.QueryError, match="no source 't'; available: s"):
            call()


def test_a_promise_of_another_type_is_refused():
    with pytest.raises(wr.QueryError, match="does not fit"):
        query().run().promise("s", "soon")


def test_markers_are_promises_also_where_a_batch_has_none():
    rows = [{"t": 1, "p": None}, {"t": 2, "p": None}]
    stream = wr.stream(rows, progress="t", punctuation="p", name="s")
    run = stream.window(range=5).agg(n=wr.count()).run()
    run.push("s", pl.DataFrame(rows))
    run.push("s", pl.DataFrame([{"t": None, "p": 5}]))
    assert run.results().rows() == [(0, 5, 2)]


@pytest.mark.parametrize("origin", [datetime(2024, 1, 1, 6), datetime(2024, 1, 1, 6, tzinfo=UTC), "2024-01-01 06:00"])
def test_windows_end_at_the_origin(origin):
    rows = [{"t": datetime(2024, 3, 5, 12), "k": 1}]
    windowed = wr.stream(rows, progress="t").window(range="1 day", origin=origin)
    assert windowed.agg(n=wr.count()).collect()["window_end"].to_list() == [datetime(2024, 3, 6, 6)]


@pytest.mark.parametrize("generous", [False, True])
@pytest.mark.parametrize("policy", ["drop", "side", "revise"])
def test_good_late_and_bad_rows_add_up_under_each_policy(policy, generous):
    """Tumbling windows count each good row once: what was read is in a result, late, or bad."""
    s = wr.stream(pl.DataFrame(schema={"t": pl.Int64}), progress="t", slack=5, name="s")
    keep = 70 if policy == "revise" else None
    query = s.window(10).late(policy, generous=generous, keep=keep).agg(n=wr.count())
    run, released = query.run(), []
    for batch in ([1, 12, None], [3, 40, 7], [2, 33, 35, None], [36, 90, 61], [22, 88, 5]):
        run.push("s", pl.DataFrame({"t": batch}, schema={"t": pl.Int64}))
        released.append(run.results())
    released.append(run.end().results())
    last = latest(pl.concat(released), query)
    accounted(run.counts, last)
    counted = last["n"].sum()
    dropped = run.late_rows()["rows"].sum()
    assert run.counts["rows_in"] == 16 == counted + dropped + run.counts["rows_bad"]
    assert run.counts["rows_late"] == dropped + run.counts["rows_revised"] > 0
    assert (run.counts["rows_revised"] > 0) == (policy == "revise")
    assert run.counts["rows_bad"] == 2


def counting(size, using=None):
    empty = pl.DataFrame(schema={"t": pl.Int64, "k": pl.String})
    return (
        wr.stream(empty, progress="t", name="s").window(range=size, using=using).group_by("k").agg(n=wr.count()).run()
    )


def test_a_snapshot_goes_on_where_it_was_taken():
    first = counting(5)
    first.push("s", [{"t": 1, "k": "a"}, {"t": 2, "k": "a"}])
    second = counting(5).restore(first.snapshot())
    second.push("s", [{"t": 3, "k": "a"}]).promise("s", 5)
    assert second.results()["n"].to_list() == [3]


@pytest.mark.parametrize(
    ("other", "reason"),
    [
        (lambda: counting(6), "query: .*RANGE 5.* in the snapshot, .*RANGE 6.* now"),
        (lambda: counting(5, using="wid"), "algorithms: paned in the snapshot, wid now"),
    ],
)
def test_a_snapshot_of_another_query_is_refused_with_what_differs(other, reason):
    with pytest.raises(wr.CheckpointError, match=f"(?s){reason}"):
        other().restore(counting(5, using="paned").snapshot())


def test_a_snapshot_that_does_not_say_what_it_is_of_is_refused():
    state = {k: v for k, v in counting(5).snapshot().items() if not k.startswith("@")}
    with pytest.raises(wr.CheckpointError, match=r"before 0\.3"):
        counting(5).restore(state)
