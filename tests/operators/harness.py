"""A window aggregate run call by call beside a model of it: what must come out at each call is known exactly."""

import datetime as dt
import math

import polars as pl
from hypothesis import strategies as st

from windrow.aggregates import Partials, make
from windrow.operators import AdaptPaned, AdaptWid, Bucket, Buffering, Paned, Panes, Side, Wid, Windowing
from windrow.progress import END, START, Punctuation
from windrow.testing.oracle.folds import recalc
from windrow.windows import Sliding, Tuple

SCHEMA = {"@t": pl.Int64(), "k": pl.String(), "x": pl.Int64(), "f": pl.Float64()}
SPECS = (
    ("n", "count", None),
    ("nx", "count", "x"),
    ("s", "sum", "x"),
    ("a", "avg", "x"),
    ("lo", "min", "x"),
    ("hi", "max", "f"),
    ("v", "var_samp", "x"),
)
KINDS = {"wid": Wid, "paned": Paned, "buffering": Buffering, "adaptwid": AdaptWid, "adaptpaned": AdaptPaned}
COUNTS = (("n", "count", None), ("s", "sum", "x"))

WINDOWS = st.builds(Sliding, range=st.integers(1, 20), slide=st.integers(1, 25), origin=st.integers(-5, 5))
# Long enough for chunks of several panes.
LONG = st.builds(
    Sliding, range=st.integers(32, 100), slide=st.sampled_from([1, 2, 3, 7, 150]), origin=st.integers(-5, 5)
)
ROWS = st.fixed_dictionaries(
    {
        "@t": st.integers(-25, 25),
        "k": st.sampled_from(["a", "b", None]),
        "x": st.sampled_from([None, 0, 1, -7, 3, 2**55]),
        "f": st.sampled_from([None, 1.5, -2.25, math.nan, math.inf, -math.inf]),
    }
)


@st.composite
def truthful(draw):
    """Steps of a stream with bounded disorder whose promises are all true, and whether to restore before each."""
    rows = draw(st.lists(ROWS, max_size=20))
    rows.sort(key=lambda row: row["@t"] + draw(st.integers(0, 15)))
    steps = []
    while rows:
        size = draw(st.integers(1, 8))
        steps.append((rows[:size], draw(st.booleans())))
        rows = rows[size:]
        if draw(st.booleans()):
            low = min((row["@t"] for row in rows), default=30)
            steps.append((low - draw(st.integers(0, 3)), draw(st.booleans())))
    return [*steps, (END, draw(st.booleans()))]


@st.composite
def careless(draw):
    """Steps with promises that later rows may break."""
    batches = st.lists(ROWS, min_size=1, max_size=6)
    steps = draw(st.lists(st.one_of(batches, batches, st.integers(-30, 30)), max_size=10))
    return [(step, draw(st.booleans())) for step in [*steps, END]]


class Model:
    """What the contract says, from the rows and promises so far."""

    def __init__(self, window, keys=("k",), specs=SPECS):
        self.window, self.keys, self.specs = window, keys, specs
        self.kept = []
        self.promised = START

    def take(self, rows):
        """How many of the rows are late: a row is, if one of its windows is released."""
        late = 0
        for row in rows:
            wids = self.window.wids(Tuple(row["@t"]))
            if any(self.window.end(w) <= self.promised for w in wids):
                late += 1
            elif wids:
                self.kept.append(row)
        return late

    def promise(self, value):
        """{(window id, key): results} of the windows that this promise covers and none before did."""
        before, self.promised = self.promised, max(value, self.promised)
        found = recalc(self.kept, self.window, "@t", self.keys, self.specs)
        return {at: r for at, r in found.items() if before < self.window.end(at[0]) <= self.promised}


class Run:
    """A window aggregate behind the operator that feeds it; ``restart`` goes on from what a checkpoint would hold."""

    def __init__(self, kind, window, keys=("k",), specs=SPECS, schema=SCHEMA, dtype=SCHEMA["@t"]):
        self.kind, self.window, self.keys, self.specs = kind, window, keys, specs
        self.schema, self.dtype = schema, dtype
        self.aggregates = Partials([make(f, n, a, schema.get(a, pl.Int64())) for n, f, a in specs])
        self.feed = Panes(window, keys, self.aggregates) if kind == "paned" else Bucket(window)
        self.operator = self.new()
        self.disk = {}

    def new(self):
        return KINDS[self.kind](Windowing(self.window, self.keys, self.aggregates, self.dtype))

    def copy(self):
        """Another run that goes on from here."""
        other = Run(self.kind, self.window, self.keys, self.specs, self.schema, self.dtype)
        other.operator.restore(self.operator.snapshot())
        return other

    def restart(self):
        """Write the changes, and go on in a new operator with what has been written so far."""
        for name, frame in self.operator.changes().items():
            if frame is None:
                del self.disk[name]
            else:
                self.disk[name] = frame
        snapshot = self.operator.snapshot()
        if "closed" not in self.disk:
            assert snapshot.pop("closed")["value"].to_list() == [START]
        assert set(self.disk) == set(snapshot)
        assert all(frame.equals(snapshot[name]) for name, frame in self.disk.items())
        self.operator = self.new()
        self.operator.restore(dict(self.disk))

    def take(self, rows):
        """Feed rows; returns how many were late."""
        batch = rows if isinstance(rows, pl.DataFrame) else pl.DataFrame(rows, schema=self.schema)
        items = [item for tagged in self.feed.on_batch(0, batch) for item in self.operator.on_batch(0, tagged)]
        assert all(isinstance(item, Side) and item.kind == "late" and item.count > 0 for item in items)
        return sum(item.count for item in items)

    def promise(self, value, group=None):
        """Give a promise; returns the released frame (or None) and the promise that came out (or None)."""
        items = []
        for on_ids in self.feed.on_punctuation(0, Punctuation(value, group)):
            items += self.operator.on_punctuation(0, on_ids)
        frames = [item for item in items if isinstance(item, pl.DataFrame)]
        promises = [item for item in items if isinstance(item, Punctuation)]
        assert [*frames, *promises] == items, "results come before the promise that covers them"
        assert len(promises) <= 1
        return (pl.concat(frames) if frames else None), (promises[0].value if promises else None)

    def results(self, value):
        """{(window id, key): results} of what a promise releases."""
        frame, _ = self.promise(value)
        found = {}
        for row in frame.rows(named=True) if frame is not None else ():
            wid = (row["window_end"] - self.window.origin) // self.window.slide - 1
            assert row["window_end"] == self.window.end(wid)
            assert row["window_start"] == self.window.start(wid)
            at = wid, tuple(row[k] for k in self.keys)
            assert at not in found, "released twice"
            found[at] = {name: row[name] for name, _, _ in self.specs}
        return found


