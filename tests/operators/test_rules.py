"""Rules that make promises: true if what they assume is, as strong as can be, and the same from parts as from all."""

import datetime as dt

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from windrow.errors import DataError, ResultError
from windrow.operators import Generate, Judge, Side, Witness
from windrow.progress import END, Punctuation
from windrow.spec.rules import (
    Answer,
    Asked,
    ByFunction,
    BySource,
    Estimated,
    RowSlack,
    answers,
)

CHECK = settings(deadline=None, derandomize=True, max_examples=80)
VALUES = st.lists(st.integers(0, 30), min_size=1, max_size=25)
CUTS = st.lists(st.integers(1, 6), min_size=1, max_size=25)


def rows(values, **columns):
    return pl.DataFrame({"@t": values, **columns}, schema_overrides={"@t": pl.Int64})


def batches(frame, cuts):
    """The frame in batches of the given sizes, again and again."""
    found, at = [], 0
    while at < frame.height:
        size = cuts[len(found) % len(cuts)]
        found.append(frame[at : at + size])
        at += size
    return found


def promised(items):
    """What is promised about everyone."""
    return [i.value for i in items if isinstance(i, Punctuation) and i.group is None]


def told(rule, parts, restart=True):
    """The promise in force after each batch; after each call the operator goes on from its own changes."""
    operator, chunks, last, found = Generate(rule), {}, None, []
    for batch in parts:
        news = promised(operator.on_batch(0, batch))
        last = news[-1] if news else last
        found.append(last)
        for name, frame in operator.changes().items():
            assert frame is not None
            chunks[name] = frame
        if restart:
            operator = Generate(rule)
            operator.restore(chunks)
    return found


def allowed(values, n):
    """Whether no row comes more than n rows after one with a greater value, by the definition."""
    return all(values[i] <= values[j] for j in range(len(values)) for i in range(max(0, j - n)))


# -- slack in rows -----------------------------------------------------------------------------------------------------
@CHECK
@given(VALUES, CUTS, st.integers(0, 5))
def test_rows_that_are_settled_are_promised_and_nothing_more_could_be(values, cuts, n):
    parts = batches(rows(values), cuts)
    seen = []
    for batch, promise in zip(parts, told(RowSlack(n), parts), strict=True):
        seen += batch["@t"].to_list()
        settled = seen[: max(0, len(seen) - n)]
        assert promise == (max(settled) if settled else None)
        if settled and allowed(seen, n):
            # A next row with the promised value keeps to the rule, so to promise one more would be wrong.
            assert allowed([*seen, promise], n)
            assert not allowed([*seen, promise - 1], n)


@CHECK
@given(VALUES, CUTS, st.integers(0, 5), st.randoms(use_true_random=False))
def test_parts_in_any_order_show_what_the_whole_shows(values, cuts, n, random):
    frame = rows(values, nr=list(range(len(values))), p=[v % 3 for v in values])
    for rule in (RowSlack(n, "nr"), BySource("p", n, 2), Estimated(0.9, 5)):
        whole, judge, witness = Generate(rule), Judge(rule), Witness(rule)
        last, parted = None, None
        for batch in batches(frame, cuts):
            last = (promised(whole.on_batch(0, batch)) or [last])[-1]
            middle = random.randint(0, batch.height)
            parts = [p for p in (batch[:middle], batch[middle:]) if p.height]
            random.shuffle(parts)
            shown = [i.rows for p in parts for i in witness.on_batch(0, p) if isinstance(i, Side)]
            parted = (promised(judge.on_batch(0, pl.concat(shown))) or [parted])[-1]
            if not isinstance(rule, Estimated):
                assert parted == last
        if isinstance(rule, Estimated) and len(values) > 10:  # by parts lateness is rounded up from other tops
            assert parted <= frame["@t"].max()


@CHECK
@given(VALUES, CUTS, st.integers(0, 5), st.data())
def test_rows_are_counted_and_not_their_numbers(values, cuts, n, data):
    """Issue 11: a gap in the numbers, of a compacted topic, settled rows that were not."""
    gaps = data.draw(st.lists(st.integers(1, 9), min_size=len(values), max_size=len(values)))
    numbered = rows(values, nr=np.cumsum(gaps))
    parts = batches(numbered, cuts)
    random = data.draw(st.randoms(use_true_random=False))
    witness, judge, found, last, sizes = Witness(RowSlack(n, "nr")), Judge(RowSlack(n, "nr")), [], None, []
    for batch in parts:
        tasks = [batch[[i for i in range(batch.height) if i % 3 == task]] for task in random.sample(range(3), 3)]
        shown = [i.rows for task in tasks for i in witness.on_batch(0, task) if isinstance(i, Side)]
        last = (promised(judge.on_batch(0, pl.concat(shown))) or [last])[-1]
        found.append(last)
        state, judge = judge.snapshot(), Judge(RowSlack(n, "nr"))
        judge.restore(state)
        sizes.append(sum(frame.height for name, frame in state.items() if name not in ("rows", "promised")))
    shuffled = [batch[random.sample(range(batch.height), batch.height)] for batch in parts]
    assert found == told(RowSlack(n), batches(rows(values), cuts)) == told(RowSlack(n, "nr"), shuffled)
    assert max(sizes) <= 2 * n + 2


