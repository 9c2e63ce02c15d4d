"""Tables for tests of joins, the joins that a query plans, and what an error underlines."""

from datetime import datetime

import pytest

import windrow as wr

SECOND, MINUTE = 1_000_000, 60_000_000
AT = datetime(2024, 1, 1)
BAND = "R.ts BETWEEN L.ts - INTERVAL 5 SECONDS AND L.ts + INTERVAL 10 SECONDS"


def tables():
    return {
        "L": wr.stream([{"ts": AT, "k": 1, "src": "a", "x": 1.0}], progress="ts"),
        "R": wr.stream([{"ts": AT, "k": 1, "dst": "a", "v": 2}], progress="ts"),
        "C": wr.stream([{"ts": AT, "k": 1, "w": 3}], progress="ts"),
        "N": wr.stream([{"n": 0, "t": 1, "k": 1}], progress="t", row_num="n"),
    }


def planned(query):
    return wr.sql(query, **tables()).node


def joins_of(query):
    """The joins of a query, those below first."""
    return [node for node in planned(query).walk() if type(node).__name__ == "Join"]


def join_of(query):
    (join,) = joins_of(query)
    return join


def keys(join):
    return [(a.sql("spark"), b.sql("spark")) for a, b in join.on]


def where(join):
    return None if join.where is None else join.where.sql("spark").replace("`", "")


def filters(join):
    """What is asked of the rows of each side before they are joined."""
    return [side.predicate.sql("spark") if type(side).__name__ == "Filter" else None for side in join.inputs]


def check_refused(query, message, underlined, planned=planned):
    """The query is refused with this message, and nothing but this text is underlined."""
    with pytest.raises(wr.WindrowError) as refused:
        planned(query)
    first, _, line = str(refused.value).partition("\n")
    assert message in first
    text, carets = line.split("\n")
    found = text[len(carets) - len(carets.lstrip()) :][: carets.count("^")]
    assert underlined in found
    assert len(found) <= len(underlined) + 2  # brackets
