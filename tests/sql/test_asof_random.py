"""Random ASOF JOIN queries against the definition: for each left row, all right rows are looked at. Issue 14."""

import random

import pytest

import windrow as wr

LEFT, RIGHT = ("ts", "k", "x"), ("u", "j", "y")
KEYS = (0, 1, 2, None)


def same(a, b):
    return a["k"] is not None and a["k"] == b["j"]


# A condition of ON, and what it means for a left and a right row.
CONDITIONS = [
    ("l.k = r.j", same),
    ("r.j + 1 = l.k + 1", same),
    ("l.x > 3", lambda a, b: a["x"] > 3),
    ("r.y > 3", lambda a, b: b["y"] > 3),
    ("l.x <> r.y", lambda a, b: a["x"] != b["y"]),
    ("l.x + r.y > 6", lambda a, b: a["x"] + b["y"] > 6),
    ("(l.x = 1 OR r.y = 2 OR l.k = r.j)", lambda a, b: a["x"] == 1 or b["y"] == 2 or same(a, b)),
    ("l.ts - r.u BETWEEN -4 AND 4", lambda a, b: abs(a["ts"] - b["u"]) <= 4),
    ("abs(l.ts - r.u) <> 2", lambda a, b: abs(a["ts"] - b["u"]) != 2),
]
OPERATORS = {
    ">=": lambda a, b: a >= b,
    ">": lambda a, b: a > b,
    "<=": lambda a, b: a <= b,
    "<": lambda a, b: a < b,
}
SWAPPED = {">=": "<=", ">": "<", "<=": ">=", "<": ">"}


def expected(left, right, operator, shift, within, conditions, outer):
    for row in left:
        near = [
            other
            for other in right
            if OPERATORS[operator](row["ts"], other["u"] + shift)
            and abs(row["ts"] - other["u"] - shift) <= within
            and all(test(row, other) for _, test in conditions)
        ]
        near.sort(key=lambda other: [(v is not None, v) for v in other.values()], reverse=operator in (">=", ">"))
        if near or outer:
            yield (*row.values(), *(near[0] if near else dict.fromkeys(RIGHT)).values())


@pytest.mark.parametrize("seed", range(60))
def test_the_nearest_row_for_which_everything_is_true(seed):
    draw = random.Random(seed)
    left, right = (
        [dict(zip(names, (draw.randrange(20), draw.choice(KEYS), draw.randrange(6)), strict=True)) for _ in range(30)]
        for names in (LEFT, RIGHT)
    )
    conditions = draw.sample(CONDITIONS, draw.randrange(4))
    operator, shift, within = draw.choice(list(OPERATORS)), draw.randrange(-2, 3), draw.choice([0, 3, 9])
    outer = draw.random() < 0.5
    moved = f"r.u + {shift}" if shift >= 0 else f"r.u - {-shift}"
    condition = f"l.ts {operator} {moved}" if draw.random() < 0.5 else f"{moved} {SWAPPED[operator]} l.ts"
    on = f"ON {' AND '.join(text for text, _ in conditions)}" if conditions else ""
    query = f"SELECT * FROM l {'LEFT ' if outer else ''}ASOF JOIN r MATCH_CONDITION ({condition}) {on} WITHIN {within}"
    streams = {
        name: wr.stream(draw.sample(rows, len(rows)), progress=time, slack=20, name=name)
        for name, rows, time in (("l", left, "ts"), ("r", right, "u"))
    }
    found = wr.sql(query, **streams).collect().rows()
    wanted = list(expected(left, right, operator, shift, within, conditions, outer))
    assert sorted(found, key=str) == sorted(wanted, key=str), query
