"""The map side: a source is read, admitted and counted once, whoever takes its rows."""

import polars as pl
import pyarrow as pa

import windrow as wr
from windrow.hosts.counters import Counter
from windrow.hosts.spark import map_side
from windrow.hosts.spark.exchange import OUT, Kind, decode
from windrow.hosts.spark.map_side import MapSide, together
from windrow.hosts.spark.placed import placed_stages
from windrow.progress import START

ROWS = pl.DataFrame({"t": [3, None, 9, 5], "u": [13, 14, 19, None], "k": [1, 2, 1, 2]})


def stream(name="s", **more):
    return wr.stream(ROWS.clear(), "t", slack=2, name=name, **more)


def counted(source, *keys, **options):
    return source.window(1, **options).group_by(*keys).agg(n=wr.count())


def ran(query, frames, streaming=True, shards=2):
    """The exchange rows and counts of a task over the only source of a query."""
    placed = placed_stages(query.plan(), shards, streaming)
    [reads] = placed.reads.values()
    side = MapSide(reads, ends=not streaming)
    out = side.outboxes(4)
    rows = [row for part in side.run(frames, out) for row in part]
    return reads, rows, out.last(), out.sender.counts


def test_one_read_with_several_branches_is_admitted_and_counted_once():
    s = stream()
    query = counted(s, "k").union(counted(s.where("k = 1"), "k")).union(counted(s, "k", on="t"))
    [read], rows, last, counts = ran(query, [ROWS])
    assert len(read.branches) == 3
    assert (counts[Counter.ROWS_IN], counts[Counter.ROWS_BAD]) == (4, 1)
    assert {row.stage for row in rows} == {0, 1, 2}
    promised = {(row.stage, row.value) for row in last if row.kind == Kind.PROMISE}
    assert promised == {(0, 7), (1, 7), (2, 7)}


def test_two_reads_of_one_source_are_fed_with_every_row_and_counted_once():
    s = stream(also={"u": 4})
    query = counted(s, "k").union(counted(s, "k", on="u"))
    reads, _, last, counts = ran(query, [ROWS[2:3], ROWS[:1]])
    assert len(reads) == 2
    assert counts[Counter.ROWS_IN] == 2
    assert {(row.stage, row.value) for row in last if row.kind == Kind.PROMISE} == {(0, 7), (1, 15)}


def test_rows_that_no_stage_takes_are_results():
    [_], rows, last, counts = ran(stream().where("k = 1"), [ROWS])
    [row] = rows
    assert (row.stage, row.kind, row.value) == (OUT, Kind.RESULT, 2)
    assert counts[Counter.ROWS_OUT] == 2
    assert {row.kind for row in last} == {Kind.COUNT}


def test_a_task_without_rows_still_speaks_to_every_shard():
    _, rows, last, _ = ran(counted(stream(), "k"), [], shards=3)
    assert rows == []
    assert [row.value for row in last if row.kind == Kind.PROMISE] == [START] * 3


def test_a_part_of_a_finite_source_says_how_far_it_came_and_does_not_end_the_others():
    _, _, last, _ = ran(counted(stream(), "k"), [ROWS], streaming=False)
    assert {row.value for row in last if row.kind == Kind.REACHED} == {9}
    promises = [row.value for row in last if row.kind == Kind.PROMISE]
    assert len(promises) == 2
    assert max(promises) <= 9


def test_what_one_task_aggregates_does_not_depend_on_what_another_had():
    """A map side is used for many tasks: each has a graph and outboxes of its own."""
    placed = placed_stages(counted(stream(), "k").plan(), 1, True)
    [reads] = placed.reads.values()
    side = MapSide(reads)
    found = []
    for _ in range(2):
        out = side.outboxes(0)
        rows = [row for part in side.run([ROWS], out) for row in part]
        data = [decode(row.blob, "rows").sort(pl.all()).rows() for row in rows]
        found.append((data, [row._replace(blob=None) for row in rows], out.last()))
    assert found[0] == found[1]


def test_small_batches_are_joined_up_to_a_size(monkeypatch):
    monkeypatch.setattr(map_side, "ROWS_AT_ONCE", 5)
    batches = [pa.RecordBatch.from_pydict({"x": list(range(n))}) for n in (2, 0, 2, 3, 1)]
    assert [frame.height for frame in together(iter(batches))] == [7, 1]
    assert list(together(iter([]))) == []


def test_as_spark_calls_it_rows_come_first_and_promises_last():
    placed = placed_stages(counted(stream(), "k").plan(), 2, True)
    [reads] = placed.reads.values()
    batches = list(MapSide(reads)(iter(ROWS.to_arrow().to_batches())))
    kinds = [[Kind(kind) for kind in batch.column("kind").to_pylist()] for batch in batches]
    assert {*kinds[0]} == {Kind.DATA}
    assert {Kind.PROMISE, Kind.COUNT} <= {*kinds[-1]}
    assert Kind.DATA not in kinds[-1]
    data = [decode(blob, "rows") for batch in batches[:-1] for blob in batch.column("blob").to_pylist()]
    assert sum(frame.height for frame in data) == 3
