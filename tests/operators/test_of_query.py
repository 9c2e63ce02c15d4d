"""OfQuery: of what a shared stage puts out, exactly the rows of one query, in their order."""

import polars as pl
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from restarting import Restarting

import windrow as wr
from windrow.operators.rows.of_query import OfQuery
from windrow.progress import END, START, Punctuation

CHECK = settings(deadline=None, derandomize=True, max_examples=100)
FIELDS = {
    "a": {"n": pl.Int64(), "s": pl.String()},
    "b": {"n": pl.Int64()},
    "c": {"l": pl.List(pl.Int64()), "r": pl.Struct({"x": pl.Int64()}), "f": pl.Float64()},
}
SCHEMA = {name: pl.Struct(fields) for name, fields in FIELDS.items()}
VALUES = {
    "n": st.none() | st.integers(-3, 3),
    "s": st.none() | st.sampled_from(["", "x"]),
    "l": st.none() | st.lists(st.none() | st.integers(0, 2), max_size=2),
    "r": st.none() | st.fixed_dictionaries({"x": st.none() | st.integers(0, 2)}),
    "f": st.none() | st.sampled_from([0.5, float("inf")]),
}
# Rows as the stage puts them out: the query that each belongs to, and its fields. Often all of them are NULL.
ROW = st.sampled_from(list(FIELDS)).flatmap(
    lambda name: st.tuples(
        st.just(name),
        st.fixed_dictionaries({f: VALUES[f] for f in FIELDS[name]}) | st.just(dict.fromkeys(FIELDS[name])),
    )
)
ROWS = st.lists(ROW, max_size=12)
NOTHING = [("a", dict.fromkeys(FIELDS["a"])), ("b", {"n": None}), ("c", dict.fromkeys(FIELDS["c"]))]


def whole(rows):
    """One frame of rows of any queries."""
    return pl.DataFrame([{name: row} for name, row in rows], SCHEMA, orient="row")


def pieces(rows):
    """The same, put together as the stage does: what one query releases is a frame, and NULL in the other columns."""
    frames = [pl.DataFrame(schema=SCHEMA)]
    for name, row in rows:
        own = pl.DataFrame([row], FIELDS[name]).to_struct(name).cast(SCHEMA[name])
        rest = {other: pl.Series(other, [None], dtype) for other, dtype in SCHEMA.items()}
        frames.append(pl.DataFrame([own if other == name else rest[other] for other in SCHEMA]))
    return pl.concat(frames, rechunk=False)


def of(name, rows, columns=None):
    """The rows of a query, as tuples in the order of the columns."""
    return [tuple(row[c] for c in columns or FIELDS[name]) for owner, row in rows if owner == name]


def rows_of(items):
    """The rows that an operator has put out."""
    return [row for item in items for row in item.rows()]


# -- rows --------------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("made", [whole, pieces])
@CHECK
@given(rows=ROWS, data=st.data())
@example(rows=NOTHING, data=None)
@example(rows=NOTHING[:1], data=None)
@example(rows=NOTHING[:1] * 2 + NOTHING[1:], data=None)
def test_each_query_gets_its_rows_in_order_and_no_others(made, rows, data):
    """Any order of rows, batches of any size, and a restore between any two."""
    sizes = [1, 2] if data is None else data.draw(st.lists(st.integers(1, 5), min_size=1, max_size=4))
    restore = data is not None and data.draw(st.booleans())
    order = range(len(rows)) if data is None else data.draw(st.permutations(range(len(rows))))
    frame, rows = made(rows)[list(order)], [rows[i] for i in order]
    assert frame.schema == SCHEMA
    for name, fields in FIELDS.items():
        operator = Restarting(lambda n=name, f=fields: OfQuery(n, list(f)))
        found, at = [], 0
        while at < frame.height:
            size = sizes[at % len(sizes)]
            items = operator.on_batch(0, frame[at : at + size])
            assert rows_of(items) == of(name, rows[at : at + size])
            assert all(item.height and item.schema == fields for item in items), "never an empty batch"
            found, at = found + items, at + size
            if restore:
                operator.restart()
        assert rows_of(found) == of(name, rows) == rows_of(operator.on_batch(0, frame))


