"""Punctuation that is wrong is named in an error or counted, and never obeyed."""

from datetime import UTC, date, datetime

import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import windrow as wr
from windrow.progress import Promises, Punctuation
from windrow.testing import Mismatch, accounted

CHECK = settings(deadline=None, derandomize=True, max_examples=120)
SCHEMA = {"t": pl.Int64(), "k": pl.String(), "m": pl.Int64()}
NOON = datetime(2024, 1, 1, 12, tzinfo=UTC)


def stream(**options):
    return wr.stream(pl.DataFrame(schema=SCHEMA), "t", name="s", **options)


def query(**options):
    return stream(**options).window(10).group_by("k").agg(n=wr.count())


def frame(*rows):
    return pl.DataFrame(rows, schema=SCHEMA, orient="row")


# -- backwards ---------------------------------------------------------------------------------------------------------
STEPS = st.lists(
    st.tuples(
        st.sampled_from(["row", "row", "bad", "mark", "mark"]), st.sampled_from([None, "a", "b"]), st.integers(0, 40)
    ),
    min_size=8,
    max_size=25,
)


@CHECK
@given(STEPS, st.lists(st.integers(1, 7), min_size=25, max_size=25), st.booleans())
def test_every_row_is_accounted_for_and_every_promise_that_goes_back_is_counted(steps, sizes, by_hand):
    """In whatever batches it all comes, by markers or by hand, with a restart after each batch."""
    q = query(punctuation="m", punctuation_by="k")
    run, released, rest, known, back, hands = q.run(), [], list(steps), {}, 0, 0
    while rest:
        size = 1 if by_hand else sizes.pop()
        batch, rest = rest[:size], rest[size:]
        for kind, k, at in batch:
            if kind == "mark":
                back += at < max(known.get(None, -1), known.get(k, -1))
                known[k] = max(at, known.get(k, -1))
        ((kind, k, at), *_) = batch
        if by_hand and kind == "mark":
            hands += 1
            run.promise("s", at, group=None if k is None else {"k": k})
        else:
            marked = {"row": lambda k, at: (at, k, None), "bad": lambda k, _: (None, k, None)}
            mark = marked | {"mark": lambda k, at: (None, k, at)}
            run.push("s", frame(*(mark[kind](k, at) for kind, k, at in batch)))
        released.append(run.results())
        counts, state = run.counts, run.snapshot()
        run = q.run().restore(state)
        run.counts = counts
    markers = sum(kind == "mark" for kind, *_ in steps) - hands
    released.append(run.end().results())
    accounted(run.counts, pl.concat(released), markers=markers)
    assert run.counts["promises_ignored"] == back
    assert run.counts["rows_bad"] == sum(kind == "bad" for kind, *_ in steps)


def test_a_promise_that_goes_back_closes_nothing_and_opens_nothing():
    run = query(slack=3).run().push("s", frame((15, "a", None), (2, "a", None)))
    assert run.results()["window_end"].to_list() == [10]
    run.promise("s", 5).promise("s", 12)  # 12 is known already, 5 is less
    assert run.counts["promises_ignored"] == 1
    run.push("s", frame((7, "a", None)))
    assert (run.counts["rows_late"], run.results().height) == (1, 0)
    run.promise("s", 9)
    assert run.counts["promises_ignored"] == 2


def test_a_function_that_goes_back_is_counted_and_an_estimate_is_not():
    said = iter([5, 3, 5, 9])
    run = query(punctuation=wr.promise.function(lambda seen: next(said))).run()
    for at in (6, 7, 8, 10):
        run.push("s", frame((at, "a", None)))
    assert run.counts["promises_ignored"] == 1
    run.promise("s", 4)
    assert run.counts["promises_ignored"] == 2
    run = query(punctuation=wr.promise.estimated(0)).run()
    for at in (50, 10, 60, 5, 55, 65, 1):
        run.push("s", frame((at, "a", None)))
    assert run.counts["promises_ignored"] == 0


