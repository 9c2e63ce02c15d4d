"""Once: what several queries compute from the same batch is computed once, and is what each would compute alone."""

import gc
import weakref

import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from restarting import Restarting

from windrow.operators import Fused, Project, Retime, Select, Side
from windrow.operators.operator import Stateless
from windrow.operators.rows.once import Last, Once
from windrow.progress import END, START, Punctuation

SCHEMA = {"t": pl.Int64(), "x": pl.Int64()}
ROWS = st.lists(st.tuples(st.none() | st.integers(0, 40), st.none() | st.integers(-2, 2)), max_size=6)
QUERIES = 3


def batch(*rows):
    return pl.DataFrame(list(rows), SCHEMA, orient="row")


def select():
    return Select(pl.col("x") > 0)


def retime():
    return Retime("t", pl.Int64(), pl.col("t") // 10 * 10, pl.Int64())  # a row whose t is NULL leaves by the side


OPERATORS = {
    "select": select,
    "retime": retime,
    "a chain": lambda: Fused([select(), Project([pl.col("t"), (pl.col("x") * 2).alias("y")]), retime()]),
}


class Counted(Stateless):
    """Counts what is computed, in a list that outlives a restart."""

    def __init__(self, operator, computed):
        self.operator, self.computed = operator, computed

    def on_batch(self, port, batch):
        self.computed.append(batch)
        return self.operator.on_batch(port, batch)

    def on_punctuation(self, port, promise):
        return self.operator.on_punctuation(port, promise)


def sharing(make=select, queries=2):
    """As many operators that share their results, where these are, and a list of all batches that were computed."""
    last, computed = Last(), []
    return [Once(Counted(make(), computed), last) for _ in range(queries)], last, computed


def shown(items):
    return [
        (item.schema, item.rows())
        if isinstance(item, pl.DataFrame)
        else (item, item.rows.rows() if isinstance(item, Side) else None)
        for item in items
    ]


# -- like the operator alone -------------------------------------------------------------------------------------------
# A batch goes to some of the queries (others may have begun later), in any order: the strategy of the graph chooses.
READERS = st.lists(st.integers(0, QUERIES - 1), max_size=QUERIES, unique=True)
STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("batch"), st.integers(0, 3), READERS),
        st.tuples(st.just("promise"), st.integers(0, 40), READERS),
        st.tuples(st.just("restore"), st.just(0), READERS),
        st.just(("clear", 0, [])),
    ),
    max_size=15,
)


@pytest.mark.parametrize("make", OPERATORS.values(), ids=OPERATORS)
@settings(deadline=None, derandomize=True, max_examples=60)
@given(st.lists(ROWS, min_size=4, max_size=4), STEPS)
def test_each_query_gets_what_its_operator_alone_gives(make, rows, steps):
    """Any batches, also equal ones and one again after others; any promises; a restore or a clear between any two."""
    last, computed, expected, current = Last(), [], 0, None
    shared = [Restarting(lambda: Once(Counted(make(), computed), last)) for _ in range(QUERIES)]
    alone = [Restarting(make) for _ in range(QUERIES)]
    batches = [batch(*some) for some in rows]
    for kind, which, readers in steps:
        if kind == "clear":
            last.clear()
            current = None
        for query in readers:
            one, other = shared[query], alone[query]
            if kind == "batch":
                expected += current is not batches[which]
                current = batches[which]
                assert shown(one.on_batch(0, current)) == shown(other.on_batch(0, current))
            elif kind == "promise":
                assert one.promise(0, which) == other.promise(0, which)
            else:
                one.restart()
                other.restart()
    assert len(computed) == expected


def test_a_batch_is_computed_once_for_all_and_its_rows_are_there_once():
    queries, _, computed = sharing(queries=5)
    for rows in (batch((1, 1), (2, -1)), batch((3, 1), (3, None))):
        found = [query.on_batch(0, rows) for query in queries]
        assert [item.rows() for [item] in found] == [rows.rows()[:1]] * 5
        assert all(item is found[0][0] for [item] in found)
    assert len(computed) == 2


def test_what_leaves_by_the_side_is_given_to_each_query():
    queries, _, computed = sharing(retime)
    rows = batch((None, 1), (12, 1))
    for query in queries:
        kept, side = query.on_batch(0, rows)
        assert kept.select("t", "@t").rows() == [(12, 10)]
        assert (side.kind, side.count) == ("bad", 1)
    assert len(computed) == 1


def test_nothing_is_a_result_too():
    class Nothing(Stateless):
        def on_batch(self, port, batch):
            return []

    (first, second), _, computed = sharing(Nothing)
    rows = batch((1, 1))
    assert (first.on_batch(0, rows), second.on_batch(0, rows), len(computed)) == ([], [], 1)


def test_what_one_query_does_with_its_list_is_not_seen_by_others():
    (first, second), _, _ = sharing()
    rows = batch((1, 1))
    first.on_batch(0, rows).clear()
    assert len(second.on_batch(0, rows)) == 1


