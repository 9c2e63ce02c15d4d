"""The fixed table before Paned: results, promises, order, delay and state under tiny tables and every flush policy."""

import datetime as dt
import decimal
import math

import numpy as np
import polars as pl
import pytest
from harness import COUNTS, ROWS, SCHEMA, SPECS, WINDOWS, Model, assert_same, careless, first_wait, truthful
from hypothesis import given, settings
from hypothesis import strategies as st

from windrow.aggregates import Partials, make
from windrow.errors import CheckpointError, ResultError
from windrow.operators import FixedTable, Paned, Panes, Side, Windowing
from windrow.operators.kernels.key_words import KeyWords
from windrow.operators.windows.fixed_table import refusal, slots_for
from windrow.progress import END, START, Punctuation
from windrow.spec.flush import Flush
from windrow.windows import Sliding, Tuple

CHECK = settings(deadline=None, derandomize=True, max_examples=60)
EACH = settings(CHECK, max_examples=20)  # for every policy
POLICIES = [
    Flush(),
    Flush("slow", every=1, late=1),
    Flush("slow", every=3, late=2),
    Flush("lazy", late=1),
    Flush("lazy", late=2),
    Flush("lazy", late=None),
]
SLOTS = st.sampled_from([1, 2, 7])
policies = pytest.mark.parametrize("flush", POLICIES, ids=str)


def aggregates(specs=SPECS, schema=SCHEMA):
    return Partials([make(f, n, a, schema.get(a, pl.Int64())) for n, f, a in specs])


