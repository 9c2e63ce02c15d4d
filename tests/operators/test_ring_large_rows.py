"""Rows that are too large for a ring are set aside with the reason; large ones go round a few at a time."""

import polars as pl
import pytest

from windrow.operators.ring import head
from windrow.operators.ring.joining import Joining
from windrow.operators.ring.largest import without_large
from windrow.operators.ring.layout import LARGEST, Wishes
from windrow.operators.ring.ring import Ring
from windrow.operators.ring.sliced_join import BUILD
from windrow.progress import Punctuation
from windrow.windows.multiway import Ranges

JOINING = Joining(Ranges((10, 10)), (("a",), ("b",)))


def test_a_row_that_is_too_large_is_bad_and_the_others_are_joined():
    ring = Ring(JOINING, Wishes(most=2, nodes=2, largest=1000))
    assert ring.on_batch(1, pl.DataFrame({"@t": [1, 2], "b": ["y", "z"]})) == []
    [side] = ring.on_batch(0, pl.DataFrame({"@t": [1, 2, 3], "a": ["s", "x" * 2000, "t"]}))
    assert (side.kind, side.count) == ("bad", 1)
    reason = "the row has 2,008 bytes, and a ring takes rows of 1,000 bytes at the most: a is left out"
    assert side.rows.rows() == [(None, reason)]
    assert ring.on_punctuation(0, Punctuation(20)) == []
    found = [rows for rows in ring.on_punctuation(1, Punctuation(20)) if isinstance(rows, pl.DataFrame)]
    assert sorted(pl.concat(found).select("a", "b").rows()) == [("s", "y"), ("s", "z"), ("t", "y"), ("t", "z")]


def test_a_late_row_is_late_however_large_it_is():
    ring = Ring(JOINING, Wishes(largest=1000))
    ring.on_punctuation(0, Punctuation(5))
    assert [side.kind for side in ring.on_batch(0, pl.DataFrame({"@t": [1], "a": ["x" * 2000]}))] == ["late"]


def test_only_what_is_too_much_is_left_out():
    sizes = {
        "n": [1] * 5,
        "img": [b"x" * n for n in (10, 400, 10, 700, 10)],
        "mask": [[1.0] * n for n in (1, 90, 1, 1, 1)],
    }
    rows, [side] = without_large(pl.DataFrame(sizes), 600)
    assert rows["img"].bin.size().to_list() == [10, 10, 10]
    assert side.rows.select("n", pl.col("img").bin.size(), pl.col("mask").list.len()).rows() == [
        (1, 400, None),
        (1, None, 1),
    ]
    both = pl.DataFrame({"a": ["x" * 50], "b": ["y" * 60]})
    _, [side] = without_large(both, 5)
    assert side.rows.rows() == [
        (None, None, "the row has 110 bytes, and a ring takes rows of 5 bytes at the most: b and a are left out")
    ]


def test_the_limit_leaves_room_for_images():
    assert Wishes().largest == LARGEST == 256 * 2**20


@pytest.mark.parametrize(("size", "most"), [(1, 3), (1000, 2), (10_000, 1)])
def test_trains_of_large_rows_are_short(monkeypatch, size, most):
    monkeypatch.setattr(head, "HELD", 10_000)
    ring = Ring(JOINING, Wishes(most=1, nodes=1))
    list(ring.head.begin({0: pl.DataFrame({"@t": range(40), "a": ["x" * size] * 40})}))
    heights, taken = [], ring.nodes[0].on_message

    def noted(message):
        heights.extend(payload.frame.height for name, payload in message.frames.items() if name.startswith(BUILD))
        return taken(message)

    ring.nodes[0].on_message = noted
    while ring.head.can_feed():
        list(ring.head.feed())
    assert heights[0] == most
    assert sum(heights) * size <= 10_000  # the others wait until these are back
