"""As-of joins and sequences drawn at random from all that can be combined: steps, keys, times, promises, what follows.

``drawn_as_of(seed)`` and ``drawn_sequence(seed)`` are queries over finite streams whose rows are in an order of arrival
that their promises allow. Times are few, so that many rows have equal ones.
"""

import datetime as dt
import random
from dataclasses import dataclass, field, replace

import polars as pl

import windrow as wr
from random_joins import KEYS, MIXED, NAN

UNITS = {"int": 1, "date": dt.timedelta(days=1), "timestamp": dt.timedelta(seconds=1)}
TYPES = {"int": pl.Int64(), "date": pl.Date(), "timestamp": pl.Datetime("us", "UTC")}
NAMED = ("bigint", "int", "string", "date", "boolean")  # the types of keys that markers can name
FAR = 100_000  # beyond all times: what finishes a key


@dataclass
class Drawn:
    """What has been chosen so far. ``promise``: how streams say how far they are; "keyed" are markers that name k."""

    rng: random.Random
    kind: str
    time: str
    promise: str
    span: int
    slack: int
    mixed: bool
    names: list[str] = field(default_factory=list)

    def often(self, share):
        return self.rng.random() < share

    def length(self, units):
        return units * UNITS[self.time]

    def moment(self, column):
        """A column of whole numbers as times of the type that was chosen."""
        whole = pl.col(column).cast(pl.Int64())
        if self.time == "timestamp":
            return whole.mul(1_000_000).cast(TYPES[self.time]).alias(column)
        return whole.cast(pl.Int32()).cast(pl.Date()).alias(column) if self.time == "date" else whole.alias(column)

    def rows(self, kind, count, value):
        """Rows in an order of arrival within the slack. The time is not the first column: others order equal times."""
        rng = self.rng
        values, dtype = KEYS[kind]
        span = self.span // 3 if self.often(0.15) else self.span
        times = sorted((rng.randrange(span) for _ in range(count)), key=lambda t: t + rng.random() * self.slack)
        floats = [None, 0.0, -0.0, 1.5, NAN]
        data = [
            (rng.choice([None, *range(6)]), t, rng.choice(values), rng.choice([None, 0, 1]), rng.choice(floats))
            for t in times
        ]
        schema = {value: pl.Int64(), "t": pl.Int64(), "k": dtype, "j": pl.Int64(), "f": pl.Float64()}
        return pl.DataFrame(data, schema=schema, orient="row")

    def with_markers(self, rows):
        """Rows and markers between them, which promise the least time of the rows that follow, of one key or of all."""
        whole, found = rows.with_columns(m=pl.lit(None, pl.Int64())), []
        nothing = dict.fromkeys(whole.columns)
        for at in range(whole.height):
            found.append(whole[at])
            if not self.often(0.3):
                continue
            rest = whole[at + 1 :]
            keys = rows["k"].drop_nulls()
            key = self.rng.choice(keys.to_list()) if self.promise == "keyed" and len(keys) and self.often(0.6) else None
            of_key = rest if key is None else rest.filter(pl.col("k") == key)
            least = of_key["t"].min()
            if least is None and key is None:  # the end says that
                continue
            value = FAR if least is None else least
            found.append(pl.DataFrame([{**nothing, "k": key, "m": value}], schema=whole.schema))
        return pl.concat(found) if found else whole

    def stream(self, value="x", share=1.0, rows=16):
        kind = MIXED.get(self.kind, self.kind) if self.mixed and self.often(0.5) else self.kind
        self.names.append(f"s{len(self.names)}")
        found = self.rows(kind, 0 if self.often(0.06) else round(self.rng.randint(rows // 2, rows) * share), value)
        more = {"slack": self.length(self.slack)} if self.promise == "slack" else {}
        if self.promise in ("markers", "keyed"):
            found = self.with_markers(found).with_columns(self.moment("m"))
            more["punctuation"] = wr.promise.markers("m", by="k" if self.promise == "keyed" else ())
        return wr.stream(found.with_columns(self.moment("t")), "t", name=self.names[-1], **more)

    def side(self, value="x", rows=16):
        """A stream, or what a query makes of one."""
        found = self.stream(value, rows=rows)
        if self.often(0.2) and not self.mixed:
            found = found.union(self.stream(value, 0.5))
        if self.often(0.2):
            found = found.where(f"{value} > 1")
        if self.often(0.15):
            found = found.select("t", "k", "f", "j", value)
        return found


def started(seed):
    rng = random.Random(seed)
    promise = rng.choice(["slack", "slack", "slack", "markers", "keyed", "finite"])
    kinds = [kind for kind in sorted(KEYS) if promise != "keyed" or kind in NAMED]
    return Drawn(
        rng,
        kind=rng.choice(kinds),
        time=rng.choice(["int", "int", "date", "timestamp"]),
        promise=promise,
        span=rng.choice([4, 12, 50]),
        slack=rng.choice([0, 3, 20]),
        mixed=promise != "keyed" and rng.random() < 0.25,
    )


# -- as-of joins -------------------------------------------------------------------------------------------------------
def drawn_as_of(seed):
    """An as-of join, and what follows it."""
    draw = started(seed)
    itself = draw.often(0.15)
    left = draw.stream("x") if itself else draw.side("x")
    right = left.select("f", "t", "k", "j", y="x") if itself else draw.side("y")
    query = as_of(draw, left, right)
    return followed(draw, query, "t", "y")


def as_of(draw, left, right):
    rng = draw.rng
    by = rng.choice([["k"], ["k"], ["k"], ["k", "j"], []]) if draw.promise != "keyed" else ["k"]
    strategy = rng.choice(["backward", "backward", "forward", "nearest"])
    tolerance = rng.choice([None, 0, 2, 10, 1000])
    keyed = draw.promise == "keyed" and "keyed" in promises(left, right)
    if tolerance is None and strategy != "backward" and not keyed:
        tolerance = 5
    most = {"max_keys": 100} if tolerance is None and strategy == "backward" and by and not keyed else {}
    where = rng.choice(["x < y", "x + y > 4 OR x IS NULL", "f_right IS NULL OR f >= f_right"])
    query = left.join_asof(
        right,
        by=by,
        strategy=strategy,
        tolerance=None if tolerance is None else draw.length(tolerance),
        allow_exact_matches=draw.often(0.6),
        how=rng.choice(["left", "inner"]),
        where=where if tolerance is not None and draw.often(0.3) else None,
        coalesce=draw.often(0.6),
        **most,
    )
    if draw.often(0.2):
        shift = rng.choice([-7, 3]) * (1_000_000 if draw.time == "timestamp" else 1)
        query = replace(query, node=replace(query.node, shift=shift))
    return query


def promises(*streams):
    """Which of them make promises about single keys, as they are joined."""
    return {"keyed" if set(s.node.promised_by) == {"k"} else "whole" for s in streams}


# -- sequences ---------------------------------------------------------------------------------------------------------
def drawn_sequence(seed):
    """A sequence, and what follows it."""
    draw = started(seed)
    if draw.often(0.25):
        return following(draw)
    steps = kinds_of_steps(draw)
    streams, shared = {}, None
    for name, kind in steps.items():
        own = shared if shared is not None and draw.often(0.4) else draw.side("x", rows=10)
        shared = own if shared is None and draw.often(0.3) else shared
        streams[name] = {"one": lambda s: s, "no": wr.no, "some": wr.some}[kind](own)
    query = wr.seq(streams, **options_of(draw, steps))
    outer = steps[max(steps)] == "one" and "some" not in steps.values()
    if outer and draw.often(0.25):
        query = replace(query, node=replace(query.node, outer=True))
    time, value = names_of_last(query, steps)
    return followed(draw, query, time, value)


def kinds_of_steps(draw):
    """Two to four steps: a, b, c, d. The first one is not negated."""
    number = draw.rng.choice([2, 2, 3, 3, 4])
    kinds = [draw.rng.choice(["one", "one", "one", "some"])]
    while len(kinds) < number:
        kinds.append(draw.rng.choice(["one", "one", "one", "no", "some"]))
    return dict(zip("abcd", kinds, strict=False))


def options_of(draw, steps):
    rng, waits = draw.rng, steps[max(steps)] != "one"
    conditions = [f"a.x <= {name}.x" for name in steps if name != "a" and draw.often(0.15)]
    conditions += [f"{max(steps)}.f <> a.f"] if draw.often(0.08) else []
    found = {
        "on": () if draw.often(0.1) and draw.promise != "keyed" else ("k", "j") if draw.often(0.15) else ("k",),
        "matching": rng.choice(["recent", "chronicle"]),
        "within": draw.length(rng.choice([0, 3, 8, 30])),
        "where": " AND ".join(conditions) or None,
        "skip": "to next row" if waits or draw.often(0.7) else "past last row",
    }
    by_latest = found["matching"] == "recent" and not conditions and "some" not in steps.values()
    if by_latest and not waits and draw.often(0.5):
        found["within"] = None
        found |= {"max_keys": 100} if found["on"] else {}
    if draw.often(0.4):
        found["columns"] = columns_of(draw, steps)
    return found


def columns_of(draw, steps):
    """Columns by expressions of one step each, or functions of a step with several rows."""
    found = {}
    last = max(name for name, kind in steps.items() if kind != "no")
    for name, kind in steps.items():
        if kind == "one":
            found |= {f"{name}x": f"{name}.x", f"{name}k": f"{name}.k"}
        elif kind == "some":
            function = draw.rng.choice(["sum", "min", "max", "avg", "count", "first", "last"])
            found |= {f"{name}{function}": f"{function}({name}.x)", f"{name}n": f"count({name}.*)"}
            found |= {f"{name}f": f"max({name}.f)"}
    time = f"{last}.t" if steps[last] == "one" else f"last({last}.t)"
    return {**found, "end": time}


def names_of_last(query, steps):
    """The column of the time that results progress on, and some number."""
    last = max(name for name, kind in steps.items() if kind != "no")
    time = next(n for n in ("end", f"{last}_t", f"{last}_last_t") if n in query.schema)
    return time, next(n for n, t in query.schema.items() if t == pl.Int64() and n != time)


def following(draw):
    """Two streams, one after the other."""
    b, a = draw.side("x"), draw.side("y")
    matching = draw.rng.choice(["recent", "chronicle"])
    condition = "x <= y" if draw.often(0.3) else None
    bounded = matching == "chronicle" or condition is not None or draw.often(0.5)
    query = b.following(
        a,
        on="k",
        matching=matching,
        within=draw.length(draw.rng.choice([0, 4, 30])) if bounded else None,
        how=draw.rng.choice(["inner", "left"]),
        where=condition,
        **({} if bounded else {"max_keys": 100}),
    )
    return followed(draw, query, "t", "y")


# -- what follows ------------------------------------------------------------------------------------------------------
def followed(draw, query, time, value):
    """What comes after it: rows, windows, or another one."""
    key = next((n for n in query.schema if n in ("k", "ak", "a_k", "b_k")), None)
    after = draw.rng.choice(["nothing", "nothing", "filter", "project", "window", "window", "as-of", "distinct"])
    if after == "filter":
        return query.where(f"{value} > 1 OR {value} IS NULL")
    if after == "project":
        return query.select(u=time, z=f"{value} + 1")
    if after == "window":
        return windowed(draw, query.select(**({"g": key} if key else {}), u=time, z=value), key is not None)
    if after == "as-of":
        third = draw.stream("v").select("v", "t", "f", "k")
        left = query.select(u=time, z=value)
        return left.join_asof(
            third,
            left_on="u",
            right_on="t",
            by_left="z",
            by_right="v",
            tolerance=draw.length(draw.rng.choice([0, 9])),
            strategy=draw.rng.choice(["backward", "forward", "nearest"]),
            how=draw.rng.choice(["left", "inner"]),
        )
    if after == "distinct":
        return query.select(u=time, z=value).distinct()
    return query


def windowed(draw, kept, keyed):
    kind = draw.rng.choice(["sliding", "tumbling", "empty", "landmark", "session"])
    size, slide = draw.length(10), draw.length(5)
    if kind == "landmark":
        made = kept.landmark(size)
    elif kind == "session":
        made = kept.session(slide)
    else:
        made = kept.window(size, size if kind == "tumbling" else slide)
    made = made.with_empty() if kind == "empty" else made
    groups = ["g"] if keyed and draw.often(0.5) else draw.rng.choice([[], ["z"]])
    return made.group_by(*groups).agg(n=wr.count(), s=wr.sum("z"))
