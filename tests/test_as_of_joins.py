"""As-of joins end to end: in process and as Spark drives them, under any arrival and restarts, against the oracle."""

import random
from dataclasses import replace

import polars as pl
import pytest

import windrow as wr
from how_many import EXAMPLES
from random_sequences import drawn_as_of
from test_joins import check_among, micro_batches, with_sources
from windrow.errors import DataError, LateError
from windrow.logical.nodes import AsOf, Scan
from windrow.operators import AsOfJoin
from windrow.testing import compare, oracle, replay
from windrow.testing.accounting import accounted_join, countable_join
from windrow.testing.disturbed import disturbed
from windrow.testing.simulated import SimulatedSpark

SEEDS = range(int(36 * max(1, EXAMPLES)))


@pytest.mark.parametrize("seed", SEEDS)
def test_random_as_of_joins_equal_the_oracle_under_any_arrival(seed):
    replay(drawn_as_of(seed), runs=2, seed=seed)


@pytest.mark.parametrize("seed", SEEDS[::5])
def test_random_as_of_joins_as_spark_drives_them(seed):
    on_simulated_spark(drawn_as_of(seed), seed)


def on_simulated_spark(query, seed):
    """In micro-batches that fail and restart on other workers, and over finite sources; results equal the oracle's."""
    given = {name: source.data for name, source in query.sources.items()}
    expected, rng = oracle(query), random.Random(seed)

    def streaming(spark):
        return with_sources(query, {name: spark.stream(data.schema) for name, data in given.items()})

    if promises(query):
        out = disturbed(streaming, micro_batches(given, rng), seed, shards=rng.choice([1, 2, 5]))
        assert sum(batch.counts["rows_late"] for batch in out) == 0
        check_among(pl.concat([batch.results for batch in out]), expected, f"streaming, seed {seed}")
    spark = SimulatedSpark(shards=3, seed=seed)
    whole = spark.collect(with_sources(query, {n: spark.frame([d[::2], d[1::2]]) for n, d in given.items()}))
    compare(whole, expected, f"batch, seed {seed}")


def promises(query):
    """Whether it can run over endless streams: all of them promise something."""
    return all(s.source.slack is not None or s.source.marker is not None for s in scans(query.node))


def scans(node):
    return [each for each in node.walk() if isinstance(each, Scan)]


# -- late rows ---------------------------------------------------------------------------------------------------------
SCHEMA = {"n": pl.Int64(), "t": pl.Int64(), "k": pl.Int64()}


def numbered(rng, first, count=25):
    """Rows in any order at all, each with a number of its own."""
    data = [(first + i, rng.randrange(40), rng.choice([1, 2, None])) for i in range(count)]
    return pl.DataFrame(data, schema=SCHEMA, orient="row")


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("strategy", ["backward", "forward", "nearest"])
def test_results_are_those_of_the_rows_that_are_not_late(seed, strategy):
    """Late rows leave by the side, one record each; all rows add up."""
    rng = random.Random(f"{seed}/{strategy}")
    frames = {"l": numbered(rng, 0), "r": numbered(rng, 100).rename({"n": "m"})}
    left, right = (wr.stream(frames[name], "t", slack=12, name=name) for name in "lr")
    query = left.join_asof(
        right,
        by=rng.choice(["k", ()]),
        strategy=strategy,
        tolerance=rng.choice([0, 5, 50]),
        coalesce=False,
        late="side",
    )
    rows = [(name, row) for name, frame in frames.items() for row in frame.iter_slices(1)]
    rng.shuffle(rows)
    run = query.run()
    for name, row in rows:
        run.push(name, row)
    late = run.end().late_rows()
    assert late.height == run.counts["rows_late"] > 0
    lost = {value for value in [*late["n"], *late["m"]] if value is not None}
    assert len(lost) == late.height
    rest = {name: frame.filter(~pl.col(frame.columns[0]).is_in(list(lost))) for name, frame in frames.items()}
    compare(run.results(), oracle(query, rest), f"seed {seed}")
    accounted_join(run.counts)


def late_join(**options):
    left, right = (wr.stream(pl.DataFrame(schema=SCHEMA), "t", slack=5, name=name) for name in "lr")
    return left.join_asof(right, by="k", tolerance=10, **options).run()


def row(n, t, k=1):
    return pl.DataFrame([(n, t, k)], schema=SCHEMA, orient="row")


def test_late_rows_of_one_side_can_be_an_error_and_those_of_the_other_not():
    run = late_join(late=("drop", "error"))
    run.push("l", row(1, 100)).push("l", row(2, 50)).push("r", row(3, 100))
    assert run.counts["rows_late"] == 1
    assert run.late_rows().select("n", "late_by").rows() == [(None, 45)]
    with pytest.raises(LateError):
        run.push("r", row(4, 50))


# -- how the state is bounded ------------------------------------------------------------------------------------------
def held(run):
    """What the as-of join of a run holds."""
    (join,) = [node.operator for node in run.graph.nodes if isinstance(node.operator, AsOfJoin)]
    return join.state_bytes()