# -- groups ------------------------------------------------------------------------------------------------------------
def test_a_promise_about_a_group_nobody_has_leaves_nothing_once_everyone_has_passed_it():
    promises = Promises()
    assert promises.give(Punctuation(30, ("quiet",)))
    assert promises.give(Punctuation(31))
    assert promises.groups == {}
    run = query(punctuation_by="k").run()
    nothing = run.state_bytes()
    for number in range(100):
        run.promise("s", 50, group={"k": f"quiet{number}"})
    assert run.state_bytes() > nothing
    assert "quiet7" in str([f.rows() for f in run.snapshot().values()])
    run.promise("s", 50)
    assert run.state_bytes() == nothing
    assert "quiet" not in str([f.rows() for f in run.snapshot().values()])
    assert run.counts["promises_ignored"] == 0
    assert run.push("s", frame((49, "quiet7", None))).counts["rows_late"] == 1


@pytest.mark.parametrize(
    ("dtype", "wrong", "right"),
    [
        (pl.String(), 7, "a"),
        (pl.Int64(), "7", 7),
        (pl.Int64(), True, 7),
        (pl.Int32(), 7.0, 7),
        (pl.Boolean(), 1, True),
        (pl.Date(), NOON, date(2024, 1, 1)),
        (pl.Datetime("us", "UTC"), date(2024, 1, 1), NOON),
    ],
)
def test_a_group_of_another_type_is_refused_and_one_of_the_right_type_found(dtype, wrong, right):
    empty = pl.DataFrame(schema={"t": pl.Int64(), "k": dtype})
    s = wr.stream(empty, "t", punctuation_by="k", name="s")
    run = (
        s.window(10)
        .group_by("k")
        .agg(n=wr.count())
        .run()
        .push("s", pl.DataFrame({"t": [1], "k": [right]}, empty.schema))
    )
    with pytest.raises(
        wr.QueryError, match=rf"about k=.*of type {type(wrong).__name__}, and k is of type {dtype!s:.4}"
    ):
        run.promise("s", 10, group={"k": wrong})
    assert run.results().height == 0
    assert run.promise("s", 10, group={"k": right}).results().height == 1


def test_a_group_in_another_zone_is_the_same_instant():
    empty = pl.DataFrame(schema={"t": pl.Int64(), "k": pl.Datetime("us")})
    run = wr.stream(empty, "t", punctuation_by="k", name="s").window(10).group_by("k").agg(n=wr.count()).run()
    run.push("s", pl.DataFrame({"t": [1], "k": [NOON.replace(tzinfo=None)]}, empty.schema))
    assert run.promise("s", 10, group={"k": NOON}).results().height == 1


def test_a_marker_about_a_group_of_another_type_is_bad():
    run = query(punctuation="m", punctuation_by="k").run().push("s", frame((1, "a", None)))
    odd = pl.DataFrame([(None, 7, 50)], schema={"t": pl.Int64, "k": pl.Int64, "m": pl.Int64}, orient="row")
    run.push("s", odd)
    assert run.bad_rows()["reason"].to_list() == ["the marker is about k of type Int64, and it is of type String"]
    assert (run.results().height, run.counts["promises_ignored"]) == (0, 0)


# -- types -------------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("column", ["k", "b"])
def test_a_marker_column_of_another_type_is_refused_when_the_query_is_planned(column):
    frame = pl.DataFrame(schema={"ts": pl.Datetime("us"), "k": pl.String, "b": pl.Int64})
    for build in (
        lambda: wr.stream(frame, "ts", punctuation=column),
        lambda: wr.stream(frame, "ts", punctuation=wr.promise.heartbeats(column)),
        lambda: wr.sql(f"SELECT ts FROM s PUNCTUATED BY markers({column})", s=wr.stream(frame, "ts")),
    ):
        with pytest.raises(wr.QueryError, match=f"'{column}' is of type {frame.schema[column]}, 'ts' of type Datetime"):
            build()


