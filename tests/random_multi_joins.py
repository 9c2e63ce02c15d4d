"""Joins of several streams drawn at random: inputs, keys, how long rows are held, conditions, and what follows.

``drawn(seed)`` is a query over finite streams whose rows are in order of arrival, within their slack.
"""

import random
from dataclasses import replace
from itertools import combinations

import windrow as wr
from random_joins import CONDITIONS, KEYS, MIXED, Drawn, windowed
from windrow.logical.nodes import Scan
from windrow.spec.spread import RINGS

WHERES = ["x < y", "x + 1 < v", "x <= y AND y < v", "x + v > 6 OR y IS NULL", "v IS NOT NULL"]
VALUES = ("x", "y", "v", "w", "z", "p")
FEW = {2: 14, 3: 12, 4: 7, 5: 5, 6: 4}  # rows of each input: the oracle looks at all combinations


def drawn(seed, using=None, segments=False, **more):
    """A join, and what follows it. ``using``: how it runs, as the query names it, with ``more`` that says how.
    ``segments``: whether some have a length.
    """
    rng = random.Random(f"multi {seed}")
    count = rng.choice([2, 3, 3, 3, 3, 4, 5, 6])
    kind = rng.choice(sorted(KEYS))
    kinds = [MIXED.get(kind, kind) if rng.random() < 0.2 else kind for _ in range(count)]
    draw = Drawn(rng, FEW[count], rng.random() < 0.3, rng.choice([0, 7, 30]), tuple(kinds[:2]))
    members = [_member(draw, kind, value) for kind, value in zip(kinds, VALUES, strict=False)]
    if segments:
        more["options"] = replace(more["options"], segment=rng.choice([None, draw.length(4), draw.length(20)]))
    options = {
        "on": _keys(draw),
        "within": _within(draw, members, using in RINGS),
        "where": _condition(draw, count),
        "using": using,
    }
    return _followed(draw, wr.multi_join(*members, **options, **more), count)


def _member(draw, kind, value):
    """A stream, or what a query makes of one."""
    if draw.often(0.1):
        made = draw.stream(kind, value).window(draw.length(10)).group_by("k", "j").agg(m=wr.max(value))
        return made.select("k", "j", n="m", t="window_time", **{value: "m"})
    return draw.side(kind, value)


def _keys(draw):
    return draw.rng.choice([None, "k", "k", "k", "j", ["k", "j"], "j + 1"])


def _within(draw, members, by_rows):
    """One length for all, or one for each, up to a factor of a thousand apart. ``by_rows``: some are of rows."""
    lengths = [draw.length(draw.rng.choice([1, 5, 20, 50, 1000])) for _ in members]
    if by_rows and draw.often(0.4):
        lengths = [f"{draw.rng.choice([1, 2, 5])} rows" if draw.often(0.5) else each for each in lengths]
    if draw.often(0.3):
        return lengths[0]
    names = [next(node.name for node in each.node.walk() if isinstance(node, Scan)) for each in members]
    return dict(zip(names, lengths, strict=True))


def _condition(draw, count):
    possible = [each for each in WHERES if count > 2 or "v" not in each]
    functions = [each for name, each in CONDITIONS.items() if "function" in name]
    return draw.rng.choice([None, None, *possible, *functions])


def _followed(draw, query, count):
    own = list(query.node.pair_times)
    some = draw.rng.choice([each for size in (1, 2, count) for each in combinations(own, min(size, count))])
    time = some[0] if len(some) == 1 else f"{draw.rng.choice(['greatest', 'least'])}({', '.join(some)})"
    if draw.often(0.3):
        query = query.where(draw.rng.choice(["x > 2", "y < 7 OR k IS NULL", "x = y"]))
    kept = query.select("k", "x", u=time, z="y")
    match draw.rng.choice(["nothing", "window", "window", "window", "join", "multi", "distinct", "order"]):
        case "window":
            return windowed(draw, kept)
        case "join":
            third = draw.stream(draw.kinds[0], "q", 0.5)
            return kept.join(third, on="k", within=(draw.length(-5), draw.length(20)))
        case "multi":
            third = draw.stream(draw.kinds[0], "q", 0.5)
            return wr.multi_join(third, kept, on="k", within=draw.length(20), using=draw.rng.choice([None, "multi"]))
        case "distinct":
            return kept.select("u", "x").distinct()
        case "order":
            return kept.order_by("u")
    return query
