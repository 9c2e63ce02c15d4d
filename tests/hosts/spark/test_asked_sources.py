"""Sources that are asked how far they have come: the same in process and on Spark, whatever comes between."""

from datetime import datetime, timedelta
from functools import partial

import polars as pl
from hypothesis import given, settings
from hypothesis import strategies as st

import windrow as wr
from windrow.testing import accounted, compare, oracle
from windrow.testing.disturbed import disturbed
from windrow.testing.simulated import SimulatedSpark

START = datetime(2024, 1, 1, 12)
SCHEMA = {"t": pl.Datetime("us"), "k": pl.String, "p": pl.Int32, "nr": pl.Int64}
EPOCH = datetime(1970, 1, 1)
CHECK = settings(max_examples=150)


def at(seconds):
    return START + timedelta(seconds=seconds)


def micros(seconds):
    return (at(seconds) - EPOCH) // timedelta(microseconds=1)


def rows(*given):
    return pl.DataFrame([(at(t), k, p, nr) for t, k, p, nr in given], schema=SCHEMA, orient="row")


PROMISES = {
    "slack, idle": {"slack": "3 seconds", "idle_after": "20 seconds"},
    "delay": {"delay": "3 seconds"},
    "slack, delay": {"slack": "3 seconds", "delay": "5 seconds"},
    "partitions, idle": {"punctuation": wr.promise.partitions("p", 2, "3 seconds"), "idle_after": "20 seconds"},
    "partitions, delay": {"punctuation": wr.promise.partitions("p", 2, "3 seconds"), "delay": "4 seconds"},
    "rows, delay": {"punctuation": wr.promise.rows(30), "row_num": "nr", "delay": "3 seconds"},
    "estimated, idle": {"punctuation": wr.promise.estimated("3 seconds"), "idle_after": "25 seconds"},
    "no question": {"slack": "3 seconds"},
}
TRUE = ("delay", "slack, delay", "partitions, delay", "rows, delay")  # rows come at most 3 seconds after their time


@st.composite
def schedules(draw, promises=tuple(PROMISES)):
    """Streams, and what happens: rows that come, each at most 3 seconds old, or sources that are asked."""
    streams = [draw(st.sampled_from(promises)) for _ in range(draw(st.integers(1, 3)))]
    now, nr, steps = 10, 0, []
    for _ in range(draw(st.integers(2, 9))):
        now += draw(st.sampled_from([0, 1, 2, 4, 15, 40]))
        if draw(st.booleans()):
            steps.append((now, None))
            continue
        given = {}
        for number in range(len(streams)):
            ages = draw(st.lists(st.integers(0, 3), max_size=3))
            some = [
                (now - age, draw(st.sampled_from("ab")), draw(st.integers(0, 1)), nr + i) for i, age in enumerate(ages)
            ]
            nr += len(some)
            given[f"s{number}"] = rows(*some)
        steps.append((now, given))
    return streams, steps, draw(st.sampled_from(["union", "windows", "ordered", "joined", "matched", "ring"]))


def query(streams, shape, source):
    made = [wr.stream(source(), "t", name=f"s{n}", **PROMISES[promise]) for n, promise in enumerate(streams)]
    left = made[0].union(*made[2:]) if len(made) > 2 else made[0]
    if len(made) > 1 and shape == "joined":
        joined = left.join(made[1], "k", within=("-5 seconds", "5 seconds"), how="full")
        return joined.select("t", "nr", other="t_right", number="nr_right")
    if len(made) > 1 and shape == "matched":
        return left.join_asof(made[1], by="k", tolerance="30 seconds").select("t", "nr", number="nr_right")
    if len(made) > 1 and shape == "ring":
        within = {f"s{n}": "10 seconds" for n in range(len(made))}
        return wr.multi_join(*made, on="k", within=within, using="ring").select("t", "nr", other="nr_s1")
    found = made[0].union(*made[1:]) if len(made) > 1 else made[0]
    counted = found.window("10 seconds").group_by("k").agg(n=wr.count())
    if shape == "windows":
        return counted.window("20 seconds").group_by("k").agg(n=wr.sum("n"))
    return counted.order_by("window_time", "k") if shape == "ordered" else counted


def in_process(streams, steps, shape, restart):
    """What each step releases; the run is restored from its snapshot before some of them."""
    clock = iter([at(now) for now, news in steps if news is None] + [at(10_000)])
    run = query(streams, shape, lambda: rows()).run(clock=lambda: next(clock))
    found = []
    for number, (_, news) in enumerate(steps):
        if restart >> number & 1:
            run.restore(run.snapshot())
        for name, frame in (news or {}).items():
            run.push(name, frame)
        found.append((run.ask() if news is None else run).results())
    return run, found


