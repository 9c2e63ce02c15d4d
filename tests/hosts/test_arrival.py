"""When rows arrived, and as which: the same results as over columns that say so."""

import random
from datetime import UTC, datetime, timedelta

import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import windrow as wr
from windrow.errors import CheckpointError, DataError, PlanError, QueryError
from windrow.testing import compare, replay
from windrow.testing.disturbed import disturbed
from windrow.testing.simulated import Checkpoint, SimulatedSpark

AT = datetime(2024, 1, 1, tzinfo=UTC)
SCHEMA = {"x": pl.Int64(), "k": pl.String()}
EMPTY = pl.DataFrame(schema=SCHEMA)
TIMED = pl.DataFrame(schema={**SCHEMA, "arrival_ts": pl.Datetime("us", "UTC"), "row_num": pl.Int64()})
QUERIES = [
    "SELECT k, count(*) AS n, sum(x) AS y FROM s [RANGE '30 seconds', SLIDE '10 seconds', WA arrival_ts] GROUP BY k",
    "SELECT k, count(*) AS n FROM s [SESSION '8 seconds', WA arrival_ts] GROUP BY k",
    "SELECT max(x) AS top FROM s [RANGE '20 seconds', RATTR arrival_ts, SLIDE 1 ROWS, SATTR rank(arrival_ts)]",
    "SELECT arrival_ts, count(*) AS n FROM s WHERE x > 3 GROUP BY arrival_ts",
    "SELECT x, arrival_ts FROM s WHERE second(arrival_ts) < 40",
    "SELECT sum(x) AS total FROM s [RANGE 5 ROWS, SLIDE 2 ROWS, WA row_num]",
    "SELECT k, sum(x) AS total FROM s [RANGE 3 ROWS, SLIDE 1 ROWS, PA k]",
    "SELECT max(x) AS top FROM s [RANGE '20 seconds', RATTR arrival_ts, SLIDE 2 ROWS, SATTR row_num]",
    "SELECT a.x, b.x AS y FROM s AS a [RANGE '9 seconds', WA arrival_ts], s AS b [RANGE '5 seconds', WA arrival_ts] "
    "WHERE a.k = b.k",
    "SELECT row_num, arrival_ts, k FROM s",
]
BATCHES = st.lists(
    st.tuples(st.integers(-3, 15), st.lists(st.tuples(st.integers(0, 9), st.sampled_from("ab")), max_size=4)),
    min_size=1,
    max_size=12,
)


class Clock:
    """Virtual time: it stands still until it is moved, in either direction."""

    def __init__(self):
        self.now = AT

    def __call__(self):
        return self.now


def declared(query, data=EMPTY, **options):
    options = {"progress": "arrival_ts"} | options
    return wr.sql(query, s=wr.stream(data, name="s", **options))


def frames(batches):
    """Each batch, the same with the columns that it should get, and how far the clock moves before it."""
    latest, now, count = AT - timedelta(days=1), AT, 0
    for moved, rows in batches:
        now += timedelta(seconds=moved)
        latest = max(latest, now)
        frame = pl.DataFrame(rows, schema=SCHEMA, orient="row")
        numbers = pl.int_range(count, count + frame.height, dtype=pl.Int64).alias("row_num")
        stamp = pl.lit(latest).cast(pl.Datetime("us", "UTC")).alias("arrival_ts")
        yield now, frame, frame.with_columns(stamp, numbers)
        count += frame.height


@pytest.mark.parametrize("query", QUERIES)
@settings(max_examples=60, deadline=None)
@given(batches=BATCHES, seed=st.integers(0, 99))
def test_rows_are_stamped_as_if_they_had_the_columns(query, batches, seed):
    clock, rng = Clock(), random.Random(seed)
    run = declared(query).run(clock)
    explicit = declared(query, TIMED, slack=0, row_num="row_num").run()
    for now, bare, timed in frames(batches):
        clock.now = now
        if rng.random() < 0.3:
            run = declared(query).run(clock).restore(run.snapshot())
        found = run.push("s", bare).results()
        compare(found, explicit.push("s", timed).results(), "a batch")
    compare(run.end().results(), explicit.end().results(), "the end")
    assert run.counts["rows_late"] == run.counts["rows_bad"] == 0


def test_stamps_do_not_go_back_after_a_restore():
    clock = Clock()
    clock.now += timedelta(hours=1)
    query = declared("SELECT x, arrival_ts, row_num FROM s")
    run = query.run(clock)
    [first] = run.push("s", [{"x": 1, "k": "a"}]).results().rows()
    clock.now = AT
    [second] = query.run(clock).restore(run.snapshot()).push("s", [{"x": 2, "k": "a"}]).results().rows()
    assert (first, second) == ((1, AT + timedelta(hours=1), 0), (2, AT + timedelta(hours=1), 1))
    with pytest.raises(CheckpointError, match="arrival_ts and row_num as rows arrive"):  # columns are something else
        declared("SELECT x, arrival_ts, row_num FROM s", TIMED, slack=0).run().restore(run.snapshot())


