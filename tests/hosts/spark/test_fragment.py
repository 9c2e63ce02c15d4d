"""Shards: arrival order of exchange rows never matters, and what is for others passes through untouched."""

import json
import random

import polars as pl
import pytest

import windrow as wr
from windrow.hosts.spark.exchange import OUT, Kind, Row, decode, encode
from windrow.hosts.spark.fragment import Fragment
from windrow.hosts.spark.map_side import MapSide
from windrow.hosts.spark.placed import placed_stages
from windrow.testing.simulated import Checkpoint, SimulatedSpark

SCHEMA = {"t": pl.Int64(), "k": pl.Int64(), "j": pl.Int64(), "x": pl.Int64()}


def stream(name="s", **more):
    return wr.stream(pl.DataFrame(schema=SCHEMA), "t", **{"slack": 3, **more}, name=name)


def counted(source, *keys):
    return source.window(10).group_by(*keys).agg(n=wr.count(), x=wr.sum("x"))


def windows_of_windows():
    return counted(stream(), "k").window(20).agg(total=wr.sum("n"))


def pairs_of_windows():
    joined = counted(stream("a"), "k").join(counted(stream("b").where("x > 0"), "k"), on="k", within=(0, 10))
    return joined.window(20).group_by("n").agg(total=wr.sum("x_right"))


def judged():
    return counted(stream(slack=None, punctuation=wr.promise.estimated(9)), "k", "j")


def distinct_of_both():
    return stream("a").select("t", "k").union(stream("b").select("t", "k")).distinct()


QUERIES = [windows_of_windows, pairs_of_windows, judged, distinct_of_both]


class Shards:
    """A query on some shards, fed with the rows of two tasks of each source; ``rng`` decides how rows arrive."""

    def __init__(self, query, shards, rng):
        self.placed, self.rng = placed_stages(query.plan(), shards, True), rng
        self.fragments = [Fragment(tuple(h for _, h in level), self.placed.ids) for level in self.placed.levels]
        self.wirings = [{shard: fragment.wiring() for shard in self.placed.ids} for fragment in self.fragments]

    def push(self, frames):
        """The exchange rows that come out of one micro-batch, and those of every level by themselves."""
        rows, part = [], 0
        for name, reads in self.placed.reads.items():
            for frame in (frames[name][::2], frames[name][1::2]):
                side = MapSide(reads)
                out = side.outboxes(part)
                part += 1
                rows += [row for found in side.run([frame], out) for row in found] + out.last()
        for fragment, wirings in zip(self.fragments, self.wirings, strict=True):
            rows = [row for shard in wirings for row in self._shard(fragment, wirings[shard], shard, rows)]
        return rows

    def _shard(self, fragment, wired, shard, rows):
        mine = [row for row in rows if row.shard == shard]
        if self.rng is not None:
            self.rng.shuffle(mine)
        return list(fragment.run(wired, shard, mine))


def content(rows):
    """Rows of the exchange as values; how the rows inside a blob are ordered is nobody's business."""
    return sorted((*row[:4], row.value, _decoded(row)) for row in rows)


def _decoded(row):
    if row.blob is None or row.kind == Kind.PROMISE:
        return str(row.blob)
    if row.kind == Kind.REPORT:
        return json.dumps(json.loads(row.blob), sort_keys=True)
    return str(sorted(map(repr, decode(row.blob, "rows").rows())))


def batches(rng, names):
    for at in range(0, 60, 15):
        yield {
            name: pl.DataFrame(
                [(at + rng.randrange(15), rng.randrange(4), rng.randrange(2), rng.randrange(5)) for _ in range(12)],
                schema=SCHEMA,
                orient="row",
            )
            for name in names
        }


@pytest.mark.parametrize("shards", [1, 3])
@pytest.mark.parametrize("query", QUERIES)
def test_the_order_in_which_exchange_rows_arrive_never_matters(query, shards):
    given = query()
    reference = Shards(given, shards, None)
    others = [Shards(given, shards, random.Random(seed)) for seed in range(4)]
    results = 0
    for frames in batches(random.Random(0), given.sources):
        expected = content(reference.push(frames))
        results += sum(row[3] == Kind.RESULT for row in expected)
        for other in others:
            assert content(other.push(frames)) == expected
    assert results
    states = [[wired.graph.snapshot().keys() for level in s.wirings for wired in level.values()] for s in others]
    assert all(state == states[0] for state in states)