def test_more_keys_than_the_query_accepts_stop_it():
    left, right = (wr.stream(pl.DataFrame(schema=SCHEMA), "t", slack=0, name=name) for name in "lr")
    run = left.join_asof(right, by="k", max_keys=3).run()
    for k in (1, 2, 3, 3, 1):
        run.push("r", row(k, 5, k))
    with pytest.raises(DataError, match="rows of 4 keys in one shard, and the query accepts 3"):
        run.push("r", row(4, 6, 4))


def test_the_latest_row_of_each_key_is_all_that_is_kept():
    left, right = (wr.stream(pl.DataFrame(schema=SCHEMA), "t", slack=0, name=name) for name in "lr")
    run = left.join_asof(right, by="k", max_keys=3, how="inner").run()
    sizes = []
    for t in range(0, 160, 2):
        run.push("r", row(t, t, t % 3)).push("l", row(t, t + 1, t % 3))
        sizes.append(held(run))
    assert max(sizes[40:]) <= max(sizes[:40])
    assert held(run.end()) == 0
    assert run.results().height == 80


@pytest.mark.parametrize("strategy", ["backward", "forward", "nearest"])
def test_state_is_bounded_by_the_greatest_distance_and_freed_by_promises(strategy):
    left, right = (wr.stream(pl.DataFrame(schema=SCHEMA), "t", slack=0, name=name) for name in "lr")
    run = left.join_asof(right, by="k", tolerance=20, strategy=strategy).run()
    sizes = []
    for t in range(0, 180, 3):  # every key is new
        run.push("r", row(t, t, t)).push("l", row(t, t + 1, t))
        sizes.append(held(run))
    assert max(sizes[30:]) <= max(sizes[:30])
    run.promise("l", 5000).promise("r", 5000)
    assert held(run) == 0
    assert run.results().height == 60


def test_results_come_as_soon_as_the_other_side_has_promised_enough():
    left, right = (wr.stream(pl.DataFrame(schema=SCHEMA), "t", slack=0, name=name) for name in "lr")
    found = {}
    for strategy in ("backward", "forward", "nearest"):
        run = left.join_asof(right, by="k", tolerance=5, strategy=strategy).select("n", m="n_right").run()
        run.push("r", row(1, 8)).push("l", row(2, 10))
        found[strategy] = []
        for at in range(10, 18):
            run.promise("r", at)
            found[strategy].append(run.results().height)
    assert {name: each.index(1) + 10 for name, each in found.items()} == {"backward": 11, "forward": 16, "nearest": 13}


@pytest.mark.parametrize("seed", SEEDS[::4])
def test_all_rows_add_up_on_spark(seed):
    """Each row that was read found a partner, left without one, or is bad, whatever the shards that have a copy."""
    whole = drawn_as_of(seed)
    for node in whole.node.walk():
        query = replace(whole, node=node)
        if not isinstance(node, AsOf) or countable_join(query) is None or not promises(query):
            continue
        given = {scan.name: whole.sources[scan.name].data for scan in scans(node)}
        marked = {scan.name: scan.source.marker for scan in scans(node)}
        ends = {name: at_the_end(data, marked[name]) for name, data in given.items()}
        query = replace(query, sources={name: whole.sources[name] for name in given})
        out = disturbed(
            lambda spark, q=query, g=given: with_sources(q, {n: spark.stream(d.schema) for n, d in g.items()}),
            [*micro_batches(given, random.Random(seed)), ends],
            seed,
            shards=3,
        )
        counts = {name: sum(batch.counts[name] for batch in out) for name in out[0].counts}
        markers = sum(int(d[marked[n]].is_not_null().sum()) for n, d in [*given.items(), *ends.items()] if marked[n])
        counts["rows_in"] += counts["rows_copied"]  # each copy of a row is counted where it is
        # Without keys the last rows of both sides may wait for each other.
        kept = counts["rows_in"] - markers - sum(counts[name] for name in ("rows_joined", "rows_freed", "rows_bad"))
        accounted_join(counts, markers=markers, waiting=0 if node.on else min(max(kept, 0), 2))


def at_the_end(data, marker):
    """A last row that promises more than any other: a marker, or a row far away."""
    far = pl.lit(5000) if data.schema["t"] == pl.Int64() else pl.datetime(1990, 1, 1, time_zone="UTC")
    nothing = pl.DataFrame([dict.fromkeys(data.columns)], schema=data.schema)
    return nothing.with_columns(far.cast(data.schema["t"]).alias(marker or "t"))


def test_partners_of_which_no_column_is_wanted():
    """Right rows in several runs, and a result that has the left columns alone."""
    left = wr.stream([{"t": t, "k": t % 2} for t in range(6)], "t", slack=0, name="l")
    right = wr.stream([{"t": t, "k": t % 2, "x": t} for t in range(6)], "t", slack=0, name="r")
    replay(left.join_asof(right, by="k", tolerance=3, how="inner").select("t", "k"), runs=4)
    counted = left.join_asof(right, by="k", tolerance=3).window(3).group_by("k").agg(n=wr.count())
    replay(counted, runs=4)