def test_a_promise_about_arrival_is_kept():
    clock = Clock()
    run = declared(QUERIES[0]).run(clock).push("s", [{"x": 1, "k": "a"}])
    assert run.promise("s", AT + timedelta(minutes=1)).results()["n"].to_list() == [1, 1, 1]
    run.push("s", [{"x": 1, "k": "a"}])  # the clock is behind the promise, and the row is not late
    assert (run.end().results()["n"].to_list(), run.counts["rows_late"]) == ([1, 1, 1], 0)


def test_finite_data_arrives_at_once():
    found = wr.stream([{"x": 1}, {"x": 2}], progress="arrival_ts").select("x", "arrival_ts", "row_num").collect()
    assert found["arrival_ts"].n_unique() == 1
    assert found["arrival_ts"].dtype == pl.Datetime("us", "UTC")
    assert found["row_num"].to_list() == [0, 1]


def test_a_column_of_that_name_in_the_data_wins():
    rows = [{"t": 1, "arrival_ts": 7, "row_num": 9}]
    s = wr.stream(rows, progress="t", name="s")
    assert wr.sql("SELECT arrival_ts, row_num FROM s", s=s).collect().rows() == [(7, 9)]
    with pytest.raises(QueryError, match="windows over arrival_ts would never close"):
        wr.sql("SELECT count(*) AS n FROM s [RANGE 5, WA arrival_ts]", s=s)
    with pytest.raises(PlanError, match="declare row_num='row_num'"):
        s.rows(5).agg(n=wr.count())
    other = wr.stream([{"t": 1, "x": 3}], progress="t")  # named alone, it is the column, not one of the other table
    query = "SELECT arrival_ts, x FROM s [RANGE 5], other [RANGE 5]"
    assert wr.sql(query, s=s, other=other).collect().rows() == [(7, 3)]


def test_a_star_does_not_stand_for_what_is_not_declared():
    s = wr.stream([{"t": 1, "x": 3}], progress="t", name="s")
    r = wr.stream([{"t": 1, "y": 3}], progress="t", name="r")
    assert wr.sql("SELECT * FROM s WHERE arrival_ts IS NOT NULL", s=s).collect().rows() == [(1, 3)]
    assert wr.sql("SELECT a.* FROM s AS a [RANGE 5], r [RANGE 5] WHERE a.arrival_ts IS NOT NULL", s=s, r=r).schema == {
        "t": pl.Int64(),
        "x": pl.Int64(),
    }
    renamed = "SELECT b FROM (SELECT * FROM s WHERE row_num = 0) AS z(a, b)"
    assert wr.sql(renamed, s=s).collect().rows() == [(3,)]
    assert list(wr.stream([{"x": 3}], progress="arrival_ts").schema) == ["x", "arrival_ts"]


def test_other_attributes_beside_it():
    """A stream that progresses on a text, with markers, and windows over its arrival."""
    rows = [{"t": "2024-01-01 00:00:05", "m": None}]
    options = {"parse": "iso8601", "punctuation": "m", "name": "s"}
    s = wr.stream(pl.DataFrame(rows, schema={"t": pl.String, "m": pl.Datetime("us", "UTC")}), "t", **options)
    clock = Clock()
    run = s.window("10 seconds", on="arrival_ts").agg(n=wr.count(), last=wr.max("t")).run(clock)
    run.push("s", [*rows, {"t": None, "m": AT}])
    assert run.end().results().rows() == [(AT, AT + timedelta(seconds=10), 1, AT + timedelta(seconds=5))]
    assert run.counts["promises_ignored"] == 1


def test_rows_from_wrong_clocks_are_told_by_their_arrival():
    schema = {"t": pl.Datetime("us", "UTC")}
    s = wr.stream(pl.DataFrame(schema=schema), "t", slack="1 minute", arrival="arrival_ts", ahead="1 minute", name="s")
    run = s.window("1 minute").agg(n=wr.count()).run(Clock())
    run.push("s", [{"t": AT}, {"t": AT + timedelta(minutes=2)}])
    assert run.counts["rows_bad"] == 1


@pytest.mark.parametrize(
    "options",
    [{"slack": "1 second"}, {"punctuation": "x"}, {"punctuation": wr.promise.ordered()}, {"parse": "iso8601"}],
)
def test_it_makes_its_own_promises(options):
    with pytest.raises(QueryError, match="makes its promises by itself"):
        wr.stream(EMPTY, progress="arrival_ts", **options)


