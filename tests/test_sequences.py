"""Sequences end to end: in process and as Spark drives them, under any arrival and restarts, against the oracle."""

import random

import polars as pl
import pytest

import windrow as wr
from how_many import EXAMPLES
from random_sequences import drawn_sequence
from test_as_of_joins import on_simulated_spark
from windrow.errors import DataError, LateError
from windrow.operators.sequences.matcher import Matcher
from windrow.testing import compare, oracle, replay

SEEDS = range(int(36 * max(1, EXAMPLES)))
SCHEMA = {"n": pl.Int64(), "t": pl.Int64(), "k": pl.Int64()}
MARKED = {**SCHEMA, "done": pl.Int64()}


@pytest.mark.parametrize("seed", SEEDS)
def test_random_sequences_equal_the_oracle_under_any_arrival(seed):
    replay(drawn_sequence(seed), runs=2, seed=seed)


@pytest.mark.parametrize("seed", SEEDS[::5])
def test_random_sequences_as_spark_drives_them(seed):
    on_simulated_spark(drawn_sequence(seed), seed)


def streams(names, schema=SCHEMA, **options):
    options = options or {"slack": 0}
    return [wr.stream(pl.DataFrame(schema=schema), "t", name=name, **options) for name in names]


def row(n, t, k=1):
    return pl.DataFrame([(n, t, k)], schema=SCHEMA, orient="row")


def marked(*rows):
    """Rows, and markers where there is no time: (number, time, key, promise)."""
    return pl.DataFrame(rows, schema=MARKED, orient="row")


# -- late rows ---------------------------------------------------------------------------------------------------------
def numbered(rng, first, count=20):
    """Rows in any order at all, each with a number of its own."""
    data = [(first + i, rng.randrange(40), rng.choice([1, 2, None])) for i in range(count)]
    return pl.DataFrame(data, schema=SCHEMA, orient="row")


SHAPES = {
    "three": lambda a, b, c: {"a": a, "b": b, "c": c},
    "none between": lambda a, b, c: {"a": a, "b": wr.no(b), "c": c},
    "none at the end": lambda a, b, c: {"a": a, "b": b, "c": wr.no(c)},
    "some": lambda a, b, c: {"a": a, "b": wr.some(b), "c": c},
}


@pytest.mark.parametrize("seed", range(2))
@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("matching", ["recent", "chronicle"])
def test_results_are_those_of_the_rows_that_are_not_late(matching, shape, seed):
    """Late rows are dropped and counted: which ones follows from the order in which rows came."""
    rng = random.Random(f"{seed}/{shape}")
    slack = 15
    frames = {name: numbered(rng, 100 * i) for i, name in enumerate("abc")}
    steps = [wr.stream(frames[name], "t", slack=slack, name=name) for name in "abc"]
    query = wr.seq(SHAPES[shape](*steps), on="k", within=rng.choice([5, 50]), matching=matching)
    rows = [(name, each) for name, frame in frames.items() for each in frame.iter_slices(1)]
    rng.shuffle(rows)
    run, reached, rest = query.run(), dict.fromkeys(frames, -1), {name: [] for name in frames}
    for name, each in rows:
        run.push(name, each)
        at = each["t"][0]
        if at >= reached[name] - slack:
            rest[name].append(each)
        reached[name] = max(reached[name], at)
    in_time = {name: pl.concat(parts) for name, parts in rest.items()}
    run.end()
    lost, keyed = (sum(f(frames[name]) - f(in_time[name]) for name in frames) for f in (len, keys))
    assert 0 < keyed <= run.counts["rows_late"] <= lost  # a row without a key may leave before it is late
    compare(run.results(), oracle(query, in_time), f"seed {seed}")


def keys(frame):
    """How many rows have a key."""
    return int(frame["k"].count())


def test_late_rows_of_one_step_can_be_an_error_and_those_of_others_not():
    a, b, c = streams("abc")
    run = wr.seq({"a": a, "b": b, "c": c}, on="k", within=5, late=("drop", "side", "error")).run()
    run.push("a", row(1, 100)).push("a", row(2, 50)).push("b", row(3, 100)).push("b", row(4, 60))
    assert run.counts["rows_late"] == 2
    assert run.late_rows().select("b_n", "late_by").rows() == [(None, 50), (4, 40)]
    run.push("c", row(5, 100))
    with pytest.raises(LateError):
        run.push("c", row(6, 50))


# -- how the state is bounded ------------------------------------------------------------------------------------------
def held(run):
    """How many rows the sequences of a run hold."""
    (matcher,) = [node.operator for node in run.graph.nodes if isinstance(node.operator, Matcher)]
    return matcher.waiting.height + matcher.open.height


def test_more_keys_than_the_query_accepts_stop_it():
    a, b, c = streams("abc")
    run = wr.seq({"a": a, "b": b, "c": c}, on="k", max_keys=3).run()
    run.push("b", row(0, 100)).push("c", row(0, 100))
    for k in range(3):
        run.push("a", row(k, 10 * k, k))
    run.push("a", row(3, 50, 3))
    with pytest.raises(DataError, match="4 keys in one shard, and the query accepts 3"):
        run.push("a", row(4, 60, 4))


@pytest.mark.parametrize(("shape", "matching"), list(zip(SHAPES, ["recent", "chronicle"] * 2, strict=True)))
def test_state_is_bounded_by_the_greatest_distance_and_freed_by_promises(shape, matching):
    run = wr.seq(SHAPES[shape](*streams("abc")), on="k", within=20, matching=matching).run()
    sizes = []
    for t in range(0, 160, 5):  # every key is new
        run.push("a", row(t, t, t)).push("b", row(t, t + 1, t)).push("c", row(t, t + 2, t))
        sizes.append(held(run))
    assert max(sizes[16:]) <= 1.1 * max(sizes[:16])
    for name in "abc":
        run.promise(name, 5000)
    assert held(run) == 0


def test_rows_that_no_sequence_needs_leave_with_a_promise_alone():
    a, b = streams("ab")
    run = b.following(a, on="k", matching="chronicle", within=5).run()
    run.push("a", row(1, 10)).promise("a", 12).promise("b", 12)
    assert (held(run), run.counts["rows_freed"]) == (1, 0)  # final, and open
    run.promise("a", 500).promise("b", 500)
    assert (held(run), run.counts["rows_freed"]) == (0, 1)


def test_a_sequence_that_ends_with_what_must_not_come_is_released_by_promises():
    a, b = streams("ab")
    run = wr.seq({"a": a, "b": wr.no(b)}, on="k", within=5).run()
    run.push("a", row(1, 10)).push("a", row(2, 12, 2)).push("b", row(3, 11))
    released = []
    for at in range(12, 20):
        run.promise("a", at).promise("b", at)
        released.append(run.results().height)
    assert released.index(1) + 12 == 18  # no row at 17 can come any more
    assert sum(released) == 1


def test_a_finished_key_frees_its_own_rows_only():
    a, b = streams("ab", MARKED, punctuation=wr.promise.markers("done", by="k"))
    run = b.following(a, on="k", matching="chronicle", within=30).select("n", m="n_right").run()
    run.push("a", marked((1, 3, 1, None), (2, 10, 2, None), (None, None, None, 6)))
    run.push("b", marked((None, None, None, 5)))  # the row of key 1 is final
    run.push("a", marked((None, None, 2, 900))).push("b", marked((None, None, 2, 900)))
    run.push("b", marked((3, 8, 1, None)))
    assert run.end().results().rows() == [(3, 1)]