@pytest.mark.parametrize(
    ("dtype", "pushed", "good"),
    [
        (pl.Int64(), pl.Series(["soon", "20"]), 20),
        (pl.Int64(), pl.Series([1.5, 20.0]), None),
        (pl.Int64(), pl.Series([NOON, NOON]), None),
        (pl.Int32(), pl.Series([1 << 40, 20]), 20),
        (pl.Datetime("us"), pl.Series(["soon", "1970-01-01 00:00:20"]), 20_000_000),
        (pl.Datetime("us", "UTC"), pl.Series(["soon", "1970-01-01T00:00:20Z"]), 20_000_000),
        (pl.Datetime("us", "UTC"), pl.Series([5, 20]), None),
        (pl.Date(), pl.Series(["soon", "1970-01-21"]), 20),
        (pl.Date(), pl.Series([5, 20]), None),
    ],
)
def test_a_marker_that_does_not_fit_is_a_bad_row_and_promises_nothing(dtype, pushed, good):
    empty = pl.DataFrame(schema={"t": dtype, "m": dtype})
    run = wr.stream(empty, "t", punctuation="m", name="s").select("t").run()
    run.push("s", pl.DataFrame({"t": pl.Series([None, None], dtype=dtype), "m": pushed}))
    reason = f"the marker cannot be read as a value of type {dtype}"
    assert run.bad_rows()["reason"].to_list() == [reason] * (2 if good is None else 1)
    assert run.promised == good


@pytest.mark.parametrize("at", [True, 7.5, "soon", None])
def test_a_promise_by_hand_of_another_type_is_refused(at):
    empty = pl.DataFrame(schema={"ts": pl.Datetime("us")})
    run = wr.stream(empty, "ts", name="s").window("1 minute").agg(n=wr.count()).run()
    with pytest.raises(wr.QueryError, match=r"promise .* does not fit a column of type Datetime"):
        run.promise("s", at)
    with pytest.raises(wr.QueryError, match=r"promise .* does not fit a column of type Int64"):
        query().run().promise("s", at)


# -- another attribute -------------------------------------------------------------------------------------------------
def test_promises_on_time_say_nothing_about_windows_of_rows():
    numbered = wr.stream(frame((1, "a", None)), "t", punctuation="m", row_num="t", name="s")
    run = numbered.rows(2).agg(n=wr.count()).run()
    with pytest.raises(wr.QueryError, match=r"a promise on t has no effect here: the windows over 's' are over row nu"):
        run.promise("s", 5)
    run.push("s", frame((0, "a", None), (None, "a", 100), (None, "a", 90), (1, "a", None)))
    assert run.counts["promises_ignored"] == 2
    assert run.counts["rows_bad"] == 0
    assert run.end().results()["n"].to_list() == [2]


def test_a_source_of_which_some_windows_can_use_a_promise_takes_it():
    s = wr.stream(frame((1, "a", None)), "t", slack=100, row_num="t", name="s")
    by_rows = s.rows(2).agg(n=wr.count()).select("n")
    run = by_rows.union(s.window(10).agg(n=wr.count()).select("n")).run()
    assert run.push("s", frame((3, "a", None))).results().rows() == [(1,)]  # row 3 is the last of its two
    assert run.promise("s", 10).results().rows() == [(1,)]


def test_windows_over_another_attribute_than_the_promises_are_refused():
    with pytest.raises(wr.QueryError, match="the stream makes promises on t, so windows over m would never close"):
        wr.sql("SELECT count(*) AS n FROM s PUNCTUATED BY ordered() [RANGE 10, WA m]", s=stream())


def test_accounting_that_does_not_add_up_is_a_mismatch():
    counts = {"rows_in": 5, "rows_bad": 1, "rows_late": 1}
    accounted(counts, pl.DataFrame({"n": [2, 1]}))
    accounted(counts, pl.DataFrame({"n": [2]}), markers=1)
    with pytest.raises(Mismatch, match=r"here: 5 were read, 1 of them bad, 1 late .* leaves 3, .* results have 4"):
        accounted(counts, pl.DataFrame({"n": [4]}), where="here")
    with pytest.raises(ValueError, match="versions"):
        accounted(counts, pl.DataFrame({"n": [3], "version": [1]}))
