"""MultiJoin against all combinations, call by call, in any order of arrival, with a restore between any two calls."""

from itertools import product
from unittest.mock import patch

import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from restarting import Restarting

import windrow as wr
from windrow.errors import LateError
from windrow.operators import MultiJoin, Side
from windrow.operators.joins import multi_join, probe_order
from windrow.progress import END, START, Punctuation
from windrow.windows.multiway import Moment, Ranges

NAN = float("nan")
NAMES = "abcde"


def fails_at_three(a, b):
    """A condition that fails for some combinations, and has no value for others."""
    if b == 5:
        return None
    return 12 // (a - 3) < b


FUNCTION = wr.udf(fails_at_three, "BOOLEAN", "a", "b").function
TESTS = {
    "a < b": (pl.col("a") < pl.col("b"), lambda row: row["a"] < row["b"]),
    "b is even": (pl.col("b") % 2 == 0, lambda row: row["b"] % 2 == 0),
    "a is not the last": (pl.col("a") != pl.col("{last}"), lambda row: row["a"] != list(row.values())[-1]),
}


def rows(port, given_rows, keyed=True):
    """Rows of (key, time, number) as an input takes them."""
    schema = {"k": pl.Float64(), NAMES[port]: pl.Int64(), "@t": pl.Int64()}
    frame = pl.DataFrame([(k, n, t) for k, t, n in given_rows], schema=schema, orient="row")
    return frame if keyed else frame.drop("k")


def equal(keys):
    return all(a is not None and (a == keys[0] or (a != a and keys[0] != keys[0])) for a in keys)


class Model:
    """What the contract says, from the rows and promises so far."""

    def __init__(self, ranges, moment, keyed, conditions, function):
        self.ranges, self.moment, self.keyed = ranges, moment, keyed
        self.conditions, self.function = conditions, function
        self.taken = [[] for _ in ranges.lengths]
        self.promised = [START for _ in ranges.lengths]

    def take(self, port, batch):
        """The results of a batch, how many combinations are bad, and how many rows are late."""
        good = [row for row in batch if row[1] >= self.promised[port]]
        found, bad = [], 0
        for each in product(*(good if i == port else taken for i, taken in enumerate(self.taken))):
            times = [t for _, t, _ in each]
            row = {NAMES[i]: n for i, (_, _, n) in enumerate(each)}
            if not self.ranges.near(times) or (self.keyed and not equal([k for k, *_ in each])):
                continue
            if not all(condition(row) for condition in self.conditions):
                continue
            try:
                holds = self.function is None or self.function.call(row["a"], row["b"])
            except ZeroDivisionError:
                bad, holds = bad + 1, False
            if holds:
                found.append((*row.values(), self.moment.of(times)))
        self.taken[port] += good
        return found, bad, len(batch) - len(good)

    def promise(self, port, value):
        """The new promise about results; None if it says nothing new."""
        before = self.ranges.promised(self.moment, self.promised)
        self.promised[port] = max(value, self.promised[port])
        now = self.ranges.promised(self.moment, self.promised)
        return now if now > before else None

    def held(self, port):
        """How many rows can be in a result to come."""
        limit = self.ranges.first_kept(port, self.promised)
        return sum(t >= limit for _, t, _ in self.taken[port])


