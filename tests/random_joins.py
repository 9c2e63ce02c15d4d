"""Joins drawn at random from all that can be combined: kinds, windows, keys, conditions, what is before and after.

``drawn(seed)`` is a query over finite streams whose rows are in order of arrival, within their slack. ``drawn(seed,
ordered=True)`` is one with a join that puts its results in order, by name or because of what follows it.
"""

import datetime as dt
import random
from dataclasses import dataclass, field

import polars as pl

import windrow as wr
from windrow.spec.in_order import MODES
from windrow.spec.keeping import ALIKE

NAN = float("nan")
DAY, NOON = dt.date(2024, 1, 1), dt.datetime(2024, 1, 1, 12, tzinfo=dt.UTC)
KEYS = {
    "bigint": ([1, 2, 3, None], pl.Int64()),
    "int": ([1, 2, -1, None], pl.Int32()),
    "double": ([1.0, -0.0, 0.0, 2.0, NAN, None], pl.Float64()),
    "string": (["a", "", None], pl.String()),
    "date": ([None, DAY, DAY + dt.timedelta(1)], pl.Date()),
    "timestamp": ([None, NOON, NOON + dt.timedelta(microseconds=1)], pl.Datetime("us", "UTC")),
    "boolean": ([True, False, None], pl.Boolean()),
}
MIXED = {"bigint": "double", "double": "int", "int": "bigint"}  # keys of two types that can be equal
HOWS = ["inner", "left", "right", "full", "semi", "anti"]
SPAN = 120


def fails_at_three(x, y):
    """A condition that fails for some pairs, and has no value for others."""
    if x is None or y is None:
        return None
    return 12 // (x - 3) < y


def fails_with_a_three(x, y):
    """The same for many pairs at once: one that is bad makes the whole call fail."""
    if (x == 3).any():
        raise ZeroDivisionError("a three")
    return (x - y).abs() < 4


CONDITIONS = {
    "none": None,
    "sql": "x < y",
    "sql with null": "x + y > 6 OR x IS NULL",
    "function": wr.udf(fails_at_three, "BOOLEAN", "x", "y"),
    "vectorized function": wr.udf(fails_with_a_three, "BOOLEAN", "x", "y", vectorized=True),
    "function that does not fail": wr.udf(lambda x, y: x != y, "BOOLEAN", "x", "y"),
}


@dataclass
class Drawn:
    """What has been chosen so far. ``timed``: times are timestamps, one second for each unit."""

    rng: random.Random
    rows: int
    timed: bool
    slack: int
    kinds: tuple[str, str]
    names: list[str] = field(default_factory=list)
    using: str | None = None

    def often(self, share):
        return self.rng.random() < share

    def length(self, units):
        return dt.timedelta(seconds=units) if self.timed else units

    def frame(self, kind, rows, value="x"):
        """Rows in an order of arrival that the slack allows."""
        values, dtype = KEYS[kind]
        rng, span = self.rng, SPAN // 3 if self.often(0.15) else SPAN  # a side that ends early
        data = []
        for t in sorted((rng.randrange(span) for _ in range(rows)), key=lambda t: t + rng.random() * self.slack):
            data.append((t, rng.choice(values), rng.choice([None, 0, 1]), rng.choice([None, *range(9)]), len(data)))
        schema = {"t": pl.Int64(), "k": dtype, "j": pl.Int64(), value: pl.Int64(), "n": pl.Int64()}
        found = pl.DataFrame(data, schema=schema, orient="row")
        stamp = pl.col("t").mul(1_000_000).cast(pl.Datetime("us", "UTC"))
        return found.with_columns(stamp) if self.timed else found

    def stream(self, kind, value="x", share=1.0):
        rows = 0 if self.often(0.08) else round(self.rows * share)
        self.names.append(f"s{len(self.names)}")
        found = self.frame(kind, rows, value)
        return wr.stream(found, "t", slack=self.length(self.slack), row_num="n", name=self.names[-1])

    def side(self, kind, value="x"):
        """A stream, or what a query makes of one."""
        found = self.stream(kind, value)
        if self.often(0.25):
            found = found.union(self.stream(kind, value, 0.4))
        if self.often(0.25):
            found = found.where(f"{value} > 2")
        return found


def drawn(seed, ordered=False):
    """A join, and what follows it. ``ordered``: it is one that puts its results in order."""
    rng = random.Random(seed)
    kind = rng.choice(sorted(KEYS))
    kinds = kind, MIXED.get(kind, kind) if rng.random() < 0.3 else kind
    draw = Drawn(rng, rng.choice([12, 30]), rng.random() < 0.3, rng.choice([0, 7, 30]), kinds)
    left, right = draw.side(kinds[0]), draw.side(kinds[1], "y")
    itself = draw.often(0.2)
    if itself:
        left = draw.stream(kind)
        right = left.select("t", "k", "j", "n", y="x")
        right = right.where("y > 1") if draw.often(0.3) else right
    how = "inner" if ordered else rng.choice(HOWS)
    near = window(draw, itself and not ordered)
    draw.using = rng.choice([None, *MODES] if ordered else usings(how, near))
    more = {"how": how, "where": condition(draw, how), **physical(draw)}
    if ordered:
        more["late"] = rng.choice(["drop", "side", ("side", "drop")])
    query = left.join(right, **keys(draw), **near, **more)
    return followed(draw, query, how, ["order"] if ordered and draw.using is None else FOLLOWING)


