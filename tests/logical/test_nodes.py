"""Every logical node: rebuilt it is the same, walked once, and what it asks of its inputs is enough."""

import random
from dataclasses import replace

import polars as pl
import pytest

import windrow as wr
from windrow.logical import nodes
from windrow.logical.kinds import OnRows, SameRows, Single
from windrow.logical.node import Node, columns_in
from windrow.logical.nodes import columns_asked, columns_read
from windrow.testing import compare

SCHEMA = {"t": pl.Int64(), "k": pl.Int64(), "x": pl.Int64(), "y": pl.Int64(), "n": pl.Int64()}
ROWS = pl.DataFrame({"t": [3, 1, 7], "k": [0, 1, 0], "x": [5, 6, 7], "y": [1, 2, 3], "n": [0, 1, 2]})


def stream(name="s", data=ROWS, **more):
    return wr.stream(data, "t", slack=50, name=name, **more)


def counted(source, *keys):
    return source.window(5).group_by(*keys).agg(c=wr.count(), m=wr.max("y"))


def doubled(x):
    return 2 * x


SHARED = stream()
NAMES = wr.table([{"k": 0, "name": "zero"}], name="names")
QUERIES = {
    "Scan": lambda: stream(),
    "Filter": lambda: stream().where("x > 1"),
    "Project": lambda: stream().select("t", z="x + y"),
    "Apply": lambda: stream().apply(z=wr.udf(doubled, "BIGINT", "x")),
    "Split": lambda: stream().split("x > 5", then=lambda s: s.where("y > 1")),
    "Union": lambda: stream("a").union(stream("b")),
    "WindowAggregate": lambda: counted(stream(), "k"),
    "Top": lambda: counted(stream(), "k").top(1, by="m"),
    "Distinct": lambda: stream().distinct(),
    "Ordered": lambda: stream().order_by("t", "y DESC"),
    "Join": lambda: stream("a").join(stream("b"), on="k", within=(0, 5)),
    "MultiJoin": lambda: wr.multi_join(stream("a"), stream("b"), stream("c"), on="k", within=5),
    "AsOf": lambda: stream("a").join_asof(stream("b"), by="k", max_keys=9),
    "Sequence": lambda: wr.seq({"a": stream("a"), "b": stream("b")}, on="k", within=5),
    "Lookup": lambda: stream().join(NAMES, on="k", how="left", where="x > 5"),
    "PairAggregate": lambda: (
        stream("a").join(stream("b"), on="k", within=(0, 5)).group_by("t", "t_right", "y").agg(m=wr.max("x"))
    ),
    "Together": lambda: wr.together(a=counted(SHARED, "k"), b=SHARED.window(20).group_by("k").agg(s=wr.sum("x"))),
}


def classes(node=Node):
    """The classes of nodes that a query can have."""
    own = [] if node in (Node, Single, OnRows, SameRows) else [node.__name__]
    return {*own, *(name for each in node.__subclasses__() for name in classes(each))}


def test_every_class_of_nodes_is_tested_here():
    assert classes() == set(QUERIES)


@pytest.mark.parametrize("name", QUERIES)
def test_a_node_over_its_own_inputs_is_the_same(name):
    node = QUERIES[name]().node
    assert type(node).__name__ == name
    again = node.rebuild(*node.inputs)
    assert again == node
    assert (again.schema, again.times, again.progress) == (node.schema, node.times, node.progress)
    assert all(a is b for a, b in zip(again.inputs, node.inputs, strict=True))


@pytest.mark.parametrize("name", [name for name in QUERIES if name != "Scan"])
def test_a_node_over_other_inputs_keeps_everything_else(name):
    node = QUERIES[name]().node
    others = [each.rebuild(*each.inputs) for each in node.inputs]
    others = [nodes.Filter(each, wr.stream(ROWS, "t").where("1 = 1").node.predicate) for each in others]
    again = node.rebuild(*others)
    assert list(again.inputs) == others
    assert again != node
    assert again.rebuild(*node.inputs) == node


@pytest.mark.parametrize("name", QUERIES)
def test_a_node_takes_exactly_its_inputs(name):
    node = QUERIES[name]().node
    if name != "Union":  # which takes any number
        with pytest.raises((ValueError, AssertionError)):
            node.rebuild(*node.inputs, stream().node)
    asked = node.columns_used(set(node.schema))
    assert len(asked) == len(node.inputs)
    for used, given in zip(asked, node.inputs, strict=True):
        assert used <= set(given.schema)


@pytest.mark.parametrize("name", QUERIES)
def test_what_is_asked_for_grows_with_what_is_wanted(name):
    node = QUERIES[name]().node
    everything = node.columns_used(set(node.schema))
    for column in node.schema:
        one = node.columns_used({column})
        assert all(a <= b for a, b in zip(one, everything, strict=True))


def test_a_walk_gives_every_node_once_inputs_first():
    for make in QUERIES.values():
        found = list(make().node.walk())
        seen = set()
        for each in found:
            assert id(each) not in seen
            assert all(id(given) in seen for given in each.inputs)
            seen.add(id(each))


def test_a_walk_goes_by_identity_not_by_value():
    s = stream()
    same = s.join(s, on="k", within=(0, 5)).node
    equal = same.rebuild(same.left, replace(same.right))
    assert same == equal
    assert len(list(same.walk())) == 2
    assert len(list(equal.walk())) == 3


