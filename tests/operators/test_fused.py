"""Fused: a chain in one node gives what its parts give in a node each."""

import math

import polars as pl
from hypothesis import example, given, settings
from hypothesis import strategies as st

import windrow as wr
from windrow.graph import Graph
from windrow.operators import Admit, Fused, Punctuate, Select, Side
from windrow.planner import Step, add_steps
from windrow.progress import Punctuation

CHECK = settings(deadline=None, derandomize=True, max_examples=60)
SCHEMA = {"t": pl.Int64(), "k": pl.Int64(), "v": pl.Float64()}
TIMES = st.integers(0, 40)
VALUES = st.sampled_from([None, math.nan, 1.0, 2.0])
ROWS = st.lists(
    st.fixed_dictionaries({"t": st.none() | TIMES, "k": st.none() | st.integers(0, 2), "v": VALUES}), max_size=12
)


def source(name="s"):
    return wr.stream(pl.DataFrame(schema=SCHEMA), "t", name=name).where("k IS NULL OR k < 2")


BROKEN = wr.udf(lambda v: 1 / (v - 1), "DOUBLE", "v")  # of NULL and 1 it is bad
CHAINS = [
    source().apply(w=BROKEN).where("w > 0").select("t", "k", w="w * 2"),
    source().window(10, 5).group_by("k").agg(n=wr.count(), top=wr.max("v")),
]


@given(rows=ROWS, promised=TIMES)
@example(rows=[{"t": None, "k": 1, "v": 1.0}, {"t": 1, "k": 1, "v": None}, {"t": 1, "k": 2, "v": 2.0}], promised=5)
@CHECK
def test_a_fused_chain_gives_what_its_parts_give_one_by_one(rows, promised):
    frame = pl.DataFrame(rows, SCHEMA)
    for query in CHAINS:
        steps = query.plan().pipelines()[0].whole
        fused, apart = Graph(), Graph()
        add_steps(fused, steps, None)
        add_steps(apart, steps, None, shared={})
        assert any(isinstance(node.operator, Fused) for node in fused.nodes)
        assert len(apart.nodes) == len(steps) > len(fused.nodes)
        for give in (lambda g: g.on_batch(0, frame), lambda g: g.on_punctuation(0, Punctuation(promised))):
            assert parted(give(fused)) == parted(give(apart))


def parted(items):
    """The main stream, and what left it: nothing depends on which of the two a host is given first."""
    return [[shown(item) for item in items if isinstance(item, Side) == side] for side in (False, True)]


def shown(item):
    """An item, so that NaN equals itself and groups can come in any order."""
    if isinstance(item, pl.DataFrame):
        return item.schema, sorted(map(repr, item.rows()))
    return (item, repr(item.rows.rows())) if isinstance(item, Side) else item


def test_neighbours_without_state_are_one_node_and_the_others_keep_their_names():
    query = source("a").union(source("b")).window(10, 5).group_by("k").agg(n=wr.count())
    assert [node.name for node in query.run().graph.nodes if node.name.startswith("stage0")] == [
        "stage0/0-select+prepare+panes",
        "stage0/3-select+prepare+panes",
        "stage0/6-meld",
        "stage0/7-paned",
    ]


def test_state_ends_a_chain():
    steps = [
        Step("admit", lambda: Admit("t", pl.Int64()), ""),
        Step("low", lambda: Select(pl.col("t") > 1), ""),
        Step("punctuate", lambda: Punctuate(0), ""),
        Step("high", lambda: Select(pl.col("t") < 9), ""),
    ]
    graph = Graph()
    add_steps(graph, steps, None)
    assert [node.name for node in graph.nodes] == ["0-admit+low", "1-punctuate", "2-high"]
    assert [x for x in graph.on_batch(0, pl.DataFrame({"t": [1, 4, 9]})) if isinstance(x, Punctuation)] == [
        Punctuation(9)
    ]