class Run:
    """The operator beside its model, in calls that are drawn."""

    def __init__(self, model, **options):
        count = len(model.ranges.lengths)
        keys, types = ["k"] * model.keyed, [{NAMES[i]: pl.Int64()} for i in range(count)]
        self.model = model
        self.join = Restarting(lambda: MultiJoin(keys, model.ranges, types, on=model.moment, **options))
        self.joined = self.freed = self.late = 0

    def take(self, port, batch):
        items = self.join.on_batch(port, rows(port, batch, self.model.keyed))
        frames, sides = self._split(items)
        found, bad, late = self.model.take(port, batch)
        assert sorted(r for f in frames for r in f.rows()) == sorted(found)
        assert sum(s.count for s in sides if s.kind == "bad") == bad
        assert sum(s.count for s in sides if s.kind == "late") == late
        self.late += late

    def promise(self, port, value):
        frames, _ = self._split(items := self.join.promise(port, value))
        assert not frames
        news = [item.value for item in items if isinstance(item, Punctuation)]
        wanted = self.model.promise(port, value)
        if END not in self.model.promised:  # where an input has ended, what is promised is capped
            assert news == ([] if wanted is None else [wanted])
        assert all(wanted is not None and value <= wanted for value in news)
        held = [kept.rows.height for kept in self.join.operator.sides]
        assert held == [self.model.held(i) for i in range(len(held))]

    def _split(self, items):
        sides = [item for item in items if isinstance(item, Side)]
        self.joined += sum(s.count for s in sides if s.kind == "joined")
        self.freed += sum(s.count for s in sides if s.kind == "freed")
        return [item for item in items if isinstance(item, pl.DataFrame)], sides


keys = st.sampled_from([0.0, -0.0, 1.0, NAN])
input_rows = st.lists(st.tuples(keys, st.integers(0, 40)), max_size=7)
lengths = st.sampled_from([1, 4, 15, 40, 400])


@st.composite
def runs(draw, fewest=2):
    """A join of two to five inputs, and their rows in the order of arrival."""
    count = draw(st.sampled_from([max(fewest, n) for n in (2, 3, 3, 3, 4, 5)]))
    ranges = Ranges(tuple(draw(lengths) for _ in range(count)))
    inputs = draw(st.lists(st.integers(0, count - 1), min_size=1, max_size=count, unique=True))
    names = draw(st.lists(st.sampled_from(sorted(TESTS)), max_size=2, unique=True))
    tests = [TESTS[name][0] if "last" not in name else pl.col("a") != pl.col(NAMES[count - 1]) for name in names]
    function = draw(st.sampled_from([None, None, FUNCTION]))
    model = Model(ranges, Moment(tuple(inputs), draw(st.booleans())), draw(st.booleans()), [], function)
    model.conditions = [TESTS[name][1] for name in names]
    early = draw(st.booleans())
    late = {} if early or not tests else {"where": pl.all_horizontal(tests)}
    waiting = []
    for _ in range(count):
        listed = [(k, t, n) for n, (k, t) in enumerate(draw(input_rows))]
        waiting.append(draw(st.permutations(listed)))
    return Run(model, tests=tests if early else [], test=function, **late), waiting


def steps(run, waiting, data):
    """Batches and promises until all rows have come: true ones, and some that make rows late."""
    while any(waiting):
        port = data.draw(st.sampled_from([p for p, left in enumerate(waiting) if left]))
        size = data.draw(st.integers(1, len(waiting[port])))
        batch, waiting[port] = waiting[port][:size], waiting[port][size:]
        run.take(port, batch)
        yield
        if data.draw(st.booleans()):
            least = min((t for _, t, _ in waiting[port]), default=END)
            run.promise(port, least if least == END else least + data.draw(st.sampled_from([0, 0, 0, 2])))
            yield


@settings(deadline=None, max_examples=300)
@given(given_run=runs(), data=st.data())
def test_every_call_gives_what_the_definition_says(given_run, data):
    run, waiting = given_run
    count, total = len(waiting), sum(map(len, waiting))
    short = patch.multiple(probe_order, PERIOD=3, ENOUGH=1, GAIN=1.0), patch.multiple(multi_join, PIECE=2)
    with short[0], short[1]:
        for _ in steps(run, waiting, data):
            if data.draw(st.booleans()):
                run.join.restart()
    for port in range(count):
        run.promise(port, END)
        run.join.restart()
    assert run.join.operator.given == END
    assert run.join.operator.state_bytes() == 0
    assert run.join.operator.waits_for() == []
    assert run.joined + run.freed + run.late == total  # each row was joined, freed or late, once