@CHECK
@given(schedules(), st.integers(0, 511), st.integers(0, 99))
def test_spark_releases_in_each_step_what_one_process_does(schedule, restart, seed):
    streams, steps, shape = schedule
    run, expected = in_process(streams, steps, shape, restart)
    asked = [micros(now) if news is None else None for now, news in steps]
    made = partial(query, streams, shape)
    out = disturbed(
        lambda spark: made(lambda: spark.stream(SCHEMA)), [news or {} for _, news in steps], seed, asked=asked
    )
    for number, (batch, rows_out) in enumerate(zip(out, expected, strict=True)):
        compare(batch.results, rows_out, f"step {number} of {steps}")
    counted = {c: sum(batch.counts[c] for batch in out) for c in ("rows_in", "rows_late", "rows_bad")}
    assert counted == {c: run.counts[c] for c in counted}


@CHECK
@given(schedules(TRUE), st.integers(0, 511))
def test_true_delays_lose_nothing_and_leave_nothing_open(schedule, restart):
    streams, steps, shape = schedule
    run, found = in_process(streams, steps, shape, restart)
    found.append(run.ask().results())  # long after the last row
    assert run.counts["rows_late"] == 0
    compare(pl.concat(found), oracle(query(streams, shape, lambda: rows()), of(streams, steps)))


def of(streams, steps):
    """All rows by source."""
    none = {f"s{n}": [rows()] for n in range(len(streams))}
    for _, news in steps:
        for name, frame in (news or {}).items():
            none[name].append(frame)
    return {name: pl.concat(frames) for name, frames in none.items()}


@CHECK
@given(schedules(), st.integers(0, 511))
def test_rows_are_released_late_or_bad_and_never_lost(schedule, restart):
    streams, steps, _ = schedule
    run, found = in_process(streams, steps, "union", restart)
    accounted(run.end().counts, pl.concat([*found, run.results()]))


def test_what_a_shard_wants_is_the_time_at_which_an_answer_helps():
    spark = SimulatedSpark(2)
    main = wr.stream(spark.stream(SCHEMA), "t", slack="2 seconds", name="main")
    control = wr.stream(spark.stream(SCHEMA), "t", slack="2 seconds", idle_after="30 seconds", name="control")
    other = wr.stream(spark.stream(SCHEMA), "t", delay="5 seconds", name="other")
    united = main.union(control, other).window("1 minute").group_by("k").agg(n=wr.count())
    running = spark.start(united)
    assert running.push({}).wanted == {}  # nothing waits
    first = {"main": rows((1, "a", 0, 0), (70, "a", 0, 1)), "control": rows((3, "a", 0, 2))}
    assert running.push(first).wanted == {0: 0, 1: micros(65)}
    assert running.push({}, asked=micros(80)).wanted == {0: micros(110)}  # other has said enough
    assert running.push({}, asked=micros(100)).wanted == {0: micros(110)}
    done = running.push({}, asked=micros(110))
    assert done.results["n"].to_list() == [2]
    # The next window ends at 120: each is asked when its answer closes it, and main is not asked at all.
    assert done.wanted == {0: micros(150), 1: micros(125)}


def test_what_is_wanted_passes_through_stages():
    spark = SimulatedSpark(2)
    packets = wr.stream(spark.stream(SCHEMA), "t", delay="5 seconds", name="packets")
    counted = packets.window("1 minute").group_by("k").agg(n=wr.count())
    running = spark.start(counted.window("1 hour").agg(n=wr.sum("n")))
    assert running.push({"packets": rows((1, "a", 0, 0))}).wanted == {0: micros(65)}
    assert running.push({}, asked=micros(65)).wanted == {0: micros(3605)}
    assert running.push({}, asked=micros(3605)).results["n"].to_list() == [1]


def test_an_answer_beside_rows_says_only_since_when_a_source_is_idle():
    spark = SimulatedSpark(2)
    main = wr.stream(spark.stream(SCHEMA), "t", slack="2 seconds", name="main")
    control = wr.stream(spark.stream(SCHEMA), "t", slack="2 seconds", idle_after="30 seconds", name="control")
    other = wr.stream(spark.stream(SCHEMA), "t", delay="5 seconds", name="other")
    running = spark.start(main.union(control, other).window("1 minute").agg(n=wr.count()))
    given = {"main": rows((1, "a", 0, 0), (70, "a", 0, 1)), "control": rows((3, "a", 0, 2))}
    # Rows of control that are older may be on their way: Spark may have left some for the next micro-batch.
    assert running.push(given, asked=micros(80)).wanted == {0: micros(110)}
    given = {"other": rows((61, "a", 0, 3)), "control": rows().clear()}
    assert running.push(given, asked=micros(110)).results["n"].to_list() == [2]


def test_a_task_without_rows_says_nothing():
    """It made a source that had been idle begin to be idle anew."""
    spark = SimulatedSpark(2)
    source = wr.stream(spark.stream(SCHEMA), "t", slack="2 seconds", idle_after="30 seconds", name="s")
    running = spark.start(source.window("10 seconds").agg(n=wr.count()))
    running.push({"s": rows((1, "a", 0, 0))})
    running.push({}, asked=micros(60))
    running.push({"s": rows()})  # Spark runs a task for it all the same
    assert running.push({}, asked=micros(90)).results["n"].to_list() == [1]
