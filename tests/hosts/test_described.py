"""Bad rows as JSON, whatever the types of their columns."""

import json
from base64 import b64encode
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal

import polars as pl
import pytest

from windrow.hosts.described import BAD_SCHEMA, described

BYTES = b"\xff\x00picture"
TEXT = b64encode(BYTES).decode()
NESTED = pl.List(pl.Struct({"img": pl.Binary(), "n": pl.Int64()}))
CASES = [
    (pl.Binary(), BYTES, TEXT),
    (pl.Binary(), None, None),
    (pl.List(pl.Binary()), [BYTES, None], [TEXT, None]),
    (pl.List(pl.Binary()), None, None),
    (pl.Array(pl.Binary(), 1), [BYTES], [TEXT]),
    (pl.Struct({"img": pl.Binary(), "n": pl.Int64()}), {"img": BYTES, "n": 1}, {"img": TEXT, "n": 1}),
    (pl.Struct({"img": pl.Binary()}), None, None),
    (NESTED, [{"img": BYTES, "n": 1}, None], [{"img": TEXT, "n": 1}, None]),
    (pl.List(pl.List(pl.Binary())), [[BYTES], []], [[TEXT], []]),
    (pl.Int64(), 7, 7),
    (pl.Boolean(), True, True),
    (pl.String(), 'a"b', 'a"b'),
    (pl.List(pl.Float64()), [0.5], [0.5]),
    (pl.Decimal(10, 2), Decimal("1.50"), "1.50"),
    (pl.Date(), date(2024, 1, 2), "2024-01-02"),
    (pl.Null(), None, None),
]
LEFT_TO_POLARS = [
    (pl.Datetime("us", "UTC"), datetime(2024, 1, 2, tzinfo=UTC)),
    (pl.Duration("us"), timedelta(seconds=2)),
    (pl.Categorical(), "x"),
]


@pytest.mark.parametrize(("dtype", "value", "shown"), CASES, ids=str)
def test_bytes_are_in_base64_wherever_they_are(dtype, value, shown):
    rows = pl.DataFrame({"x": [value], "@t": [1], "reason": ["no"]}, {"x": dtype, "@t": pl.Int64, "reason": pl.String})
    found = described(rows, "stage 0")
    assert dict(found.schema) == BAD_SCHEMA
    assert json.loads(found["row"][0]) == {"x": shown}


@pytest.mark.parametrize(("dtype", "value"), LEFT_TO_POLARS, ids=str)
def test_other_types_can_be_shown(dtype, value):
    rows = pl.DataFrame({"x": [value], "reason": ["no"]}, {"x": dtype, "reason": pl.String})
    assert "x" in json.loads(described(rows, "stage 0")["row"][0])


def test_a_row_without_columns_is_an_empty_object():
    assert described(pl.DataFrame({"@t": [1], "reason": ["no"]}), "s").row(0) == ("s", "no", "{}")
