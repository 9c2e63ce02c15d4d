"""Decode: the rows inside messages, in parts of bounded size. Formats: tests/sources/test_message_values.py."""

import polars as pl

from windrow.operators import Decode
from windrow.operators.rows.decode import TOMBSTONE
from windrow.spec.messages import Messages


def raw(values, **columns):
    rows = {"value": values, "partition": [0] * len(values), "offset": range(len(values)), **columns}
    return pl.DataFrame(rows).cast({"value": pl.Binary, "partition": pl.Int32, "offset": pl.Int64})


def test_large_batches_are_decoded_in_parts(monkeypatch):
    monkeypatch.setattr("windrow.operators.rows.decode.BYTES_AT_ONCE", 30)
    values = [b'{"x": %d}' % i for i in range(20)]
    values[3], values[15] = None, b"oops"
    [rows, bad] = Decode(Messages("json", (("x", pl.Int64()),))).on_batch(0, raw(values))
    assert rows["x"].to_list() == [i for i in range(20) if i not in (3, 15)]
    assert bad.rows["reason"][0] == TOMBSTONE
    assert bad.rows["offset"].to_list() == [3, 15]
    assert Decode(Messages("json", (("x", pl.Int64()),))).on_batch(0, raw([]))[0].height == 0


def test_attributes_and_stamps_go_with_their_rows():
    decode = Decode(Messages("csv", (("x", pl.Int64()),), (("at", "offset"), ("k", "key"))))
    rows, bad = decode.on_batch(0, raw([b"1", b"x", b"3"], arrival_ts=[5, 6, 7]))
    assert rows.columns == ["x", "at", "arrival_ts"]  # the key was not read, as nobody needs it
    assert rows.rows() == [(1, 0, 5), (3, 2, 7)]
    assert bad.rows.row(0)[:4] == (b"x", 0, 1, 6)
