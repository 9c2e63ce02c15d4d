"""``waits_for``: each operator names the port, the promise and what it holds; a smaller promise changes nothing."""

import inspect

import polars as pl
import pytest

import windrow.operators as operators
from windrow.aggregates import Partials, make
from windrow.operators import (
    AdaptPaned,
    AdaptWid,
    Bins,
    Bucket,
    BufferedByTuple,
    Buffering,
    DupElim,
    FixedTable,
    Instants,
    Meld,
    Merge,
    PairAggregate,
    Paned,
    PanedRows,
    Panes,
    PartitionedRows,
    Running,
    Sessions,
    SharedPanes,
    SlidByTuple,
    Sort,
    Top,
    Wait,
    Wid,
    Windowing,
)
from windrow.operators.operator import Forwarding
from windrow.operators.ring.joining import Joining
from windrow.operators.ring.layout import Wishes
from windrow.operators.windows.shared import Level, Query
from windrow.progress import END, START, Punctuation
from windrow.spec.flush import Flush
from windrow.windows import Landmark, Partitioned, Session, SlideByTuple, Sliding
from windrow.windows.multiway import Ranges

COUNT = Partials([make("count", "n", None, pl.Int64())])
WINDOW = Sliding(10, 5)
PANES = Sliding(5, 5)
ROWS = pl.DataFrame({"@t": [12, 13], "k": ["a", "b"]})


class Chain:
    """An operator behind the one that feeds it, so that all take the same rows and promises."""

    def __init__(self, operator, feed=None):
        self.operator, self.feed = operator, feed

    def on_batch(self, batch):
        fed = self.feed.on_batch(0, batch) if self.feed else [batch]
        return [x for each in fed for x in self.operator.on_batch(0, each)]

    def promise(self, value):
        fed = self.feed.on_punctuation(0, Punctuation(value)) if self.feed else [Punctuation(value)]
        return [x for each in fed for x in self.operator.on_punctuation(0, each)]


def windowing(window, **more):
    return Windowing(window, ("k",), COUNT, **more)


def shared():
    row = pl.Struct({"k": pl.String(), "window_start": pl.Int64(), "window_end": pl.Int64(), "n": pl.Int64()})
    queries = [Query(w, Level(windowing(window), PANES), dtype=row) for w, window in (("a", WINDOW), ("b", PANES))]
    return SharedPanes(PANES, ["k"], COUNT, queries)


TABLE = Flush("lazy", late=1)
# The operator with its feed, and what it waits for after two rows at 12 and 13 and a promise of 7.
WAITING = {
    "paned": (lambda: Chain(Paned(windowing(WINDOW)), Panes(WINDOW, ["k"], COUNT)), (15, 5, "partials", 2)),
    "paned-rows": (
        lambda: Chain(PanedRows(windowing(WINDOW)), Panes(WINDOW, ["k"], COUNT, few=9)),
        (15, 5, "partials", 2),
    ),
    "wid": (lambda: Chain(Wid(windowing(WINDOW)), Bucket(WINDOW)), (15, 5, "partials", 4)),
    "buffering": (lambda: Chain(Buffering(windowing(WINDOW)), Bucket(WINDOW)), (15, 5, "rows", 2)),
    "adaptwid": (lambda: Chain(AdaptWid(windowing(WINDOW)), Bucket(WINDOW)), (15, 5, "rows and partials", 2)),
    "adaptpaned": (lambda: Chain(AdaptPaned(windowing(WINDOW)), Bucket(WINDOW)), (15, 5, "rows and partials", 2)),
    "shared": (lambda: Chain(shared(), Panes(PANES, ["k"], COUNT)), (15, 5, "partials", 2)),
    "table": (
        lambda: Chain(FixedTable(windowing(WINDOW), slots=64, flush=TABLE)),
        (20, 5, "partials", 2),
    ),
    "landmark": (lambda: Chain(Running(windowing(Landmark(5))), Panes(PANES, ["k"], COUNT)), (15, 5, "partials", 2)),
    "session": (lambda: Chain(Sessions(windowing(Session(4))), Instants(["k"], COUNT)), (16, 7, "partials", 2)),
    "by tuple": (
        lambda: Chain(SlidByTuple(windowing(SlideByTuple(5))), Instants(["k"], COUNT)),
        (13, 7, "partials", 2),
    ),
    "by tuple, bins": (
        lambda: Chain(Bins(windowing(SlideByTuple(5))), Instants(["k"], COUNT)),
        (13, 7, "partials", 4),  # a start bin and an end bin for each row
    ),
    "by tuple, buffering": (
        lambda: Chain(BufferedByTuple(windowing(SlideByTuple(5))), Instants(["k"], COUNT)),
        (13, 7, "partials", 2),
    ),
    "partitioned": (
        lambda: Chain(PartitionedRows(windowing(Partitioned(2, 1), parts=("k",)))),
        (13, 7, "rows", 2),
    ),
    "sort": (lambda: Chain(Sort()), (12, 7, "rows", 2)),
    "sort, ties": (lambda: Chain(Sort(["k"], [False])), (13, 7, "rows", 2)),
    "merge": (lambda: Chain(Merge(1)), (12, 7, "rows", 2)),
    "dupelim": (lambda: Chain(DupElim(["@t", "k"])), (13, 7, "rows", 2)),
}