def test_a_row_number_that_comes_twice_is_named():
    rule = RowSlack(2, "offset")
    for parts in ([[4, 5, 4]], [[4], [5, 4]], [[4, 5], [6, 5]]):
        frames = [rows([1] * len(numbers), offset=numbers) for numbers in parts]
        with pytest.raises(DataError, match=rf"the row number offset={4 + (len(parts[0]) == 2)} came twice"):
            told(rule, frames)
    judge, evidence = Judge(rule), [rule.evidence(rows([1, 1], offset=[0, 1])) for _ in range(2)]
    with pytest.raises(DataError, match="one partition"):
        judge.on_batch(0, pl.concat(evidence))


def test_the_state_of_a_version_without_ranges_goes_on():
    rule = RowSlack(2, "nr")
    old = {"steps": pl.DataFrame({"@number": [5, 7], "@t": [50, 70]}), "rows": pl.DataFrame({"@count": [0]})}
    memory, value = rule.promise(old, rule.evidence(rows([60], nr=[8])))
    assert value == 50
    assert rule.promise(memory, rule.evidence(rows([60], nr=[9])))[1] == 70


def test_rows_without_a_number_settle_nothing():
    rule = RowSlack(1, "nr")
    frame = rows([3, 9, 4], nr=pl.Series([0, None, 1], dtype=pl.Int64))
    assert told(rule, [frame]) == [3]


def test_what_is_remembered_of_rows_is_bounded_by_the_slack():
    rule = RowSlack(10)
    operator = Generate(rule)
    for start in range(0, 100_000, 1000):
        operator.on_batch(0, rows(list(range(start, start + 1000))))
    assert operator.judge.memory["steps"].height <= 12


# -- source partitions -------------------------------------------------------------------------------------------------
@CHECK
@given(VALUES, CUTS, st.integers(0, 4), st.integers(1, 3))
def test_the_slowest_partition_says_how_far_all_are(values, cuts, slack, count):
    frame = rows(values, p=[("a", "b", None)[(7 * v) % 3] for v in values])
    parts = batches(frame, cuts)
    tops, best = {}, None
    for batch, promise in zip(parts, told(BySource("p", slack, count), parts), strict=True):
        for t, p in batch.rows():
            tops[p] = max(t, tops.get(p, t))
        now = min(tops.values()) - slack if len(tops) >= count else None
        best = now if best is None else best if now is None else max(best, now)
        assert promise == best


@CHECK
@given(VALUES, CUTS, st.integers(0, 4))
def test_each_partition_promises_for_itself_and_nothing_twice(values, cuts, slack):
    frame = rows(values, p=[("a", "b", None)[(7 * v) % 3] for v in values])
    operator, tops, given_before = Generate(BySource("p", slack, 99)), {}, {}
    for batch in batches(frame, cuts):
        state = operator.snapshot()
        operator = Generate(BySource("p", slack, 99))
        operator.restore(state)
        for t, p in batch.rows():
            tops[p] = max(t, tops.get(p, t))
        found = {i.group: i.value for i in operator.on_batch(0, batch) if isinstance(i, Punctuation)}
        now = {(p,): top - slack for p, top in tops.items() if p is not None}
        assert found == {g: v for g, v in now.items() if v != given_before.get(g)}, "only what is new"
        given_before = now


# -- estimated slack ---------------------------------------------------------------------------------------------------
def disordered(rng, start, count, late):
    """One row per tick from ``start``, arriving up to ``late`` ticks late."""
    at = np.arange(start, start + count)
    return rows(at[np.argsort(at + rng.integers(0, late + 1, count), kind="stable")])


def shown_by(rule, there, rows):
    """The evidence of a micro-batch: which partitions there are, and the rows of some of them."""
    listed = rule.listed(pl.Series(there, dtype=pl.Int32))
    frame = pl.DataFrame(rows, schema={"p": pl.Int32, "@t": pl.Int64}, orient="row")
    return pl.concat([listed, rule.evidence(frame)])


def test_partitions_that_are_known_without_rows_hold_all_back_until_they_have_some():
    rule, memory, promised = BySource("p", 1, 0), {}, []
    for there, rows in (
        ([0, 1], [(0, 9)]),
        ([0, 1], [(1, 5)]),
        ([0, 1, 2], [(1, 20)]),  # one more has come
        ([0, 1, 2], [(2, 30), (0, 12)]),
        ([0, 2], [(2, 40)]),  # one has gone
    ):
        memory, value = rule.promise(memory, shown_by(rule, there, rows))
        promised.append(value)
    assert promised == [None, 4, None, 11, 11]
    assert [promise.group for promise in rule.groups(memory)] == [(0,), (2,)]


