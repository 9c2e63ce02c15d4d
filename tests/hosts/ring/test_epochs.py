"""Epochs of a ring that runs without end: whatever fails where, results are seen once, as those of a finite run."""

import os
import random
from dataclasses import replace

import polars as pl
import pytest
from rings import SLACK, Script, put, query, run, shown

import windrow as wr
from windrow.errors import CheckpointError, PlanError
from windrow.hosts.ring.links import LostError
from windrow.hosts.ring.results import Sink
from windrow.hosts.ring.store import Store

FILES = 6
LAST = 1000  # a time after which nothing is near: what came before is complete


class CrashError(Exception):
    """What a test lets happen."""


def rows_of(seed=1):
    """For each file the rows of both streams, as much out of order as the slack allows."""
    rng = random.Random(seed)
    found = []
    for number in range(FILES):
        both = []
        for _stream in "ab":
            times = [number * 10 + rng.randrange(10 + SLACK) for _ in range(12)]
            both.append([(t, rng.randrange(100)) for t in times])
        found.append(both)
    return [*found, [[(LAST, 1)], [(LAST, 1)]]]


@pytest.fixture
def filed(tmp_path):
    """What puts the files of both streams with one number."""
    rows = rows_of()

    def putting(number):
        def both():
            for name, each in zip("ab", rows[number], strict=True):
                put(tmp_path, name, number, each)

        return both

    return putting


def everything(filed):
    """All files, each in an epoch of its own."""
    return [step for number in range(FILES + 1) for step in (filed(number), 1.0)]


def meant(folder):
    """What the query means over all files. No pair of the last rows is complete without an end."""
    found = query(folder, streaming=False).collect()
    return found.filter(pl.col("t") < LAST).sort(found.columns)


def check(folder):
    found, expected = shown(folder), meant(folder)
    assert expected.height > 100
    assert found.sort(found.columns).equals(expected)


@pytest.mark.parametrize("nodes", [1, 2, 3])
def test_results_are_those_of_a_finite_run(tmp_path, filed, nodes):
    script = run(query(tmp_path, nodes=nodes), tmp_path, Script(everything(filed)), nodes)
    check(tmp_path)
    assert [each.epoch for each in script.told] == list(range(1, FILES + 2))
    last = script.told[-1].counts
    assert last["rows_in"] == 2 * (12 * FILES + 1)
    assert last["rows_out"] == shown(tmp_path).height


def test_an_epoch_has_all_rounds_of_its_time(tmp_path, filed):
    steps = [filed(0), 0.3, filed(1), 0.3, filed(2), 0.3, 0.3, filed(3), 1.0, 5.0, 5.0]
    script = run(query(tmp_path), tmp_path, Script(steps))
    assert [(each.epoch, each.latency) for each in script.told] == [(1, pytest.approx(1.2)), (2, pytest.approx(1.0))]


def test_nothing_is_written_and_sent_while_nothing_comes(tmp_path, filed):
    script = run(query(tmp_path), tmp_path, Script([5.0, 5.0]))
    assert len(set(script.sent)) == 1
    assert not (tmp_path / "sink").exists()
    script = run(query(tmp_path), tmp_path, Script([filed(0), 5.0, 5.0, 5.0]))
    assert len(set(script.sent)) == 3  # before it came, after its round, after its epoch
    assert Store(str(tmp_path / "checkpoint/windrow/continuous")).rounds() == [1]


def test_a_run_that_is_to_end_ends_its_epoch(tmp_path, filed):
    script = run(query(tmp_path), tmp_path, Script([filed(0), filed(1)]))
    assert [each.epoch for each in script.told] == [1]


def test_it_continues_where_it_was(tmp_path, filed):
    told = []
    for number in range(FILES + 1):
        told += run(query(tmp_path), tmp_path, Script([filed(number), 1.0])).told
    check(tmp_path)
    assert told[-1].epoch == FILES + 1
    assert told[-1].counts["rows_in"] == 2 * (12 * FILES + 1)


# -- crashes -----------------------------------------------------------------------------------------------------------
class TornStore(Store):
    """Fails where the manifest of an epoch is to be written: state and results are in files by then."""

    def commit(self, number, *given, **named):
        if number == 3:
            raise CrashError
        return super().commit(number, *given, **named)


class TornSink(Sink):
    """Fails where results are to be seen: their epoch counts by then."""

    def publish(self, made):
        if any(epoch == 3 for _, epoch, _, _ in made):
            raise CrashError
        super().publish(made)


class HalfSink(Sink):
    """Fails after one of the files of an epoch is seen."""

    def publish(self, made):
        super().publish(made[:1])
        if len(made) > 1:
            raise CrashError


TORN = {
    "before the manifest": lambda r: replace(r, store=TornStore(r.store.folder)),
    "before results are seen": lambda r: replace(r, sink=TornSink(r.sink.folder, r.sink.columns)),
    "among the files of an epoch": lambda r: replace(r, sink=HalfSink(r.sink.folder, r.sink.columns)),
}


@pytest.mark.parametrize("where", TORN)
def test_a_crash_loses_nothing_and_doubles_nothing(tmp_path, filed, where):
    steps = everything(filed)
    with pytest.raises(CrashError):
        run(query(tmp_path), tmp_path, Script(steps), change=TORN[where])
    before = shown(tmp_path).height
    run(query(tmp_path), tmp_path, Script([1.0, *steps]))
    check(tmp_path)
    assert before < shown(tmp_path).height
    left = list((tmp_path / "sink" / "_staged").glob("*"))
    run(query(tmp_path), tmp_path, Script([]))  # what the crash has left is gone when its epoch is over
    assert (where == "before the manifest") == bool(left)
    assert not list((tmp_path / "sink" / "_staged").glob("*"))


