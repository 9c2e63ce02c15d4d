"""Lookup: rows beside those of a table with the same keys."""

import pickle

import polars as pl
import pytest

from windrow.operators import Lookup
from windrow.operators.joins import lookup as module
from windrow.operators.joins.condition import Condition
from windrow.progress import Punctuation
from windrow.spec.functions import Function
from windrow.spec.tables import Table

NAN = float("nan")
COLUMNS = (("k", 0, "k"), ("v", 1, "v"))
KEY = [(pl.col("k"), pl.col("k"))]


def table(data, name="names"):
    frame = pl.DataFrame(data)
    return Table(name, tuple(frame.schema.items()), lambda: frame)


def found(lookup, batch):
    items = lookup.on_batch(0, pl.DataFrame(batch))
    return [row for item in items if isinstance(item, pl.DataFrame) for row in item.rows()]


@pytest.mark.parametrize(
    ("how", "expected"),
    [
        ("inner", [(1, "a", 5), (1, "b", 5), (3, "c", 8)]),
        ("left", [(1, "a", 5), (1, "b", 5), (2, None, 6), (None, None, 7), (3, "c", 8)]),
        ("semi", [(1, 5), (3, 8)]),
        ("anti", [(2, 6), (None, 7)]),
    ],
)
def test_every_kind_keeps_the_order_of_rows_and_null_equals_nothing(how, expected):
    names = table({"k": [1, 1, 3, None], "v": ["a", "b", "c", "d"]})
    batch = {"k": [1, 2, None, 3], "@t": [5, 6, 7, 8]}
    assert found(Lookup(names, KEY, COLUMNS, how), batch) == expected


def test_nan_equals_itself_and_zero_has_no_sign():
    names = table({"k": [NAN, 0.0], "v": [1, 2]})
    rows = found(Lookup(names, KEY, COLUMNS), {"k": [-0.0, NAN, 1.0], "@t": [1, 2, 3]})
    assert [row[1:] for row in rows] == [(2, 1), (1, 2)]


def test_several_keys_must_all_be_equal():
    names = table({"k": [1, 1], "j": ["x", None], "v": [1, 2]})
    both = [*KEY, (pl.col("i"), pl.col("j"))]
    batch = {"k": [1, 1, 1], "i": ["x", "y", None], "@t": [1, 2, 3]}
    assert found(Lookup(names, both, COLUMNS), batch) == [(1, 1, 1)]


@pytest.mark.parametrize("piece", [1, 4, 1 << 20])
def test_without_keys_every_row_meets_every_row_of_the_table_piece_by_piece(monkeypatch, piece):
    monkeypatch.setattr(module, "PIECE", piece)
    ranges = table({"low": [0, 5], "v": ["a", "b"]})
    columns = (("k", 0, "k"), ("v", 1, "v"), ("low", 1, "low"))
    condition = Condition(pl.col("k") >= pl.col("low"))
    batch = {"k": [-1, 3, 7], "@t": [1, 2, 3]}
    assert found(Lookup(ranges, [], columns, "left", condition), batch) == [
        (-1, None, None, 1),
        (3, "a", 0, 2),
        (7, "a", 0, 3),
        (7, "b", 5, 3),
    ]


def test_rows_of_a_table_of_which_no_column_is_used_are_partners_all_the_same():
    ranges = table({"low": [0, 5]}).only(())
    batch = {"k": [7], "@t": [3]}
    expected = {"inner": [(7, 3)] * 2, "left": [(7, 3)] * 2, "semi": [(7, 3)], "anti": []}
    assert {how: found(Lookup(ranges, [], (("k", 0, "k"),), how), batch) for how in expected} == expected


def test_a_pair_for_which_the_condition_fails_is_bad_and_its_rows_are_no_partners():
    def test(k, v):
        if v == "b":
            raise ValueError("b")
        return v == "a"

    names = table({"k": [1, 1, 2, 3], "v": ["a", "b", "b", "c"]})
    condition = Condition(test=Function("test", test, ("k", "v"), pl.Boolean()))
    good, bad = Lookup(names, KEY, COLUMNS, "left", condition).on_batch(
        0, pl.DataFrame({"k": [1, 2, 3], "@t": [1, 2, 3]})
    )
    assert good.rows() == [(1, "a", 1), (2, None, 2), (3, None, 3)]
    assert (bad.kind, bad.count, bad.rows.rows()) == (
        "bad",
        2,
        [(1, "b", "test failed: ValueError: b"), (2, "b", "test failed: ValueError: b")],
    )


@pytest.mark.parametrize("how", ["inner", "left", "semi", "anti"])
def test_an_empty_table_has_no_partners_and_an_empty_batch_no_rows(how):
    empty = Table(
        "names", (("k", pl.Int64()), ("v", pl.String())), lambda: pl.DataFrame(schema={"k": pl.Int64, "v": pl.String})
    )
    lookup = Lookup(empty, KEY, COLUMNS, how)
    expected = {"inner": [], "left": [(1, None, 5)], "semi": [], "anti": [(1, 5)]}[how]
    assert found(lookup, {"k": [1], "@t": [5]}) == expected
    assert lookup.on_batch(0, pl.DataFrame(schema={"k": pl.Int64, "@t": pl.Int64})) == []
    keyless = Lookup(empty, [], COLUMNS, how)
    assert found(keyless, {"k": [1], "@t": [5]}) == expected


def test_promises_pass_unchanged_and_nothing_is_remembered():
    lookup = Lookup(table({"k": [1], "v": [1]}), KEY, COLUMNS)
    for promise in (Punctuation(5), Punctuation(3), Punctuation(9, "a")):
        assert lookup.on_punctuation(0, promise) == [promise]
    lookup.on_batch(0, pl.DataFrame({"k": [1], "@t": [5]}))
    assert (lookup.snapshot(), lookup.changes(), lookup.state_bytes(), lookup.waits_for()) == ({}, {}, 0, [])


def test_a_table_is_loaded_once_and_sent_with_its_rows_and_only_the_columns_that_are_used():
    loads = []

    def load():
        loads.append(1)
        return pl.DataFrame({"k": [1], "v": ["a"], "long": ["x" * 1000]})

    whole = Table("names", (("k", pl.Int64()), ("v", pl.String()), ("long", pl.String())), load)
    used = whole.only({"k", "v"})
    assert (used.schema, loads) == ({"k": pl.Int64(), "v": pl.String()}, [])
    sent = pickle.dumps(used)
    assert len(sent) < 1000
    for each in (pickle.loads(sent), pickle.loads(pickle.dumps(used))):
        assert (each.name, each.schema, each.frame.rows()) == ("names", used.schema, [(1, "a")])
    assert loads == [1]