def same(got, want):
    """Equal results: integers exactly, doubles but for rounding, NaN equals NaN."""
    if isinstance(got, float) and isinstance(want, float):
        return math.isclose(got, want, rel_tol=1e-9, abs_tol=1e-9) or (math.isnan(got) and math.isnan(want))
    return got == want


def assert_same(got, want):
    assert set(got) == set(want)
    for at, results in want.items():
        assert all(same(got[at][name], value) for name, value in results.items()), (at, got[at], results)


# -- the properties, for any kind of operator --------------------------------------------------------------------------
def check_replay(kind, window, steps, keys=("k",)):
    """Every call gives exactly what the model says; returns how many rows were late."""
    run, model = Run(kind, window, keys), Model(window, keys)
    total = 0
    for step, restore in steps:
        if restore:
            run.restart()
        if isinstance(step, list):
            late = model.take(step)
            assert run.take(step) == late
            total += late
        else:
            assert_same(run.results(step), model.promise(step))
    assert run.operator.state_bytes() == 0
    assert set(run.operator.snapshot()) == {"closed"}
    return total


def check_promises(kind, window, steps):
    """What comes out is promised truly, and no stronger promise would be true."""
    run, given, told = Run(kind, window, specs=COUNTS), START, START
    for step, _ in steps:
        if isinstance(step, list):
            run.take(step)
            continue
        frame, news = run.promise(step)
        if frame is not None:
            assert frame["window_end"].min() >= told
        given, told = max(given, step), max(told, START if news is None else news)
        if given == END:
            assert told == END
        elif given > START:
            # A row that keeps the promise given, in the first window that is not covered, must still come out.
            another = run.copy()
            first = max(given, told - window.range)
            assert another.take([{"@t": first, "k": "late?", "x": 1, "f": None}]) == 0
            frame, _ = another.promise(END)
            assert frame["window_end"].min() == told
            assert frame.filter(pl.col("k") == "late?")["window_end"].min() == told


def first_wait(operator):
    """The smallest promise that an operator which holds rows waits for; None if none would change anything."""
    return min((w.promise for w in operator.waits_for() if w.holds != "promises"), default=None)


def check_waits(kind, window, steps):
    """``waits_for`` names the smallest promise at which results come out or state is freed, and what is held."""
    run = Run(kind, window, specs=COUNTS)
    for step, _ in steps:
        _ = run.take(step) if isinstance(step, list) else run.promise(step)
        wake = first_wait(run.operator)
        for wait in run.operator.waits_for():
            assert (wait.port, wait.bytes) == (0, run.operator.state_bytes())
            assert wait.count > 0
            assert wait.since < wait.promise
        if wake is None:
            frame, _ = run.copy().promise(END)
            assert frame is None
            assert run.operator.state_bytes() == 0
            continue
        early, in_time = run.copy(), run.copy()
        frame, _ = early.promise(wake - 1)
        assert frame is None
        assert early.operator.chunks.snapshot().keys() == run.operator.chunks.snapshot().keys()
        frame, _ = in_time.promise(wake)
        freed = in_time.operator.state_bytes() < run.operator.state_bytes()
        assert frame is not None or freed


KEYS = [
    (pl.Float64(), [math.nan, 0.5, -0.5]),
    (pl.Boolean(), [True, False]),
    (pl.Date(), [dt.date(2020, 1, 1), dt.date(1969, 12, 31)]),
    (pl.List(pl.Int64()), [[1, 2], [1], []]),
]


def check_keys(kind, dtype, keys):
    """Values of any type are groups, NULL and NaN among them; equal ones meet across batches and restores."""
    run = Run(kind, Sliding(4, 2), specs=COUNTS, schema={**SCHEMA, "k": dtype})
    for key in [*keys, None]:
        for t in (1, 0):
            run.take([{"@t": t, "k": key, "x": 1, "f": None}])
            run.restart()
    frame, _ = run.promise(END)
    found = sorted(repr((row["k"], row["window_end"], row["n"])) for row in frame.rows(named=True))
    assert found == sorted(repr((key, end, 2)) for key in [*keys, None] for end in (2, 4))