# -- columns -----------------------------------------------------------------------------------------------------------
def test_columns_of_expressions():
    query = stream().where("x + y > t").node
    assert columns_in([query.predicate, None]) == {"x", "y", "t"}


USED = {
    "Filter": ({"x"}, [{"x"}]),
    "Project": ({"t"}, [{"t", "x", "y"}]),
    "Apply": ({"z"}, [{"x"}]),
    "Split": ({"k"}, [{"t", "k", "x", "y"}]),
    "Union": ({"y"}, [{"y"}, {"y"}]),
    "WindowAggregate": ({"c"}, [{"t", "k", "y"}]),
    "Top": ({"c"}, [{"c", "m"}]),
    "Distinct": ({"t"}, [set(SCHEMA)]),
    "Ordered": ({"k"}, [{"k", "t", "y"}]),
    "Join": ({"x"}, [{"t", "k", "x"}, {"t", "k"}]),
    "Together": ({"a"}, [{"k", "window_start", "window_end", "c", "m"}, {"k", "window_start", "window_end", "s"}]),
}


@pytest.mark.parametrize("name", USED)
def test_what_a_node_asks_of_its_inputs(name):
    wanted, expected = USED[name]
    assert list(QUERIES[name]().node.columns_used(wanted)) == expected


def test_a_node_that_two_use_is_asked_for_what_both_need():
    s = stream()
    query = s.select("t", z="x").union(s.select("t", z="y")).node
    [scan] = [each for each in query.walk() if isinstance(each, nodes.Scan)]
    assert columns_asked(query, {"t", "z"})[id(scan)] == {"t", "x", "y"}
    assert columns_read(query, {"t", "z"}) == {"s": {"t", "x", "y"}}


def test_a_user_aggregate_and_late_rows_ask_for_the_whole_row():
    late = stream().window(5).late("side").agg(c=wr.count()).node
    assert late.columns_used({"c"}) == (set(SCHEMA),)


# -- what is asked for is enough ---------------------------------------------------------------------------------------
def data(rng, count=25):
    rows = [(*(rng.randrange(high) for high in (30, 3, 5, 5)), i) for i in range(count)]
    return pl.DataFrame(rows, schema=SCHEMA, orient="row")


ONE = "CAST(1 AS BIGINT)"


def drawn(rng, sources, depth):
    """A random stream with the columns of a source."""
    if not depth:
        return rng.choice(sources)
    given = drawn(rng, sources, depth - 1)
    columns = rng.sample(["k", "x", "y", "n"], 4)
    kinds = ["where", "select", "apply", "split", "union", "window", "top", "distinct", "join", "order", "pairs"]
    match rng.choice(kinds):
        case "where":
            return given.where(f"{columns[0]} > {rng.randrange(3)}")
        case "select":
            return given.select("t", k=columns[0], x=f"{columns[1]} % 3L", y=ONE, n=columns[2])
        case "apply":
            return given.apply(**{columns[0]: wr.udf(lambda v: v % 3, "BIGINT", columns[1])})
        case "split":
            return given.split(f"{columns[0]} > 1", lambda s: s.apply(**{columns[1]: f"{columns[2]} + 1"}))
        case "union":
            return given.union(drawn(rng, sources, rng.randrange(depth)))
        case "window":
            found = given.window(10).group_by("k", a=columns[0]).agg(c=wr.count(), m=wr.max(columns[1]))
            return found.select(t="window_time", k="k", x="a", y="c", n="m")
        case "top":
            found = given.window(10).group_by(a=columns[0]).agg(c=wr.count()).top(1, by="c + a")
            return found.select(t="window_time", k="a", x="a", y="c", n=ONE)
        case "distinct":
            return given.select("t", "k", x=columns[0], y=ONE, n=ONE).distinct()
        case "order":
            return given.order_by("t", *columns)
        case "pairs":
            found = given.join(drawn(rng, sources, rng.randrange(depth)), on=columns[0], within=(-1, 3))
            groups = found.group_by("t", "t_right", k=columns[1]).agg(m=wr.max(columns[2]))
            return groups.select(t="t", k="k", x="m", y="t_right", n=ONE)
        case "join":
            found = given.join(drawn(rng, sources, rng.randrange(depth)), on=columns[0], within=(-1, 3))
            return found.select(t="t", k="k", x=f"{columns[1]}_right", y="y", n="n")
    raise AssertionError


@pytest.mark.parametrize("seed", range(40))
def test_other_columns_of_a_source_change_nothing(seed):
    """Whatever stands in columns that a query does not read, even nothing at all, the result is the same."""
    rng = random.Random(seed)
    frames = {name: data(rng) for name in "ab"}
    sources = {name: stream(name, frame) for name, frame in frames.items()}
    query = drawn(rng, list(sources.values()), rng.choice([1, 2, 3]))
    wanted = rng.sample(["k", "x", "y", "n"], rng.choice([1, 2]))
    query = query.select("t", *wanted) if rng.random() < 0.8 else query
    read = columns_read(query.node, set(query.node.schema))
    assert {name: set(columns) for name, columns in query.plan().needed.items()} == read

    def emptied(name):
        source = query.sources[name]
        kept = [pl.col(c) if c in read[name] else pl.lit(None, dtype).alias(c) for c, dtype in SCHEMA.items()]
        return replace(source, data=source.data.select(kept))

    other = replace(query, sources={name: emptied(name) for name in query.sources})
    compare(other.collect(), query.collect(), f"seed {seed}")