class Two:
    """A table and Paned behind it; ``restart`` goes on from what a checkpoint would hold."""

    def __init__(self, window, slots, flush, keys=("k",), specs=SPECS, schema=SCHEMA, drains=False):
        self.window, self.keys, self.specs, self.schema = window, keys, specs, schema
        self.new = lambda: FixedTable(
            Windowing(window, keys, aggregates(specs, schema)), slots=slots, flush=flush, drains=drains
        )
        self.table = self.new()
        self.paned = Paned(Windowing(window, keys, aggregates(specs, schema), pl.Int64()))
        self.disk = {}
        self.told = []  # what the table has promised
        self.panes = []  # of the partials in the order in which they left
        self.late = 0

    def copy(self):
        other = self.new()
        other.restore(self.table.snapshot())
        return other

    def restart(self):
        for name, frame in self.table.changes().items():
            self.disk.pop(name) if frame is None else self.disk.update({name: frame})
        assert self.table.changes() == {}
        snapshot = self.table.snapshot()
        assert all(frame.equals(snapshot[name]) for name, frame in self.disk.items())
        assert set(snapshot) - set(self.disk) <= {"marks"}
        self.table = self.new()
        self.table.restore(dict(self.disk))
        assert all(frame.equals(self.table.snapshot()[name]) for name, frame in snapshot.items())

    def take(self, rows):
        return self._on(self.table.on_batch(0, pl.DataFrame(rows, schema=self.schema)))

    def promise(self, value, group=None):
        return self._on(self.table.on_punctuation(0, Punctuation(value, group)))

    def _on(self, items):
        found = {}
        for item in items:
            if isinstance(item, Punctuation):
                assert item.value > max(self.told, default=START), "duplicates never leave"
                self.told.append(item.value)
                behind = self.paned.on_punctuation(0, item)
            else:
                assert item.height
                self.panes += item["@pane"].to_list()
                behind = self.paned.on_batch(0, item)
            for out in behind:
                if isinstance(out, Side):
                    self.late += out.count
                elif isinstance(out, pl.DataFrame):
                    self._results(out, found)
        return found

    def _results(self, frame, found):
        for row in frame.rows(named=True):
            wid = (row["window_end"] - self.window.origin) // self.window.slide - 1
            at = wid, tuple(row[k] for k in self.keys)
            assert at not in found
            found[at] = {name: row[name] for name, _, _ in self.specs}

    def held(self):
        """The windows of the entries in the table: the first that each belongs to."""
        return set((self.table.entries.cells[self.table.entries.occupied(), 0] // self.table.step).tolist())


def everything(run, steps):
    """All results of some steps; a restart where a step says so."""
    found = {}
    for step, restore in steps:
        if restore:
            run.restart()
        news = run.take(step) if isinstance(step, list) else run.promise(step)
        assert not set(news) & set(found), "released twice"
        found |= news
    return found


# -- results -----------------------------------------------------------------------------------------------------------
@policies
@EACH
@given(window=WINDOWS, slots=SLOTS, steps=truthful(), keys=st.sampled_from([("k",), ("k", "x"), ("f", "k"), ()]))
def test_results_are_those_of_the_oracle_for_every_policy(flush, window, slots, steps, keys):
    run, model = Two(window, slots, flush, keys), Model(window, keys)
    found = everything(run, steps)
    for step, _ in steps:
        assert not isinstance(step, list) or model.take(step) == 0
    assert_same(_nan_apart(found), _nan_apart(model.promise(END)))
    assert run.late == 0
    assert run.table.entries.resident == 0
    assert run.told[-1] == END


def _nan_apart(found):
    """NaN is no key of a dict that can be found again."""
    spelled = {(wid, tuple("NaN" if k != k else k for k in key)): r for (wid, key), r in found.items()}
    assert len(spelled) == len(found)
    return spelled


@CHECK
@given(window=WINDOWS, slots=SLOTS, steps=careless())
def test_at_once_every_call_gives_what_it_gives_without_a_table(window, slots, steps):
    """Results of each promise, and late rows of each batch, come no later than those of Panes."""
    run, model = Two(window, slots, Flush()), Model(window)
    for step, restore in steps:
        if restore:
            run.restart()
        if isinstance(step, list):
            before = run.late
            assert run.take(step) == {}
            assert run.late - before == model.take(step)
        else:
            assert_same(run.promise(step), model.promise(step))


@policies
@EACH
@given(window=WINDOWS, slots=SLOTS, steps=careless())
def test_rows_that_break_a_promise_are_all_accounted_for(flush, window, slots, steps):
    run = Two(window, slots, flush, specs=COUNTS)
    found = everything(run, steps)
    rows = [row for step, _ in steps if isinstance(step, list) for row in step]
    each = window.range // window.slide
    if window.range % window.slide == 0:  # then each row is in as many windows
        assert sum(r["n"] for r in found.values()) == each * (len(rows) - run.late)


# -- in order ----------------------------------------------------------------------------------------------------------
LONG_PANES = st.sampled_from([Sliding(10, 10), Sliding(20, 20), Sliding(20, 10), Sliding(15, 10)])


@policies
@EACH
@given(window=LONG_PANES, slots=SLOTS, rows=st.lists(ROWS, min_size=15, max_size=40))
def test_in_order_the_panes_that_leave_never_go_back(flush, window, slots, rows):
    rows.sort(key=lambda r: r["@t"])
    ordered = [(rows[i : i + 3], i % 2 == 0) for i in range(0, len(rows), 3)]
    for i in range(len(ordered) - 1, 0, -4):
        ordered.insert(i, (ordered[i][0][0]["@t"], True))
    keys = ("k", "x")  # many groups in a pane, so that those of the new one collide while old ones are there
    run = Two(window, slots, Flush(flush.policy, flush.every, flush.late, ordered=True), keys)
    found, model = everything(run, [*ordered, (END, False)]), Model(window, keys)
    model.take(rows)
    assert_same(found, model.promise(END))
    assert run.panes == sorted(run.panes)


def test_two_entries_of_the_new_window_that_collide_drive_the_old_window_out():
    def new(ordered):
        return Two(Sliding(10, 10), 2, Flush("lazy", ordered=ordered), keys=("x",), specs=(("n", "count", None),))

    def slot(x):
        probe = new(False)
        probe.take([row(1, "a", x)])
        return int(probe.table.entries.occupied()[0])

    first, second, third = [x for x in range(100) if slot(x) == 0][:3]
    other = next(x for x in range(100) if slot(x) == 1)
    before, after = [row(1, "a", other), row(2, "a", first), row(11, "a", second)], [row(12, "a", third)]
    ordered, free = new(True), new(False)
    for run, left in ((ordered, [0, 0, 1]), (free, [0, 1])):
        run.take(before)
        assert run.panes == [0]  # the old entry in the way
        run.take(after)
        assert run.panes == left


def test_disorder_is_refused_where_output_must_be_in_order():
    run = Two(Sliding(10, 10), 2, Flush(ordered=True), specs=COUNTS)
    run.take([row(15, "a")])
    with pytest.raises(ResultError, match="needs rows in order"):
        run.take([row(5, "a")])
    with pytest.raises(ResultError, match="needs rows in order"):
        run.take([row(25, "a"), row(15, "a")])


def row(t, k, x=1):
    return {"@t": t, "k": k, "x": x, "f": None}


# -- promises and delay ------------------------------------------------------------------------------------------------
@policies
@EACH
@given(window=WINDOWS, slots=SLOTS, steps=truthful())
def test_what_is_promised_is_true_and_the_strongest(flush, window, slots, steps):
    run, given = Two(window, slots, flush, specs=COUNTS), START
    for step, restore in steps:
        if restore:
            run.restart()
        if isinstance(step, list):
            run.take(step)
        else:
            run.promise(step)
            given = max(given, END if step == END else window.closed_below(step))
        assert max(run.told, default=START) == min([given, *run.held()])


@policies
@EACH
@given(window=WINDOWS, slots=SLOTS, steps=careless())
def test_nothing_stays_longer_than_it_may(flush, window, slots, steps):
    run, newest = Two(window, slots, flush, specs=COUNTS), START
    promised = START
    for step, restore in steps:
        if restore:
            run.restart()
        if isinstance(step, list):
            run.take(step)
            inside = [r["@t"] for r in step if window.wids(Tuple(r["@t"]))]
            newest = max([newest, *((t - window.origin) // window.slide for t in inside)])
        else:
            run.promise(step)
            promised = max(promised, END if step == END else window.closed_below(step))
            newest = max(newest, promised)
        if flush.policy == "at once":
            assert all(wid >= promised for wid in run.held())
        elif flush.late is not None:
            assert all(wid >= newest - flush.late for wid in run.held())
    assert run.held() == set()


@policies
@EACH
@given(window=WINDOWS, slots=SLOTS, steps=truthful(), ordered=st.booleans())
def test_waits_for_is_the_smallest_promise_that_puts_something_out(flush, window, slots, steps, ordered):
    if ordered:
        rows = sorted((r for step, _ in steps if isinstance(step, list) for r in step), key=lambda r: r["@t"])
        steps = [(rows[i : i + 3], False) for i in range(0, len(rows), 3)]
    run = Two(window, slots, Flush(flush.policy, flush.every, flush.late, ordered), specs=COUNTS)
    for step, _ in steps:
        run.take(step) if isinstance(step, list) else run.promise(step)
        wake = first_wait(run.table)
        if wake is None:
            assert run.table.entries.resident == 0
            continue
        early, in_time = run.copy(), run.copy()
        assert not any(isinstance(i, pl.DataFrame) for i in early.on_punctuation(0, Punctuation(wake - 1)))
        assert any(isinstance(i, pl.DataFrame) for i in in_time.on_punctuation(0, Punctuation(wake)))


def test_slow_flush_puts_one_old_entry_out_every_so_many_tuples():
    run = Two(Sliding(10, 10), 1000, Flush("slow", every=4), keys=("x",), specs=(("n", "count", None),))
    run.take([row(1, "a", x) for x in range(10)])
    run.take([row(11, "a", 10)] * 12)
    assert run.panes == [0, 0, 0]
    run.take([row(21, "a", 10)])  # two windows late may be
    assert run.panes == [0, 0, 0, 1]  # its own old entry, which was in the way
    run.take([row(31, "a", 10)])
    assert run.panes[4:].count(0) == 7


def test_a_promise_about_one_group_is_not_passed_on():
    run = Two(Sliding(5, 5), 2, Flush(), specs=COUNTS)
    assert run.promise(100, group=("a",)) == {}
    assert run.told == []


# -- what a table can hold ---------------------------------------------------------------------------------------------
KEYS = [
    (pl.Int64(), [1, -1, 2**62, -(2**63)]),
    (pl.UInt64(), [0, 2**64 - 1]),
    (pl.Int8(), [-128, 127]),
    (pl.Float64(), [math.nan, 0.0, -0.5, math.inf, 5e-324]),
    (pl.Float32(), [0.1, -0.1]),
    (pl.Boolean(), [True, False]),
    (pl.Date(), [dt.date(2020, 1, 1), dt.date(1969, 12, 31)]),
    (pl.Datetime("us", "UTC"), [dt.datetime(2020, 1, 1, tzinfo=dt.UTC), dt.datetime(1969, 1, 1, tzinfo=dt.UTC)]),
    (pl.Duration("us"), [dt.timedelta(seconds=-1), dt.timedelta(days=3)]),
    (pl.Time(), [dt.time(1, 2, 3)]),
    (pl.String(), ["", "a", "ä", "a" * 100]),
    (pl.Binary(), [b"", b"\x00", b"\x00\x00"]),
    (pl.Decimal(20, 2), [decimal.Decimal("1.25"), decimal.Decimal("-0.01")]),
]


@pytest.mark.parametrize(("dtype", "values"), KEYS, ids=[str(t) for t, _ in KEYS])
@pytest.mark.parametrize("slots", [1, 50])
def test_partials_look_like_those_of_panes_for_keys_of_every_type(dtype, values, slots):
    schema = {**SCHEMA, "k": dtype}
    window, specs = Sliding(4, 2), (("n", "count", None), ("s", "sum", "x"), ("lo", "min", "f"))
    rows = [{"@t": t, "k": k, "x": 1, "f": 0.5} for k in [*values, None, *values] for t in (1, 0, 3)]
    batch = pl.DataFrame(rows, schema=schema)
    panes = Panes(window, ["k"], aggregates(specs, schema)).on_batch(0, batch)[0]
    run = Two(window, slots, Flush("lazy", late=None), specs=specs, schema=schema)
    left = run.table.on_batch(0, batch[:4])
    run.restart()
    left += run.table.on_batch(0, batch[4:])
    run.restart()
    left += run.table.on_punctuation(0, Punctuation(END))
    frames = [item for item in left if isinstance(item, pl.DataFrame)]
    assert frames[0].schema == panes.schema
    merged = aggregates(specs, schema).combine(pl.concat(frames), ["@pane", "k"])
    order = {"by": ["@pane", "k"], "nulls_last": True}
    assert merged.sort(**order).equals(panes.sort(**order), null_equal=True)


def test_zeros_are_one_key_and_so_are_nans():
    run = Two(Sliding(4, 4), 100, Flush(), keys=("f",), specs=(("n", "count", None),))
    other = np.uint64(0x7FF8000000000001).view(np.float64)
    run.take([{"@t": 1, "k": "a", "x": 1, "f": f} for f in (0.0, -0.0, math.nan, float(other))])
    assert run.table.entries.resident == 2


@CHECK
@given(values=st.lists(st.sampled_from([None, 0, 2**64 - 1, 2**63, 1]), min_size=1, max_size=8), slots=SLOTS)
def test_least_and_greatest_of_unsigned_numbers_and_nulls(values, slots):
    schema = {**SCHEMA, "x": pl.UInt64()}
    specs = (("lo", "min", "x"), ("hi", "max", "x"))
    run = Two(Sliding(4, 4), slots, Flush(), specs=specs, schema=schema)
    run.take([row(1, "a", x) for x in values])
    known = [v for v in values if v is not None]
    expected = {"lo": min(known, default=None), "hi": max(known, default=None)}
    assert run.promise(END) == {(0, ("a",)): expected}


def test_texts_are_numbered_only_as_long_as_they_are_in_the_table():
    run = Two(Sliding(10, 10), 3, Flush(), specs=COUNTS)
    for i in range(30):
        run.take([row(1, f"{i}-{j}") for j in range(200)])
        assert run.table.words.many() <= 1024 + 200
        if i % 7 == 0:
            run.restart()
    assert len(run.promise(END)) == 6000
    assert run.late == 0


def test_forgotten_numbers_do_not_change_those_of_entries():
    words = KeyWords(["k"])
    words.learn({"k": pl.String()})
    given, into = pl.DataFrame({"k": ["a", "b", "c"]}), np.empty((3, 2), np.int64)
    words.encode(given, into)
    words.prune(into[1:2])
    assert words.known["k"].rows() == [("b", 2)]
    words.encode(given, into)
    assert words.known["k"].rows() == [("b", 2), ("a", 3), ("c", 4)]
    assert words.decode(into)[0].to_list() == ["a", "b", "c"]


@pytest.mark.parametrize("function", ["count_distinct", "median", "collect_list", "first", "approx_quantile"])
def test_aggregates_of_other_state_are_refused(function):
    parameters = (1,) if function == "approx_quantile" else ()
    given = Partials([make("count", "n", None, pl.Int64()), make(function, "v", "x", pl.Int64(), parameters)])
    assert function in refusal(given, {"k": pl.String()})
    assert "'paned'" in refusal(given, {})


def test_keys_that_are_lists_are_refused():
    assert "'k'" in refusal(aggregates(), {"k": pl.List(pl.Int64())})
    assert refusal(aggregates(), {"k": pl.String()}) == ""
    assert "more than 62 keys" in refusal(aggregates(), {f"k{i}": pl.Int64() for i in range(63)})


def test_the_least_text_is_refused():
    assert "min" in refusal(Partials([make("min", "v", "x", pl.String())]), {})


# -- memory and state --------------------------------------------------------------------------------------------------
def test_entries_fit_into_the_memory_given():
    counts = aggregates((("n", "count", None),))
    assert slots_for(4 << 20, 2, counts) == (4 << 20) // 40
    assert slots_for(1, 2, counts) == 1
    table = FixedTable(Windowing(Sliding(4, 4), ["x", "k"], counts), slots=slots_for(1 << 20, 2, counts))
    assert table.state_bytes() < 100  # nothing yet
    table.on_batch(0, pl.DataFrame([row(1, "a")], schema=SCHEMA))
    assert (1 << 20) - 40 < table.entries.cells.nbytes <= 1 << 20
    assert table.state_bytes() < 1.01 * (1 << 20)


def test_a_snapshot_of_another_size_is_refused():
    run, other = Two(Sliding(4, 4), 2, Flush()), Two(Sliding(4, 4), 3, Flush())
    with pytest.raises(CheckpointError, match="2 entries, but this one has 3"):
        other.table.restore(run.table.snapshot())


def test_a_task_drains_its_table_when_it_ends_and_then_promises():
    run = Two(Sliding(5, 5), 100, Flush("lazy", late=None), specs=COUNTS, drains=True)
    run.take([row(1, "a"), row(7, "a")])
    run.promise(6)
    assert (run.panes, run.told) == ([0], [1])  # the old entry of "a" was in the way of the new one
    run.take([row(8, "b")])
    run.promise(12)
    assert run.told == [1]
    found = run._on(run.table.on_flush())
    assert found == {(1, ("a",)): {"n": 1, "s": 1}, (1, ("b",)): {"n": 1, "s": 1}}
    assert run.told == [1, 2]
    assert run.table.on_flush() == []
    kept = Two(Sliding(5, 5), 100, Flush(), specs=COUNTS)
    kept.take([row(1, "a")])
    assert kept.table.on_flush() == []
