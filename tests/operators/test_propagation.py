"""What an operator promises is the strongest promise that is true (Li 8.2): of what it puts out after it, nothing is
below it, and some continuation of its input that keeps its own promise gives a row exactly there.
"""

import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import windrow as wr
from windrow.aggregates import Partials, make
from windrow.graph import Graph
from windrow.operators import (
    AdaptPaned,
    AdaptWid,
    Admit,
    Apply,
    Bins,
    Bucket,
    BufferedByTuple,
    Buffering,
    DupElim,
    Gate,
    Generate,
    Instants,
    Judge,
    Lookup,
    Meld,
    Merge,
    Options,
    Paned,
    Panes,
    Project,
    Punctuate,
    Retime,
    Running,
    Select,
    Sessions,
    SlidByTuple,
    Sort,
    Split,
    Top,
    Unique,
    WallClock,
    Wid,
    Windowing,
)
from windrow.progress import END, START, Punctuation
from windrow.spec.functions import Function
from windrow.spec.names import ROW
from windrow.spec.rules import RowSlack
from windrow.spec.tables import Table
from windrow.windows import Landmark, Session, SlideByTuple, Sliding

CHECK = settings(deadline=None, derandomize=True, max_examples=8)
COUNT = Partials([make("count", "n", None, pl.Int64())])
BOUND = pl.Int64()
SLIDING = Sliding(10, 4, 1)
GAPS = Sliding(3, 10, 2)
RESULT = Project([pl.all(), pl.col("window_end").alias("@t")])  # results progress on window_end
ZERO = pl.col("x") == 0
TWO = pl.DataFrame({"x": [0, 0], "name": ["a", "b"]})
NAMES = Table("names", tuple(TWO.schema.items()), lambda: TWO)
TENS = Function("tens", lambda t: t // 10 * 10, ("t",), pl.Int64(), monotone=True)


def aggregate(feed, kind, window, *more):
    return [feed, kind(Windowing(window, (), COUNT, BOUND, *more)), RESULT]


# Each makes the operators of a chain anew. All take rows with columns t, @t and x, and put out rows with @t.
CHAINS = {
    "select": lambda: [Select(pl.col("t") >= 0)],
    "project": lambda: [Project([(pl.col("t") * 2).alias("y"), pl.col("@t")])],
    "apply": lambda: [Apply("y", Function("y", lambda t: -t, ("t",), pl.Int64()))],
    "apply to the attribute": lambda: [Apply("t", TENS, pl.Int64())],
    "retime": lambda: [Retime("t", pl.Int64(), pl.col("t") // 7 * 7 + 3, pl.Int64())],
    "lookup": lambda: [Lookup(NAMES, [(pl.col("x"), pl.col("x"))], [("t", 0, "t"), ("name", 1, "name")])],
    "split": lambda: [Split(ZERO, [], [Select(pl.col("x") == 7)])],
    "split, one way moved": lambda: [Split(ZERO, [], [Retime("t", pl.Int64(), pl.col("t") - 5, pl.Int64())])],
    "unique": lambda: [Unique(["t", "x"])],
    "dupelim": lambda: [DupElim(["@t", "x"])],
    "sort": lambda: [Sort()],
    "sort by more": lambda: [Sort(["t"], [True])],
    "merge": lambda: [Merge(1)],
    "meld": lambda: [Meld(1)],
    "admit": lambda: [Project([pl.col("t", "x")]), Admit("t", pl.Int64())],
    "punctuate": lambda: [Punctuate(None)],
    "generate": lambda: [Generate(RowSlack(1000))],
    "gate": lambda: [Project([pl.all(), pl.struct("t").alias(ROW)]), Gate(SLIDING, BOUND, Options(late="side"))],
    # The next two promise about window ids: a pane is in the windows from the one on whose slide it lies in.
    "panes": lambda: [Panes(SLIDING, (), COUNT), Project([(pl.col("@pane") * 2 // 4).alias("@t")])],
    "bucket": lambda: [Bucket(SLIDING), Project([pl.col("@first").alias("@t")])],
    "clock": lambda: [WallClock("Europe/Berlin")],
    "paned": lambda: aggregate(Panes(SLIDING, (), COUNT), Paned, SLIDING),
    "paned, gaps": lambda: aggregate(Panes(GAPS, (), COUNT), Paned, GAPS),
    "wid": lambda: aggregate(Bucket(SLIDING), Wid, SLIDING),
    "buffering": lambda: aggregate(Bucket(SLIDING), Buffering, SLIDING),
    "adaptwid": lambda: aggregate(Bucket(SLIDING), AdaptWid, SLIDING),
    "adaptpaned": lambda: aggregate(Bucket(SLIDING), AdaptPaned, SLIDING),
    "landmark": lambda: aggregate(Panes(Sliding(6, 6), (), COUNT), Running, Landmark(6)),
    "session": lambda: [Instants(("x",), COUNT), Sessions(Windowing(Session(4), ("x",), COUNT, BOUND)), RESULT],
    "slide by tuple": lambda: aggregate(Instants((), COUNT), SlidByTuple, SlideByTuple(5, 1)),
    "slide by tuple, bins": lambda: aggregate(Instants((), COUNT), Bins, SlideByTuple(5, 1)),
    "slide by tuple, buffering": lambda: aggregate(Instants((), COUNT), BufferedByTuple, SlideByTuple(5, 1)),
    "windows over windows": lambda: [
        *aggregate(Panes(SLIDING, (), COUNT), Paned, SLIDING),
        *aggregate(Panes(GAPS, (), COUNT), Paned, GAPS),
    ],
    "top": lambda: [*aggregate(Panes(SLIDING, (), COUNT), Paned, SLIDING), Top(["n"], [True], 1)],
}
GAPPED = {"paned, gaps": 11, "windows over windows": 11}  # where no window may hold the promised value itself
LIFE = 60  # how far continuations go: longer than any window


def chain(name):
    graph, last = Graph(), None
    for number, operator in enumerate(CHAINS[name]()):
        last = graph.add(str(number), operator, [] if last is None else [last])
    graph.input(0)
    return graph


def rows(values, x=0):
    return pl.DataFrame({"t": values, "@t": values}, schema={"t": pl.Int64(), "@t": pl.Int64()}).with_columns(x=x)


def run(name, before, promise, after, x=0):
    """What a chain promises, and the progress values of what it puts out afterwards until the stream ends."""
    graph = chain(name)
    graph.on_batch(0, rows(before))
    told = [i.value for i in graph.on_punctuation(0, Punctuation(promise)) if isinstance(i, Punctuation)]
    assert told == sorted(set(told)), "each promise says more than the one before it"
    later = graph.on_batch(0, rows(after, x)) if after else []
    later += graph.on_punctuation(0, Punctuation(promise + LIFE)) + graph.on_punctuation(0, Punctuation(END))
    found = [t for i in later if isinstance(i, pl.DataFrame) for t in i["@t"].to_list()]
    assert not any(not isinstance(i, (pl.DataFrame, Punctuation)) for i in later), "nothing is late or bad"
    return (told[-1] if told else START), found


@pytest.mark.parametrize("name", CHAINS)
@CHECK
@given(before=st.lists(st.integers(0, 40), max_size=6), promise=st.integers(0, 40), data=st.data())
def test_what_comes_out_after_a_promise_is_never_below_it(name, before, promise, data):
    after = data.draw(st.lists(st.integers(promise, promise + 30), max_size=5))
    told, found = run(name, before, promise, after)
    assert all(at >= told for at in found)


@pytest.mark.parametrize("name", CHAINS)
@CHECK
@given(before=st.lists(st.integers(0, 40), max_size=6), promise=st.integers(0, 40))
def test_a_promise_one_step_stronger_would_be_broken(name, before, promise):
    told = run(name, before, promise, [])[0]
    tried = [(t, x) for t in range(promise, promise + GAPPED.get(name, 1)) for x in (0, 7)]
    least = min(at for t, x in tried for at in run(name, before, promise, [t], x)[1])
    assert least == told, "this continuation gives a row below anything stronger"


@pytest.mark.parametrize("name", CHAINS)
@CHECK
@given(before=st.lists(st.integers(0, 40), max_size=6), promises=st.sets(st.integers(0, 60), max_size=12))
def test_no_operator_promises_the_same_twice(name, before, promises):
    graph = chain(name)
    graph.on_batch(0, rows(before))
    told = []
    for value in [*sorted(promises), END]:
        told += [i.value for i in graph.on_punctuation(0, Punctuation(value)) if isinstance(i, Punctuation)]
    assert told == sorted(set(told))


@CHECK
@given(st.lists(st.tuples(st.integers(0, 1), st.integers(0, 9)), max_size=8), st.booleans())
def test_a_union_promises_no_more_than_its_slowest_input(promises, in_order):
    union = Merge(2) if in_order else Meld(2)
    lows, told = [START, START], START
    for port, value in promises:
        lows[port] = max(lows[port], value)
        for item in (i for i in union.on_punctuation(port, Punctuation(value)) if isinstance(i, Punctuation)):
            assert item.value > told, "duplicates never leave"
            told = item.value
        assert told == min(lows)
        if told > START:  # the slowest input may still send a row exactly there
            (out,) = union.on_batch(lows.index(told), rows([told]))
            assert out["@t"].to_list() == [told]


def test_a_judge_promises_what_the_evidence_allows_and_nothing_twice():
    rule = RowSlack(1)
    judge = Judge(rule)
    evidence = rule.evidence(rows([5, 9, 7]))
    assert judge.on_batch(0, evidence) == [Punctuation(9)]  # 9 may come again: a row is one row late at most
    assert judge.on_batch(0, rule.evidence(rows([9]))) == []


@pytest.mark.parametrize("late", ["drop", "side"])
def test_a_row_that_breaks_a_promise_is_late_counted_and_follows_the_policy(late):
    """Through a whole plan of operators that pass promises on."""
    stream = wr.stream(rows([]).select("t"), "t", slack=0, name="s")
    ways = stream.split("t % 2 = 0", otherwise=lambda rest: rest.where("t % 3 = 0")).select(m="t div 10 * 10", t="t")
    run = ways.window(10).late(late).agg(n=wr.count()).run()
    run.push("s", [{"t": t} for t in (4, 9, 25)])
    run.push("s", [{"t": 3}, {"t": 27}])
    assert run.counts["rows_late"] == 1
    assert run.end().results().rows() == [(0, 10, 2), (20, 30, 1)]
    assert run.late_rows().height == 1
