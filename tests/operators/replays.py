"""Whole queries over random rows in random orders and batches, restored after every call, against the oracle."""

import math

import polars as pl
from hypothesis import strategies as st

import windrow as wr
from windrow.hosts.local import LocalRun
from windrow.testing import compare, oracle, replay

SCHEMA = {
    "t": pl.Int64(),
    "n": pl.Int64(),
    "k": pl.String(),
    "q": pl.Int64(),
    "x": pl.Int64(),
    "f": pl.Float64(),
    "w": pl.String(),
    "d": pl.Decimal(20, 2),
    "z": pl.Float64(),
}
total = wr.aggregate("total", lambda v: v, lambda a, b: a + b, lambda s: s, state="BIGINT", result="BIGINT")
mean = wr.aggregate(
    "mean_of",
    lambda v: {"n": 1, "s": v},
    lambda a, b: {"n": a["n"] + b["n"], "s": a["s"] + b["s"]},
    lambda s: s["s"] / s["n"],
    state="STRUCT<n: BIGINT, s: BIGINT>",
    result="DOUBLE",
    inverse=lambda a, b: {"n": a["n"] - b["n"], "s": a["s"] - b["s"]},
)
NUMBERS = {"n": wr.count(), "s": wr.sum("x"), "hi": wr.max("f"), "v": wr.var_pop("q"), "lo": wr.min("x")}
EVERY = {
    **NUMBERS,
    "nx": wr.count("x"),
    "a": wr.avg("q"),
    "sd": wr.stddev("q"),
    "kinds": wr.count_distinct("w"),
    "word": wr.min("w"),
    "first": wr.first("w"),
    "last": wr.last("x"),
    "list": wr.collect_list("w"),
    "set": wr.collect_set("q"),
    "med": wr.median("q"),
    "q9": wr.quantile("q", 0.9),
    "mode": wr.mode("w"),
    "top": wr.top_k("w", 2),
    "heavy": wr.heavy_hitters("w", 0.3),
    "about": wr.approx_count_distinct("w"),
    "aheavy": wr.approx_heavy_hitters("w", 0.3),
    "total": total("q"),
    "mean_of": mean("q"),
    "dec": wr.sum("d"),
    "dec_mean": wr.avg("d"),
    "dec_least": wr.min("d"),
    "some": wr.sum("x").filter("q = 1"),
}
GROUPS = st.sampled_from([(), ("k",), ("z",), ("k", "q"), ("z", "q")])
ROW = st.fixed_dictionaries(
    {
        "t": st.integers(-20, 40),
        "k": st.sampled_from(["a", "b", None]),
        "q": st.integers(1, 3),
        "x": st.sampled_from([None, 0, 1, -7, 2**55]),
        "f": st.sampled_from([None, 1.5, -2.25, math.nan, math.inf]),
        "w": st.sampled_from([None, "u", "v", "w"]),
        "d": st.sampled_from([None, 125, -350]),
        "z": st.sampled_from([math.nan, None, 0.0, -0.0, 1.5]),
    }
)


@st.composite
def rows_of_a_stream(draw):
    """Rows of several groups; or all of one, so that every frame on the way can have a single row, NaN's too."""
    rows = draw(st.lists(ROW, max_size=22))
    if draw(st.integers(0, 3)):
        return rows
    one = draw(ROW)
    return [{**row, **{c: one[c] for c in ("k", "q", "z")}} for row in rows]


ROWS = rows_of_a_stream()


def frame(rows):
    """Rows with their number by arrival."""
    numbered = [{**row, "n": i} for i, row in enumerate(rows)]
    cents = pl.DataFrame(numbered, schema={**SCHEMA, "d": pl.Int64()})
    return cents.with_columns((pl.col("d").cast(pl.Decimal(20, 2)) / 100).cast(SCHEMA["d"]))


def query(shape, rows, groups=(), aggregates=None, slack=0, row_slack=0):
    s = wr.stream(frame(rows), progress="t", slack=slack, row_num="n", row_slack=row_slack, name="s")
    windowed = shape(s)
    own = [g for g in groups if g not in windowed.parts]
    return (windowed.group_by(*own) if own else windowed).agg(**(aggregates or NUMBERS))


def check_replay(shape, rows, groups, seed, slack, aggregates=None):
    """Every arrival order within the slack gives what the oracle says, and nothing is late."""
    replay(query(shape, rows, groups, aggregates, slack, slack), runs=2, seed=seed)


def feed(built, rows, cuts, order=None):
    """Runs that were given the rows as they come, which may break the promises of slack 0.

    Each goes on from what the one before has told to have changed, as on Spark.
    """
    plan = built.plan()  # once: whoever restores has planned anew, but not at every step
    disk, run = {}, built.run()
    data = frame(rows) if order is None else frame(rows)[order]
    edges = [0, *sorted(min(c, len(rows)) for c in cuts), len(rows)]
    for a, b in zip(edges, edges[1:], strict=False):  # noqa: RUF007
        counts, side = run.counts, run._side
        run = LocalRun(plan)
        run.graph.restore(dict(disk))
        run.counts, run._side = counts, side
        run.push("s", data[a:b])
        for name, chunk in run.graph.changes().items():
            disk.pop(name) if chunk is None else disk.update({name: chunk})
        assert run.graph.changes() == {}
        assert all(chunk.equals(disk[name]) for name, chunk in run.snapshot().items() if name in disk)
        yield run
    yield run.end()


def check_side(shape, rows, cuts, groups=(), order=None):
    """Late rows leave by the side, one record each; the results are exactly those of all the other rows."""
    built = query(lambda s: shape(s).late("side"), rows, groups)
    released = []
    for run in feed(built, rows, cuts, order):
        released.append(run.results())
    late = run.late_rows()
    assert late.height == run.counts["rows_late"] == late["rows"].sum()
    assert run.counts["rows_in"] == len(rows)
    in_time = frame(rows).filter(~pl.col("n").is_in(late["n"].to_list()))
    assert in_time.height == len(rows) - run.counts["rows_late"]
    compare(pl.concat(released), oracle(built, {"s": in_time}), "side")
    return late


def check_drop(shape, rows, cuts, groups=()):
    """Dropped rows are counted, and described, exactly as those that leave by the side."""
    late = check_side(shape, rows, cuts, groups)
    built = query(shape, rows, groups)
    *_, run = feed(built, rows, cuts)
    assert run.counts["rows_late"] == late.height
    assert run.late_rows()["rows"].sum() == late.height


CUTS = st.lists(st.integers(0, 22), max_size=5)