@CHECK
@given(ROWS, st.lists(st.booleans(), min_size=12, max_size=12))
def test_rows_that_were_filtered_before(rows, kept):
    mask = kept[: len(rows)]
    frame = pieces(rows).filter(pl.Series(mask, dtype=pl.Boolean))
    left = [row for row, keep in zip(rows, mask, strict=True) if keep]
    for name, fields in FIELDS.items():
        assert rows_of(OfQuery(name, list(fields)).on_batch(0, frame)) == of(name, left)


def test_a_batch_without_rows_of_the_query_gives_nothing():
    rows = [("a", {"n": 1, "s": "x"}), ("a", {"n": None, "s": None})]
    for frame in (whole(rows), whole(rows)[:0], pieces([])):
        assert OfQuery("b", ["n"]).on_batch(0, frame) == []


@pytest.mark.parametrize("made", [whole, pieces])
@pytest.mark.parametrize("rows", [NOTHING[:1], NOTHING, NOTHING[:1] * 3, [*NOTHING, ("a", {"n": 1, "s": None})]])
def test_a_row_of_nothing_but_null_is_a_row(made, rows):
    """A struct whose fields are all NULL is a row of the query; a NULL struct is a row of another."""
    for name, fields in FIELDS.items():
        assert rows_of(OfQuery(name, list(fields)).on_batch(0, made(rows))) == of(name, rows)


def test_a_query_whose_results_are_null_has_them_all_the_same():
    """The same with what SharedPanes really puts out: the maximum of nothing but NULL."""
    rows = [{"t": t, "x": None if t < 20 else t} for t in range(40)]
    s = wr.stream(pl.DataFrame(rows, {"t": pl.Int64, "x": pl.Int64}), "t", name="s")
    queries = {"hi": s.window(10).agg(hi=wr.max("x")).select("hi"), "n": s.window(20).agg(n=wr.count()).select("n")}
    plan = wr.together(**queries).plan()
    assert [stage.algorithm for stage in plan.stages()] == ["shared-panes"]
    released = wr.together(**queries).run().push("s", rows).end().results()
    assert rows_of(OfQuery("hi", ["hi"]).on_batch(0, released)) == [(None,), (None,), (29,), (39,)]
    assert rows_of(OfQuery("n", ["n"]).on_batch(0, released)) == [(20,), (20,)]


# -- columns -----------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("columns", [["l", "r", "f"], ["f", "l", "r"], ["r", "f"], ["f"]])
@pytest.mark.parametrize("others", [True, False], ids=["beside others", "alone"])
def test_columns_are_in_the_order_that_is_asked_for(columns, others):
    rows = [("c", {"l": [1], "r": {"x": None}, "f": 0.5}), ("c", {"l": None, "r": None, "f": None})]
    rows = [*rows, *NOTHING] if others else rows
    [found] = OfQuery("c", columns).on_batch(0, whole(rows))
    assert found.schema == {c: FIELDS["c"][c] for c in columns}
    assert found.columns == columns
    assert found.rows() == of("c", rows, columns)


def test_a_struct_in_a_row_stays_what_it_is():
    """NULL in a column of a row, and a struct of NULL in one, are two things."""
    rows = [("c", {"l": [], "r": {"x": None}, "f": None}), ("c", {"l": [None], "r": None, "f": None}), NOTHING[0]]
    [found] = OfQuery("c", ["l", "r", "f"]).on_batch(0, whole(rows))
    assert found["r"].to_list() == [{"x": None}, None]
    assert found["l"].to_list() == [[], [None]]


def test_the_batch_is_not_changed():
    frame = whole(NOTHING)
    before = frame.clone()
    for name, fields in FIELDS.items():
        OfQuery(name, list(fields)).on_batch(0, frame)
    assert frame.equals(before)


# -- promises ----------------------------------------------------------------------------------------------------------
def test_promises_pass_unchanged_and_nothing_is_remembered():
    operator = OfQuery("a", ["n", "s"])
    for promise in (Punctuation(5), Punctuation(3), Punctuation(9, "a"), Punctuation(START), Punctuation(END)):
        assert operator.on_punctuation(0, promise) == [promise]
    operator.on_batch(0, whole(NOTHING))
    assert (operator.snapshot(), operator.changes(), operator.state_bytes(), operator.waits_for()) == ({}, {}, 0, [])
    assert operator.on_flush() == []