def found(chain):
    return [(w.promise, w.since, w.holds, w.count) for w in chain.operator.waits_for()]


@pytest.mark.parametrize(("make", "wanted"), WAITING.values(), ids=WAITING)
def test_what_each_operator_waits_for(make, wanted):
    chain = make()
    assert chain.operator.waits_for() == [], "an operator that holds nothing waits for nothing"
    chain.promise(7)
    chain.on_batch(ROWS)
    assert found(chain) == [wanted]
    (wait,) = chain.operator.waits_for()
    assert (wait.port, wait.at) == (0, "")
    assert 0 < wait.bytes <= chain.operator.state_bytes()
    early = make()
    early.operator.restore(chain.operator.snapshot())
    assert early.operator.waits_for() == [wait], "it knows after a restart"
    before = early.operator.state_bytes()
    frames = [x for x in early.promise(wait.promise - 1) if isinstance(x, pl.DataFrame)]
    assert frames == []
    assert early.operator.state_bytes() >= before, "a smaller promise neither releases nor frees anything"
    frames = [x for x in early.promise(wait.promise) if isinstance(x, pl.DataFrame)]
    assert frames or sum(w.count for w in early.operator.waits_for()) < wait.count
    chain.promise(END)
    if not isinstance(chain.operator, (Running, PartitionedRows)):  # their totals and ranks stay for ever
        assert chain.operator.waits_for() == []


def test_nothing_promised_yet_shows():
    chain = WAITING["paned"][0]()
    chain.on_batch(ROWS)
    assert found(chain) == [(15, START, "partials", 2)]
    assert str(chain.operator.waits_for()[0]) == "waits on port 0 for a promise >= 15, holding 2 partials"


def test_a_table_without_a_bound_waits_for_the_end_of_the_stream():
    table = FixedTable(windowing(WINDOW), slots=64, flush=Flush("lazy", late=None))
    table.on_batch(0, ROWS)
    (wait,) = table.waits_for()
    assert str(wait) == "waits on port 0 for the end of the stream, holding 2 partials"


def test_top_waits_for_the_end_of_its_first_window():
    rows = pl.DataFrame({"window_start": [0, 0], "window_end": [5, 5], "n": [1, 2], "@t": [4, 4]})
    top = Top(["n"], [True], 1)
    top.on_batch(0, rows)
    assert top.waits_for() == [Wait(0, 5, START, "rows", 1, top.state_bytes())]


def test_a_union_names_the_inputs_that_hold_it_back():
    merge = Merge(3)
    merge.on_batch(0, pl.DataFrame({"@t": [5, 9]}))
    merge.on_punctuation(0, Punctuation(9))
    merge.on_punctuation(1, Punctuation(3))
    waits = merge.waits_for()
    assert [(w.port, w.promise, w.since, w.count) for w in waits] == [(1, 5, 3, 2), (2, 5, START, 2)]
    meld = Meld(3)
    for port, value in ((0, 9), (1, 3)):
        meld.on_punctuation(port, Punctuation(value))
    assert [(w.port, w.promise, w.since, w.holds, w.count) for w in meld.waits_for()] == [
        (2, START + 1, START, "promises", 2)
    ]
    meld.on_punctuation(2, Punctuation(4))
    assert [(w.port, w.promise, w.since) for w in meld.waits_for()] == [(1, 4, 3)]


def test_a_ring_names_the_inputs_that_its_rows_wait_for():
    ring = operators.Ring(Joining(Ranges((10, 10, 10)), (("a",), ("b",), ("c",))), Wishes(most=2))
    assert ring.waits_for() == []
    ring.on_batch(0, pl.DataFrame({"@t": [5, 9], "a": [1, 2]}))
    ring.on_punctuation(0, Punctuation(9))
    ring.on_punctuation(1, Punctuation(3))
    waits = ring.waits_for()
    assert [(w.port, w.promise, w.since, w.holds, w.count) for w in waits] == [
        (1, 6, 3, "rows", 2),
        (2, 6, START, "rows", 2),
    ]
    for port in (1, 2):
        ring.on_punctuation(port, Punctuation(8))
    assert [(w.port, w.promise, w.since, w.count) for w in ring.waits_for()] == [
        (0, 10, 9, 1),
        (1, 10, 8, 1),
        (2, 10, 8, 1),
    ]


def test_every_operator_answers_and_those_that_hold_nothing_back_wait_for_nothing():
    waiting = {type(make().operator) for make, _ in WAITING.values()} | {Top, Meld, PairAggregate}
    for name in operators.__all__:
        kind = getattr(operators, name)
        if not inspect.isclass(kind) or not hasattr(kind, "on_batch") or kind is operators.Operator:
            continue
        assert callable(kind.waits_for)
        if name.endswith("Join") or name in ("Matcher", "Ring"):  # of several inputs: tested elsewhere
            continue
        assert (kind.waits_for is Forwarding.waits_for) == (kind not in waiting), name