def test_answers_let_a_partition_without_rows_promise():
    rule = Asked(BySource("p", 1, 0), delay=5)
    memory, value = rule.asked({}, answers([Answer("0", 100, True, True), Answer("1", 100, True, False)]))
    assert value == 95
    memory, value = rule.promise(memory, shown_by(rule.rule, [0, 1], [(0, 300)]))
    assert value == 95
    memory, value = rule.asked(memory, answers([Answer("0", 200, False, True), Answer("1", 200, True, False)]))
    assert value == 195  # one is at 299 by its rows, and the other has given all it had


def test_an_empty_partition_of_a_source_that_is_not_asked_yet_holds_all_back():
    rule = Asked(BySource("p", 1, 0), delay=5)
    memory, value = rule.promise({}, shown_by(rule.rule, [0, 1], [(0, 300)]))
    assert value is None
    assert [promise.group for promise in rule.groups(memory)] == [(0,)]


def test_the_estimate_covers_the_share_it_says():
    rng = np.random.default_rng(5)
    frame = disordered(rng, 0, 40_000, 500)
    for quantile in (0.9, 0.99, 1.0):
        parts = batches(frame, [100])
        late = 0
        for promise, batch in zip([None, *told(Estimated(quantile, 400), parts)[:-1]], parts, strict=True):
            late += 0 if promise is None else (batch["@t"] < promise).sum()
        assert late / frame.height <= (1 - quantile) * 1.2 + (0.002 if quantile < 1 else 0.005)


def test_the_estimate_grows_at_once_and_shrinks_only_when_well_below():
    rule = Estimated(1.0, 10, enough=10)
    operator = Generate(rule)
    slack = lambda: operator.judge.memory["now"]["slack"][0]  # noqa: E731
    operator.on_batch(0, rows([100]))
    assert slack() == 10
    operator.on_batch(0, rows([60, 110]))
    assert 40 <= slack() <= 46  # rounded up twice
    before = slack()
    for at in range(120, 200):
        operator.on_batch(0, rows([at - 1, at]))
    assert slack() == before  # the greatest lateness is still what it was
    swings = Estimated(0.5, 1000, enough=4)
    operator = Generate(swings)
    for at in range(100, 120):
        operator.on_batch(0, rows([at]))
    assert slack() == 0  # half of the rows are never late, and 1000 was only the beginning
    assert Estimated(0.5, 100)._slack(pl.DataFrame({"@bucket": [93], "@count": [5000]}), 100) == 100  # within a fifth


def test_until_enough_rows_are_seen_the_initial_slack_holds():
    operator = Generate(Estimated(0.5, 50, enough=1000))
    for at in range(100, 110):
        last = promised(operator.on_batch(0, rows([at])))
    assert last == [109 - 50]


# -- a function --------------------------------------------------------------------------------------------------------
DAY = 86_400_000_000


def test_a_function_is_told_what_was_seen_and_gives_a_value_of_the_attribute():
    calls = []

    def cautious(seen):
        calls.append(seen)
        return seen.all_greatest - dt.timedelta(days=1) if seen.all_rows > 2 else None

    rule = ByFunction(cautious, "cautious", pl.Datetime("us"))
    assert told(rule, [rows([DAY, 3 * DAY]), rows([2 * DAY])], restart=False) == [None, 2 * DAY]
    assert (calls[1].rows, calls[1].all_rows, calls[1].promised) == (1, 3, None)
    assert calls[1].least == calls[1].greatest == dt.datetime(1970, 1, 3)
    assert calls[1].all_greatest == dt.datetime(1970, 1, 4)


@pytest.mark.parametrize(
    ("says", "reason"),
    [
        (lambda seen: "soon", "returned 'soon': it must return a value of type Int64, or None"),
        (lambda seen: True, "returned True"),
        (lambda seen: dt.date(2024, 1, 1), "returned datetime.date"),
        (lambda seen: 1 // 0, "failed on Seen.*ZeroDivisionError"),
    ],
)
def test_what_a_function_cannot_say_is_named(says, reason):
    with pytest.raises(ResultError, match=reason):
        told(ByFunction(says, "says", pl.Int64()), [rows([1])])


def test_a_function_that_goes_back_changes_nothing():
    values = iter([5, 3, 7])
    rule = ByFunction(lambda seen: next(values), "says", pl.Int64())
    operator = Generate(rule)
    assert [promised(operator.on_batch(0, rows([9]))) for _ in range(3)] == [[5], [], [7]]


def test_the_end_of_a_stream_says_how_far_it_came():
    operator = Generate(RowSlack(100))
    operator.on_batch(0, rows([4, 6]))
    assert operator.on_punctuation(0, Punctuation(END)) == [Punctuation(6), Punctuation(END)]
    assert operator.on_punctuation(0, Punctuation(END)) == []