def test_what_is_taken_from_the_sink_does_not_come_again(tmp_path, filed):
    run(query(tmp_path), tmp_path, Script(everything(filed)))
    for file in (tmp_path / "sink").glob("*.parquet"):
        file.unlink()
    run(query(tmp_path), tmp_path, Script([1.0]))
    assert not list((tmp_path / "sink").glob("*.parquet"))


def test_of_two_runs_one_goes_on(tmp_path, filed):
    """As after a restart while the attempt before still runs: what that one has not committed is nothing."""

    def other():
        run(query(tmp_path), tmp_path, Script([1.0, filed(1), 1.0]))

    with pytest.raises(LostError, match="epoch 1 has been written by another run"):
        run(query(tmp_path), tmp_path, Script([filed(0), other, 1.0]))
    run(query(tmp_path), tmp_path, Script(everything(filed)[4:]))
    check(tmp_path)


def test_what_is_left_of_epochs_that_are_over_is_deleted(tmp_path):
    sink = Sink(str(tmp_path), {})
    for epoch in (1, 2, 3):
        sink.files.put(f"_staged/{epoch}-0-x.parquet", b"")
    sink.forget(2)
    assert sink.files.names("_staged") == ["3-0-x.parquet"]


# -- other queries -----------------------------------------------------------------------------------------------------
def test_another_number_of_nodes_is_refused(tmp_path, filed):
    run(query(tmp_path), tmp_path, Script([filed(0), 1.0]))
    with pytest.raises(CheckpointError, match="is of a ring of 2 nodes, and this one has 3: give nodes=2"):
        run(query(tmp_path), tmp_path, Script([]), nodes=3)


def test_more_or_fewer_of_the_nodes_may_hold_state(tmp_path, filed):
    steps = everything(filed)
    for active, some in ((1, steps[:4]), (3, steps[4:8]), (2, steps[8:])):
        run(query(tmp_path, nodes=active), tmp_path, Script(some), nodes=3)
    check(tmp_path)


def test_another_query_is_refused(tmp_path, filed):
    run(query(tmp_path), tmp_path, Script([filed(0), 1.0]))
    with pytest.raises(CheckpointError, match="was written by another query"):
        run(query(tmp_path, where="n < n_b"), tmp_path, Script([]))
    with pytest.raises(CheckpointError, match="select the same columns, or give a new checkpoint and a new sink"):
        run(query(tmp_path).select("t", "n", "t_b", "n_b", both="n + n_b"), tmp_path, Script([]))


def test_results_of_another_checkpoint_are_not_written_over(tmp_path, filed):
    for number in range(FILES):
        filed(number)()
    run(query(tmp_path), tmp_path, Script([1.0]))
    (tmp_path / "checkpoint").rename(tmp_path / "lost")
    with pytest.raises(CheckpointError, match="give the checkpoint that belongs to them, or a new sink"):
        run(query(tmp_path), tmp_path, Script([]))


def test_what_it_cannot_run_is_refused(tmp_path):
    for folder in "ab":
        put(tmp_path, folder, 0, [(1, 1)])
    endless, where = query(tmp_path), {"sink": tmp_path / "sink", "checkpoint": tmp_path / "checkpoint"}
    with pytest.raises(PlanError, match=r"stage 1 \(.*\). to_spark\(\) runs all queries"):
        endless.distinct().run_continuously(**where)
    with pytest.raises(PlanError, match=r"stage 0 \(multi\)"):
        query(tmp_path, using="multi", nodes=None).run_continuously(**where)
    with pytest.raises(PlanError, match=r"stream 'a' ends, .* give streaming=True"):
        query(tmp_path, streaming=False).run_continuously(**where)
    rows = wr.stream([{"t": 1, "n": 1}], progress="t", slack=0)
    with pytest.raises(PlanError, match=r"stream 'stream' is DataFrame data, and run_continuously\(\) reads files"):
        wr.multi_join(rows, rows, within=5, nodes=1).run_continuously(**where)


# -- side outputs ------------------------------------------------------------------------------------------------------
def test_late_and_bad_rows_go_beside_the_results(tmp_path, filed):
    def fails(x, y):
        return 10 // (x - 1) > y

    asked = query(tmp_path, where=wr.udf(fails, "BOOLEAN", "n", "n_b"), late="side")
    put(tmp_path, "a", 0, [(50, 1), (51, 3), (52, None)])
    put(tmp_path, "b", 0, [(50, 2)])
    (tmp_path / "b" / "1.parquet").write_bytes(b"no file of rows")
    os.utime(tmp_path / "b" / "1.parquet", (1, 1))

    def late():
        put(tmp_path, "a", 2, [(2, 7), (LAST, 3)])
        put(tmp_path, "b", 2, [(LAST, 2)])

    script = run(asked, tmp_path, Script([1.0, late, 1.0]))
    counts = script.told[-1].counts
    assert (counts["rows_late"], counts["rows_bad"], counts["files_bad"]) == (1, 2, 1)
    assert shown(tmp_path, "_late").select("t", "n").rows() == [(2, 7)]
    bad = shown(tmp_path, "_bad")
    assert sorted(bad["source"].to_list()) == ["b", "stage 0", "stage 0"]
    assert bad.filter(pl.col("source") == "b")["reason"][0].startswith(str(tmp_path / "b" / "1.parquet"))
    assert shown(tmp_path).rows() == [(51, 3, 50, 2)]
