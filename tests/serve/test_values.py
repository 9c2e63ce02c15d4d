"""Values as JSON."""

import json
from datetime import UTC, date, datetime, timedelta, timezone
from decimal import Decimal

import polars as pl
import pytest

from windrow.serve.values import rows, text


def one(series):
    [found] = json.loads(f"[{''.join(rows(pl.DataFrame({'x': series})))}]", parse_float=str)
    return found["x"]


@pytest.mark.parametrize(
    ("value", "dtype", "expected"),
    [
        (datetime(2024, 1, 1, 10), pl.Datetime("us"), "2024-01-01T10:00:00.000"),
        (datetime(2024, 1, 1, 10, 0, 0, 5), pl.Datetime("us"), "2024-01-01T10:00:00.000005"),
        (datetime(1, 1, 1), pl.Datetime("us"), "0001-01-01T00:00:00.000"),
        (datetime(2024, 7, 1, 10, tzinfo=UTC), pl.Datetime("us", "Europe/Berlin"), "2024-07-01T10:00:00.000Z"),
        (None, pl.Datetime("us"), None),
        (date(2024, 2, 29), pl.Date, "2024-02-29"),
        (timedelta(minutes=1), pl.Duration("us"), "60.0"),
        (Decimal("123456789012345678901234567890.10"), pl.Decimal(38, 2), "123456789012345678901234567890.10"),
        (2**63 - 1, pl.Int64, 2**63 - 1),
        (True, pl.Boolean, True),
        (float("nan"), pl.Float64, "NaN"),
        (float("-inf"), pl.Float64, "-Infinity"),
        (1e300, pl.Float64, "1e+300"),
        ('"\n\u2028é', pl.String, '"\n\u2028é'),
        (b"\x00\xff", pl.Binary, "AP8="),
        ([{"value": "a", "count": 2}], pl.List(pl.Struct({"value": pl.String, "count": pl.Int64})), None),
        ([datetime(2024, 1, 1)], pl.List(pl.Datetime("us")), ["2024-01-01T00:00:00.000"]),
    ],
)
def test_values(value, dtype, expected):
    found = one(pl.Series([value], dtype=dtype))
    assert found == (value if isinstance(value, list) and expected is None else expected)


def test_years_beyond_those_of_python():
    assert one(pl.Series([2**61 // 8], dtype=pl.Int64).cast(pl.Datetime("us"))).startswith("+11")


def test_an_instant_inside_of_a_list_is_in_utc():
    assert text(datetime(2024, 1, 1, 1, tzinfo=timezone(timedelta(hours=2)))) == '"2023-12-31T23:00:00.000Z"'


def test_what_has_no_json_is_refused():
    with pytest.raises(TypeError, match="object"):
        text(object())


@pytest.mark.parametrize("height", [0, 1, 3, 4, 10])
def test_pieces_make_one_array(height):
    frame = pl.DataFrame({"a b": range(height)}, schema={"a b": pl.Int64})
    assert json.loads(f"[{''.join(rows(frame, size=3))}]") == frame.to_dicts()