def test_what_cannot_be_is_refused():
    s = wr.stream(EMPTY, progress="arrival_ts", name="s")
    with pytest.raises(DataError, match="get arrival_ts as they arrive"):
        s.run().push("s", [{"x": 1, "arrival_ts": AT}])
    with pytest.raises(DataError, match="get arrival_ts as they arrive"):
        s.run().push("s", TIMED)
    with pytest.raises(QueryError, match="so its slack is 0"):
        wr.stream(pl.DataFrame({"t": [1]}), progress="t", also={"arrival_ts": "1 second"})
    with pytest.raises(DataError, match="no columns"):
        wr.stream([], progress="arrival_ts")
    with pytest.raises(QueryError, match="must return a datetime, not 5"):
        s.run(lambda: 5).push("s", [{"x": 1}])
    with pytest.raises(QueryError, match="must be a function"):
        s.run(clock=5)
    t = wr.stream(pl.DataFrame({"t": [1], "x": [1]}), progress="t", name="t")
    with pytest.raises(QueryError, match="twice, once with arrival_ts and once without"):
        t.where("arrival_ts IS NOT NULL").join(t, on="x", within=(0, 1)).collect()
    with pytest.raises(QueryError, match="twice, once with row_num and once without"):
        wr.sql("SELECT t, row_num AS x FROM a UNION ALL SELECT t, x FROM b", a=t, b=t.select("t", "x"))


# -- on Spark ----------------------------------------------------------------------------------------------------------
ON_SPARK = [query for query in QUERIES if "row_num" not in query and "PA k" not in query]


@pytest.mark.parametrize("query", ON_SPARK)
@pytest.mark.parametrize("seed", range(2))
def test_micro_batches_that_run_again_have_the_same_stamps(query, seed):
    rng = random.Random(seed)
    rows = [[(rng.randint(0, 9), rng.choice("ab")) for _ in range(rng.randint(0, 6))] for _ in range(12)]
    micro = [pl.DataFrame(each, schema=SCHEMA, orient="row") for each in rows]
    found = disturbed(lambda spark: declared(query, spark.stream(SCHEMA)), [{"s": [f[:2], f[2:]]} for f in micro], seed)
    clock = Clock()
    run = declared(query).run(clock)
    for number, (each, frame) in enumerate(zip(found, micro, strict=True)):
        clock.now = AT + timedelta(seconds=number)
        compare(each.results, run.push("s", frame).results(), f"micro-batch {number}")


def test_a_micro_batch_keeps_its_time_over_a_restart():
    clock, checkpoint = Clock(), Checkpoint()
    for commit in (False, True):
        spark = SimulatedSpark(clock=clock)
        clock.now += timedelta(minutes=1)
        running = spark.start(declared("SELECT x, arrival_ts FROM s", spark.stream(SCHEMA)), checkpoint)
        found = running.push({"s": pl.DataFrame({"x": [1], "k": ["a"]})}, commit).results
        assert found.rows() == [(1, AT + timedelta(minutes=1))]


def test_on_a_finite_dataframe_all_rows_arrive_at_once():
    spark = SimulatedSpark()
    found = spark.collect(declared(QUERIES[0], spark.frame(pl.DataFrame({"x": [1, 2, 3], "k": list("aab")}))))
    assert sorted(found.select("k", "n").rows()) == [("a", 2)] * 3 + [("b", 1)] * 3


@pytest.mark.parametrize("columns", [{}, {"partition": pl.Int32(), "offset": pl.Int64()}])
def test_spark_does_not_number_rows(columns):
    data = SimulatedSpark().stream({**SCHEMA, **columns})
    s = wr.stream(data, progress="arrival_ts", name="s")
    for query in ("SELECT count(*) AS n FROM s [RANGE 5 ROWS]", "SELECT count(*) AS n FROM s [RANGE 5 ROWS, PA k]"):
        with pytest.raises(PlanError, match=r"would be numbered otherwise.*row_num=\('partition', 'offset'\)"):
            wr.sql(query, s=s)
    with pytest.raises(QueryError, match="Spark cannot number the rows itself"):
        wr.stream(data, progress="arrival_ts", row_num="row_num")
    with pytest.raises(QueryError, match="unknown column 'row_num'"):
        wr.sql("SELECT row_num FROM s", s=s)


def test_replays_refuse_what_depends_on_arrival():
    with pytest.raises(PlanError, match="known only when they arrive"):
        replay(declared(QUERIES[0], pl.DataFrame({"x": [1], "k": ["a"]})))


def test_queries_that_come_and_go_share_the_stamps_of_a_stream():
    minutes = iter(range(60))
    given = {"s": wr.stream(EMPTY, progress="arrival_ts"), "t": wr.stream(pl.DataFrame({"t": [1]}), "t", slack=0)}
    session = wr.Session(clock=lambda: datetime(2024, 1, 1, 12, next(minutes), tzinfo=UTC), **given)
    session.add("s", "SELECT count(*) AS n FROM s [RANGE '1 minute', WA arrival_ts]")
    session.add("plain", "SELECT t FROM t")
    for t in range(3):
        session.push("s", [{"x": 1, "k": "a"}]).push("t", [{"t": t}])
    session.add("numbered", "SELECT t, row_num FROM t")  # it sees the numbers that rows have in the stream
    session.push("t", [{"t": 3}, {"t": 4}])
    assert session.results("s")["n"].to_list() == [1, 1]
    assert session.results("plain")["t"].to_list() == [0, 1, 2, 3, 4]
    assert session.results("numbered").rows() == [(3, 3), (4, 4)]
    again = wr.Session(**given).restore(session.snapshot())
    again.push("t", [{"t": 5}])
    assert again.results("numbered").rows() == [(5, 5)]