# -- which batch -------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize(
    "again", [pl.DataFrame.clone, lambda rows: batch(*rows.rows())], ids=["a clone", "the same rows"]
)
def test_a_batch_that_is_equal_is_another_batch(again):
    (first, second), last, computed = sharing()
    one = batch((1, 1))
    other = again(one)
    first.on_batch(0, one)
    second.on_batch(0, other)
    assert [id(rows) for rows in computed] == [id(one), id(other)]
    assert last.given is other


def test_batches_of_equal_shape_are_not_confused():
    (first, second), _, _ = sharing()
    one, other = batch((1, 1)), batch((2, 2))
    assert first.on_batch(0, one)[0].rows() == [(1, 1)]
    assert second.on_batch(0, other)[0].rows() == [(2, 2)]
    assert first.on_batch(0, other)[0].rows() == [(2, 2)]
    assert second.on_batch(0, one)[0].rows() == [(1, 1)]


def test_a_batch_at_the_address_of_an_earlier_one_is_not_taken_for_it():
    """Many short-lived batches: without a hold on the last one, its address would soon be that of another."""
    last = Last()
    queries = [Once(select(), last) for _ in range(2)]
    for i in range(1, 200):
        assert queries[i % 2].on_batch(0, batch((i, i), (i, -1)))[0].rows() == [(i, i)]


# -- letting go --------------------------------------------------------------------------------------------------------
def test_clear_lets_go_of_the_batch_and_of_what_came_of_it():
    (first, second), last, computed = sharing()
    rows = batch((1, 1), (2, -1))
    [result] = first.on_batch(0, rows)
    held = [weakref.ref(rows), weakref.ref(result)]
    computed.clear()
    del rows, result
    gc.collect()
    assert all(ref() is not None for ref in held)
    last.clear()
    gc.collect()
    assert all(ref() is None for ref in held)
    assert (last.given, last.found) == (None, [])
    assert second.on_batch(0, batch((1, 1)))[0].rows() == [(1, 1)]


def test_the_next_batch_replaces_the_last():
    (first, _), _, computed = sharing()
    rows = batch((1, 1))
    first.on_batch(0, rows)
    held = weakref.ref(rows)
    computed.clear()
    del rows
    first.on_batch(0, batch((2, 1)))
    gc.collect()
    assert held() is None


def test_after_clear_the_same_batch_is_computed_again():
    (first, second), last, computed = sharing()
    rows = batch((1, 1))
    first.on_batch(0, rows)
    last.clear()
    assert second.on_batch(0, rows)[0].rows() == [(1, 1)]
    assert len(computed) == 2


# -- errors ------------------------------------------------------------------------------------------------------------
class Failing(Stateless):
    """Fails for batches of two rows, as often as it is told."""

    def __init__(self, times):
        self.times = times

    def on_batch(self, port, batch):
        if batch.height == 2 and self.times:
            self.times.pop()
            raise ZeroDivisionError("division by zero")
        return [batch]


def test_an_error_is_not_remembered_as_a_result():
    times = [1, 2]
    queries, _, computed = sharing(lambda: Failing(times), 3)
    good, ill = batch((1, 1)), batch((1, 1), (2, 2))
    assert [query.on_batch(0, good) for query in queries] == [[good]] * 3
    for query in queries[:2]:
        with pytest.raises(ZeroDivisionError):
            query.on_batch(0, ill)
    assert queries[2].on_batch(0, ill)[0] is ill  # neither nothing, nor what came of the batch before
    assert queries[0].on_batch(0, ill)[0] is ill
    assert len(computed) == 1 + 3


def test_after_an_error_the_batch_before_has_its_own_result():
    (first, second), _, _ = sharing(lambda: Failing([1]))
    good = batch((1, 1))
    first.on_batch(0, good)
    with pytest.raises(ZeroDivisionError):
        first.on_batch(0, batch((1, 1), (2, 2)))
    assert second.on_batch(0, good)[0] is good


# -- promises ----------------------------------------------------------------------------------------------------------
def test_promises_pass_and_nothing_is_remembered():
    (first, second), _, computed = sharing()
    first.on_batch(0, batch((1, 1)))
    for promise in (Punctuation(5), Punctuation(3), Punctuation(9, "a"), Punctuation(START), Punctuation(END)):
        for query in (first, second):
            assert query.on_punctuation(0, promise) == [promise]
    assert len(computed) == 1
    assert (first.snapshot(), first.changes(), first.state_bytes(), first.waits_for()) == ({}, {}, 0, [])
    assert first.on_flush() == []


def test_each_query_is_told_its_own_promises():
    """An operator that sends only news has news for each query by itself."""
    (first, second), _, _ = sharing(retime)
    assert first.on_punctuation(0, Punctuation(17)) == [Punctuation(10)]
    assert second.on_punctuation(0, Punctuation(18)) == [Punctuation(10)]
    assert first.on_punctuation(0, Punctuation(19)) == []
    assert first.on_punctuation(0, Punctuation(25)) == [Punctuation(20)]
    assert second.on_punctuation(0, Punctuation(25)) == [Punctuation(20)]