def test_rows_of_later_levels_and_of_the_result_pass_through_untouched():
    query = windows_of_windows()
    shards = Shards(query, 2, None)
    first = shards.fragments[0]
    shard = shards.placed.ids[0]
    blob = encode(pl.DataFrame({"x": [1]}))
    foreign = [
        Row(shard, 1, 0, Kind.DATA, 5, 1, blob),
        Row(shard, 1, 1, Kind.PROMISE, 6, 8),
        Row(shard, 99, 3, Kind.EVIDENCE, 7, 0, b"not even a blob"),
        *(Row(shard, OUT, 0, kind, 8, 1, blob) for kind in (Kind.RESULT, Kind.LATE, Kind.BAD, Kind.COUNT)),
    ]
    alone = list(first.run(first.wiring(), shard, []))
    found = list(first.run(first.wiring(), shard, foreign))
    assert found[: len(foreign)] == foreign
    assert found[len(foreign) :] == alone


def test_promises_come_after_all_rows_of_their_micro_batch():
    """A promise that overtakes rows of the same micro-batch makes none of them late."""
    query = counted(stream(), "k")
    shards = Shards(query, 1, None)
    [fragment], shard = shards.fragments, shards.placed.ids[0]
    [reads] = shards.placed.reads.values()
    side = MapSide(reads)
    out = side.outboxes(0)
    frame = pl.DataFrame([(1, 0, 0, 1), (30, 0, 0, 1), (2, 0, 0, 1)], schema=SCHEMA, orient="row")
    rows = [row for found in side.run([frame], out) for row in found]
    found = list(fragment.run(fragment.wiring(), shard, [*out.last(), *rows]))
    [result] = [decode(row.blob, "result") for row in found if row.kind == Kind.RESULT]
    assert result.rows() == [(0, 0, 10, 2, 2)]


def test_an_inner_stage_has_the_same_names_whatever_takes_its_results():
    """What follows a stage may change between two starts, so its state must be found under the same names."""
    marked = stream(slack=None, punctuation="x")
    plain = marked.window(10).group_by("k").agg(n=wr.count())
    grown = plain.where("n > 1").select("k", m="n + 1").where("m > 2")
    names = [[node.name for node in Shards(query, 2, None).wirings[0][0].graph.nodes] for query in (plain, grown)]
    assert names[0] != names[1]
    assert names[0][:-1] == names[1][: len(names[0]) - 1]
    assert any("audit" in name for name in names[0])
    assert {n for n in names[0] if "audit" in n} == {n for n in names[1] if "audit" in n}


def test_promises_that_go_back_are_counted_over_a_restart_with_another_filter():
    spark, checkpoint, schema = SimulatedSpark(), Checkpoint(), {"t": pl.Int64(), "k": pl.Int64(), "m": pl.Int64()}

    def started(more):
        s = wr.stream(spark.stream(schema), "t", punctuation="m", name="s")
        query = s.window(10).group_by("k").agg(n=wr.count())
        return spark.start(more(query), checkpoint)

    def marker(value):
        return {"s": pl.DataFrame({"t": [None], "k": [None], "m": [value]}, schema=schema)}

    assert started(lambda query: query).push(marker(50)).counts["promises_ignored"] == 0
    running = started(lambda query: query.where("n > 1").select("k", m="n + 1"))
    assert running.push(marker(40)).counts["promises_ignored"] == 1


def test_a_stage_that_two_take_runs_once_and_feeds_both():
    inner = counted(stream(), "k")
    query = inner.window(20).group_by("k").agg(a=wr.sum("n")).union(inner.window(20).group_by("k").agg(a=wr.max("x")))
    placed = placed_stages(query.plan(), 2, True)
    assert [[stage.number for stage, _ in level] for level in placed.levels] == [[0, 1, 2]]
    [graph] = [Fragment(tuple(h for _, h in level), placed.ids).wiring().graph for level in placed.levels]
    assert sum("paned" in node.name for node in graph.nodes) == len(query.plan().stages())