@settings(deadline=None, max_examples=150)
@given(given_run=runs(), data=st.data())
def test_waits_name_the_least_promises_at_which_rows_leave(given_run, data):
    run, waiting = given_run
    for _ in steps(run, waiting, data):
        operator = run.join.operator
        held = [kept.rows.height for kept in operator.sides]
        waits = operator.waits_for()
        assert bool(waits) == any(held)
        for wait in waits:
            assert wait.since == operator.sides[wait.port].promised < wait.promise
            assert wait.count in held
        for add, freed in ((-1, False), (0, True)):
            other = run.join.make()
            other.restore(operator.snapshot())
            for wait in waits:
                other.on_punctuation(wait.port, Punctuation(wait.promise + add))
            assert ([kept.rows.height for kept in other.sides] != held) is (freed and bool(waits))


def abc(*lengths, **options):
    types = [{NAMES[i]: pl.Int64()} for i in range(len(lengths))]
    return MultiJoin(["k"], Ranges(lengths), types, **options)


def test_a_row_with_a_null_key_equals_nothing():
    join = abc(9, 9, 9)
    for port in (0, 1, 2):
        items = join.on_batch(port, rows(port, [(None, 5, 0), (1.0, 5, 1)]))
    assert [item.rows() for item in items if isinstance(item, pl.DataFrame)] == [[(1, 1, 1, 5)]]


def test_windows_a_factor_of_ten_apart():
    """Each row is held for its own time: at the last instant it is in a result, a unit later in none."""
    held = (1000, 100, 10)
    for i, own in enumerate(held):
        for distance, found in ((own - 1, 1), (own, 0)):
            join = abc(*held)
            items = [x for p in range(3) for x in join.on_batch(p, rows(p, [(1.0, 5000 - distance * (p == i), 0)]))]
            assert sum(x.height for x in items if isinstance(x, pl.DataFrame)) == found


def test_late_rows_are_shown_or_stop_the_query():
    for policy in ("drop", "side"):
        join = abc(5, 5, 5, late=(policy, "drop", "drop"))
        join.on_punctuation(0, Punctuation(11))
        [side] = join.on_batch(0, rows(0, [(1.0, 10, 7)]))
        assert (side.kind, side.count, side.rows["late_by"].to_list()) == ("late", 1, [1])
        assert ("a" in side.rows.columns) is (policy == "side")
    join = abc(5, 5, 5, late=("drop", "error", "drop"))
    join.on_punctuation(1, Punctuation(11))
    with pytest.raises(LateError):
        join.on_batch(1, rows(1, [(1.0, 10, 7)]))


def test_a_row_that_can_be_in_no_result_is_not_kept():
    join = abc(5, 5, 5)
    join.on_punctuation(1, Punctuation(20))
    join.on_punctuation(2, Punctuation(20))
    assert join.on_batch(0, rows(0, [(1.0, 15, 0), (1.0, 16, 1)])) == [Side("freed", 1)]
    assert join.sides[0].rows.height == 1


def test_the_end_comes_when_all_inputs_have_ended_and_says_how_far_they_came():
    wanted = {Moment((0, 1, 2)): 40, Moment((0, 1, 2), False): 30, Moment((1,)): 40, Moment((0, 2)): 35}
    for moment, reached in wanted.items():
        join = Restarting(lambda on=moment: abc(5, 5, 5, on=on))
        assert join.operator.on_punctuation(0, Punctuation(END, reached=30)) == []
        assert join.operator.on_punctuation(2, Punctuation(END, reached=35)) == []
        join.restart()
        found = join.operator.on_punctuation(1, Punctuation(END, reached=40))
        assert [(p.value, p.reached) for p in found] == [(reached, None), (END, reached)]


def test_a_promise_about_one_group_says_nothing_about_results():
    join = abc(5, 5)
    assert join.on_punctuation(0, Punctuation(9, group=(1,))) == []
    assert join.sides[0].promised == START