def usings(how, near):
    """The physical joins that there are; most of them put nothing in order."""
    found = [None, None, *ALIKE, "opob", "opob", "iop", "iop"]
    by_rows = "rows" in str(near.get("within"))
    return found if how != "inner" else [*found, "opib", *([] if by_rows else MODES)]


def physical(draw):
    """When an adaptive join changes: never, at once, or to and fro with the rates of its rows."""
    if draw.using != "adaptive":
        return {"using": draw.using}
    cost = draw.rng.choice([1e-9, 0.1, 1.0, 10.0, 1e9]) * (1_000_000 if draw.timed else 1)
    alpha = draw.rng.choice([{}, {"alpha": 0.0}, {"alpha": 0.9}])
    return {"using": "adaptive", "cost": cost, **alpha}


def keys(draw):
    number = draw.rng.choice([0, 1, 1, 1, 2])
    if number == 1 and draw.often(0.2):
        return {"left_on": "j + 1", "right_on": "j"}
    return {"on": ["k", "j"][:number]}


def window(draw, itself):
    kind = draw.rng.choice(["band", "rows", "tumbling"] if itself else ["band", "band", "band", "tumbling"])
    if kind == "tumbling":
        origin = draw.rng.choice([{}, {"origin": 7}])
        if draw.timed and origin:
            origin = {"origin": "1970-01-01T00:00:07"}
        return {"tumbling": draw.length(draw.rng.choice([1, 10, 500])), **origin}
    low = draw.rng.choice([-500, -20, -3, 0, 0, 4])
    high = low + draw.rng.choice([0, 0, 5, 25, 1000])
    if kind == "rows":
        return {"within": (f"{low} rows", f"{high} rows")}
    return {"within": (draw.length(low), draw.length(high))}


def condition(draw, how):
    """A left row of a semi or anti join leaves with its first partner, so how many pairs fail depends on arrival."""
    names = [n for n in CONDITIONS if how not in ("semi", "anti") or n not in ("function", "vectorized function")]
    return CONDITIONS[draw.rng.choice(["none", "none", *names])]


TIMES = {
    "inner": ["t", "t_right", "greatest(t, t_right)", "least(t, t_right)", "coalesce(t, t_right)"],
    "left": ["t", "greatest(t, t_right)", "least(t, t_right)", "coalesce(t, t_right)"],
    "right": ["t_right", "greatest(t, t_right)", "least(t_right, t)", "coalesce(t, t_right)"],
    "full": ["greatest(t, t_right)", "least(t, t_right)", "coalesce(t, t_right)"],
    "semi": ["t"],
    "anti": ["t"],
}


FOLLOWING = ["nothing", "window", "window", "window", "join", "distinct", "order", "order", "both times"]


def followed(draw, query, how, what):
    """What comes after the join; results of a join over rows do not progress."""
    value = "y" if "y" in query.schema else "x"
    if draw.often(0.2):
        query = query.where(draw.rng.choice(["x > 2", f"{value} < 7 OR k IS NULL", f"x = {value}"]))
    if not query.node.pair_times:
        return query
    limited = draw.using in ("opib", *MODES)  # they can order by these
    time = draw.rng.choice(TIMES[how][:3] if limited else TIMES[how])
    kept = query.select("k", "x", u=time, z=value)
    after = draw.rng.choice(what)
    if after == "window":
        return windowed(draw, kept)
    if after == "join":
        return joined_again(draw, kept)
    if after == "both times" and "t_right" in query.schema and draw.using in (None, *ALIKE):  # an ordered join has one
        return query.group_by("t", "t_right", "x").agg(n=wr.count(), s=wr.sum(value))
    if after == "distinct":
        return kept.select("u", "x").distinct()
    return query if after == "nothing" else kept.order_by("u")


def windowed(draw, kept):
    kind = draw.rng.choice(["sliding", "sliding", "tumbling", "empty", "landmark", "session"])
    size, slide = draw.length(30), draw.length(10)
    if kind == "landmark":
        made = kept.landmark(size)
    elif kind == "session":
        made = kept.session(slide)
    else:
        made = kept.window(size, size if kind == "tumbling" else slide)
    made = made.with_empty() if kind == "empty" else made
    groups = draw.rng.choice([[], ["k"], ["x"]])
    return made.group_by(*groups).agg(n=wr.count(), s=wr.sum("z"))


def joined_again(draw, kept):
    """A tree of joins: the second one by the same key, by another one, or by none."""
    third = draw.stream(draw.kinds[0], "v", 0.5)
    on = draw.rng.choice(["k", "k", "x", ""])
    named = {"left_on": on, "right_on": "v" if on == "x" else on} if on else {}
    how = draw.rng.choice(HOWS)
    within = draw.rng.choice([(0, 0), (-5, 5), (-20, 3)])
    found = kept.join(third, **named, within=tuple(draw.length(each) for each in within), how=how)
    if how in ("inner", "left") and draw.often(0.5):
        return found.window(draw.length(40)).group_by("x").agg(n=wr.count())
    return found
