"""Whole queries drawn from everything that can be combined, under random arrival and restarts, against the oracle."""

import math

import polars as pl
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import windrow as wr
from windrow.spec.in_order import MODES
from windrow.spec.spread import RINGS
from windrow.testing import compare, oracle, replay

CHECK = settings(
    deadline=None,
    derandomize=True,
    max_examples=60,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)
KEYS = {
    "text": (pl.String(), ["a", "b", "", None]),
    "float": (pl.Float64(), [math.nan, 0.0, -0.0, 1.5, None]),
    "boolean": (pl.Boolean(), [True, False, None]),
    "integer": (pl.Int32(), [0, -1, 2**31 - 1, None]),
}
TIMES = {"wide": pl.Int64(), "narrow": pl.Int8(), "unsigned": pl.UInt16()}
AGGREGATES = {
    "n": wr.count(),
    "s": wr.sum("x"),
    "m": wr.median("x"),
    "low": wr.min("f"),
    "set": wr.collect_set("x"),
    "list": wr.collect_list("x"),
    "v": wr.var("x"),
    "kinds": wr.count_distinct("k"),
}
SIZES = st.integers(1, 30)
KINDS = st.sampled_from(["left", "inner"])


@st.composite
def sources(draw):
    """One to three streams of the same columns."""
    kind, time = draw(st.sampled_from(sorted(KEYS))), draw(st.sampled_from(sorted(TIMES)))
    dtype, values = KEYS[kind]
    low = 0 if time == "unsigned" else -40
    row = st.tuples(
        st.integers(low, 100),
        st.sampled_from(values),
        st.sampled_from([None, 0, 1, -7, 2**40]),
        st.sampled_from([None, 1.5, math.nan, -math.inf]),
    )
    schema = {"t": TIMES[time], "k": dtype, "x": pl.Int64(), "f": pl.Float64()}
    slack = draw(st.sampled_from([0, 5, 200]))
    streams = []
    for number in range(draw(st.integers(1, 3))):
        frame = pl.DataFrame(draw(st.lists(row, max_size=14)), schema=schema, orient="row")
        streams.append(wr.stream(frame, progress="t", slack=slack, name=f"s{number}"))
    return streams


@st.composite
def windowed(draw, stream, depth=0):
    """A window of any type over a stream, with what else a query can ask for."""
    kind = draw(st.sampled_from(["sliding", "sliding", "landmark", "session", "each row"]))
    kind = "sliding" if kind == "landmark" and depth else kind
    if kind == "sliding":
        using = draw(st.sampled_from([None, "paned", "wid", "buffering", "adaptwid", "adaptpaned", "iop"]))
        made = stream.window(draw(SIZES), draw(SIZES), using=using)
        plain = using in (None, "paned")
        option = draw(st.sampled_from(["none", "empty", "early", "revise"])) if plain else "none"
        if option == "empty":
            made = made.with_empty()
        elif option == "early" and not depth:
            made = made.emit_early(draw(SIZES))
        elif option == "revise" and not depth:
            made = made.late("revise", keep=draw(SIZES))
    elif kind == "landmark":
        made = stream.landmark(draw(SIZES))
    elif kind == "session":
        made = stream.session(draw(SIZES))
    else:
        made = stream.each_row(
            draw(SIZES), draw(st.integers(1, 3)), using=draw(st.sampled_from([None, "bins", "buffering"]))
        )
    return made


@st.composite
def beside(draw, streams):
    """Several streams as one: their rows, those of one that follow those of the others, or pairs in order."""
    how = draw(st.sampled_from(["union", "union", "as of", "recent", "chronicle", "pairs", "multi"]))
    if how == "union":
        return streams[0].union(*streams[1:])
    first, *others = streams
    if how == "multi":
        within = {each.node.name: draw(SIZES) for each in streams}
        using = draw(st.sampled_from([None, "multi", "pipeline", "ring", "atr", "ctr"]))
        nodes = draw(st.sampled_from([None, 1, 2])) if using in RINGS else None
        return wr.multi_join(*streams, on="k", within=within, using=using, nodes=nodes)
    other = others[0].union(*others[1:]) if len(others) > 1 else others[0]
    if how == "as of":
        strategy = draw(st.sampled_from(["backward", "forward", "nearest"]))
        return first.join_asof(other, by="k", strategy=strategy, tolerance=draw(SIZES), how=draw(KINDS))
    if how == "pairs":
        using = draw(st.sampled_from([*MODES, "adaptive"]))
        more = {"cost": draw(st.sampled_from([0.001, 1.0, 1e9]))} if using == "adaptive" else {}
        found = first.join(other, on="k", within=(-draw(SIZES), draw(SIZES)), using=using, **more)
        later = draw(st.booleans())  # the order is that of what the window is over
        return found.select("k", "x", "f", t="greatest(t, t_right)" if later else "t")
    return first.following(other, on="k", matching=how, within=draw(SIZES), how=draw(KINDS))


@st.composite
def queries(draw):
    streams = draw(sources())
    united = draw(beside(streams)) if len(streams) > 1 else streams[0]
    if draw(st.booleans()):
        united = united.where(draw(st.sampled_from(["x >= 0", "k IS NOT NULL", "t > 10 OR x IS NULL"])))
    if draw(st.booleans()):
        united = united.select("t", "k", "f", x="x", y="t % 3")
    grouped = draw(st.booleans())
    names = draw(st.lists(st.sampled_from(sorted(AGGREGATES)), min_size=1, max_size=3, unique=True))
    made = draw(windowed(united))
    query = (made.group_by("k") if grouped else made).agg(**{name: AGGREGATES[name] for name in names}, c=wr.count())
    again = query.node.progress is not None and draw(st.booleans())
    if again:
        outer = draw(windowed(query, depth=1))
        outer = outer.group_by("k") if grouped and draw(st.booleans()) else outer
        query = outer.agg(c=wr.sum("c"), parts=wr.count())
    if draw(st.booleans()):
        query = query.where("c > 1")
    return query


@CHECK
@given(query=queries(), seed=st.integers(0, 99))
def test_any_query_gives_what_it_means_in_any_order_of_arrival(query, seed):
    if "version" not in query.schema:
        compare(query.collect(), oracle(query), "at once")
    replay(query, runs=2, seed=seed)
