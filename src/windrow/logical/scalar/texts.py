"""Numbers, dates and timestamps as Spark writes them, and texts as it reads them: NULL where it could not."""

from __future__ import annotations

from datetime import timedelta
from zoneinfo import ZoneInfo

import polars as pl

from windrow.logical.scalar.types import BIGINT, DATE, TEXT, TIMESTAMP_NTZ

BLANK = "".join(map(chr, (*range(0x21), 0x7F)))  # what Spark takes off both ends
TRUE, FALSE = ["true", "t", "yes", "y", "1"], ["false", "f", "no", "n", "0"]
INFINITE = {f"{sign}{word}": value for word in ("inf", "infinity") for sign, value in (("", 1), ("+", 1), ("-", -1))}
NUMBER = r"^([+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?)[dDfF]?$"
DAY = r"^(?P<year>[+-]?[0-9]{4,6})(?:-(?P<month>[0-9]{1,2})(?:-(?P<day>[0-9]{1,2})"
SECOND = r"(?P<second>[0-9]{1,2})(?:\.(?P<part>[0-9]*))?(?P<zone>.*)"
CLOCK = rf"(?P<hour>[0-9]{{1,2}})(?::(?P<minute>[0-9]{{1,2}})(?::{SECOND})?)?"
DATE_TEXT = DAY + r"(?:[ T].*)?)?)?$"
STAMP_TEXT = DAY + rf"(?:[ T]{CLOCK})?)?)?$"
OFFSET = r"^(?:UTC|GMT|UT)?(?P<sign>[+-])(?P<h>[0-9]{1,2})(?::?(?P<m>[0-9]{2})(?::?(?P<s>[0-9]{2}))?)?$"
UTC = ["", "Z", "UTC", "GMT", "UT"]
HIGHEST_OFFSET = 18 * 3600
MOST_IN_ZONE = 8_000_000_000_000_000_000  # microseconds; the calendar that zones are looked up in ends soon after
LEAST_PLAIN, MOST_PLAIN = 1e-3, 1e7  # outside of these Java writes an exponent


def integer(text: pl.Series, dtype: pl.DataType) -> pl.Series:
    """Whole numbers: a sign and digits.

    >>> integer(pl.Series([" 2 ", "+3", "1.5", ""]), pl.Int32()).to_list()
    [2, 3, None, None]
    """
    found = text.cast(BIGINT, strict=False)
    if found.null_count() > text.null_count():
        found = found.zip_with(found.is_not_null(), text.str.strip_chars(BLANK).cast(BIGINT, strict=False))
    return found.cast(dtype, strict=False)


def number(text: pl.Series, dtype: pl.DataType) -> pl.Series:
    """Floats, with the letters that Java lets stand behind them.

    >>> number(pl.Series(["1e3", " .5f", "-INF", "NaN", "1_0"]), pl.Float64()).to_list()
    [1000.0, 0.5, -inf, nan, None]
    """
    fast = text.cast(dtype, strict=False)
    if fast.null_count() == text.null_count() and not fast.is_nan().any():  # texts of NaN can be too free
        return fast
    plain = text.str.strip_chars(BLANK)
    found = plain.str.extract(NUMBER).cast(dtype, strict=False)
    special = {word: value * float("inf") for word, value in INFINITE.items()} | {"nan": float("nan")}
    named = plain.str.to_lowercase().replace_strict(special, default=None, return_dtype=dtype)
    return found.zip_with(found.is_not_null(), named)


def boolean(text: pl.Series) -> pl.Series:
    """The words that Spark takes for true and false."""
    words = {word: value for value, words in ((True, TRUE), (False, FALSE)) for word in words}
    return text.str.strip_chars(BLANK).str.to_lowercase().replace_strict(words, default=None, return_dtype=pl.Boolean)


def date(text: pl.Series) -> pl.Series:
    """A day, or the first one of a month or year; what follows it after a blank or T does not count.

    >>> [str(d) for d in date(pl.Series(["2024-2-3", "2024", "2024-02-30", "2024-02-03T9"]))]
    ['2024-02-03', '2024-01-01', 'None', '2024-02-03']
    """
    return _days(_fields(text, DATE_TEXT)).cast(pl.Int32, strict=False).cast(DATE)


def timestamp(text: pl.Series, zoned: bool) -> pl.Series:
    """Microseconds since 1970. A zone is optional and may follow the seconds; where it does not count it is ignored.

    >>> timestamp(pl.Series(["1970-01-01 1:00:00.5+01:00", "1970-01-01 00:00:60"]), zoned=True).to_list()
    [500000, None]
    """
    fields = _fields(text, STAMP_TEXT)
    clock = fields.select(pl.col("hour", "minute", "second").cast(BIGINT).fill_null(0))
    valid = (clock["hour"] < 24) & (clock["minute"] < 60) & (clock["second"] < 60)
    seconds = _days(fields) * 86_400 + clock["hour"] * 3600 + clock["minute"] * 60 + clock["second"]
    part = fields["part"].fill_null("").str.pad_end(6, "0").str.slice(0, 6).cast(BIGINT)
    zone = fields["zone"].fill_null("").str.strip_chars(BLANK)
    # Years of six digits leave 64 bits.
    clocks = pl.DataFrame({"s": seconds.set(~valid, None), "part": part}).cast(pl.Int128)
    wide = clocks.select(local=pl.col("s") * 1_000_000 + pl.col("part"))
    behind = _offsets(zone, wide["local"].cast(BIGINT, strict=False))
    instants = wide.select(pl.col("local") - behind if zoned else "local").to_series()
    return instants.cast(BIGINT, strict=False).set(behind.is_null(), None)


def _fields(text: pl.Series, pattern: str) -> pl.DataFrame:
    return text.str.strip_chars(BLANK).str.extract_groups(pattern).struct.unnest()


def _days(fields: pl.DataFrame) -> pl.Series:
    """Days since 1970 of years, months and days; NULL where the calendar has no such day."""
    y, m, d = pl.col("year"), pl.col("month"), pl.col("day")
    numbers = fields.select(pl.col("year", "month", "day").str.strip_chars_start("+").cast(BIGINT))
    numbers = numbers.with_columns(pl.when(y.is_not_null()).then(pl.col("month", "day").fill_null(1)))
    leap = ((y % 4 == 0) & (y % 100 != 0)) | (y % 400 == 0)
    longest = pl.when(m == 2).then(28 + leap.cast(BIGINT)).otherwise(30 + (m + (m > 7).cast(BIGINT)) % 2)
    valid = m.is_between(1, 12) & d.is_between(1, longest)
    # Years begin in March here, so that the day that may be missing is the last one.
    march = y - (m <= 2).cast(BIGINT)
    since = march * 365 + march // 4 - march // 100 + march // 400
    in_year = (153 * ((m + 9) % 12) + 2) // 5 + d - 1
    return numbers.select(pl.when(valid).then(since + in_year - 719_468)).to_series()


def _offsets(zone: pl.Series, local: pl.Series) -> pl.Series:
    """How far the clock of each zone is ahead of UTC, in microseconds; NULL for one that does not exist."""
    if (zone.is_in(UTC)).all():
        return pl.Series([0], dtype=BIGINT).new_from_index(0, len(zone))
    parts = zone.str.extract_groups(OFFSET).struct.unnest()
    h, m, s = (parts[c].cast(BIGINT) for c in "hms")
    seconds = h * 3600 + m.fill_null(0) * 60 + s.fill_null(0)
    valid = (m.fill_null(0) < 60) & (s.fill_null(0) < 60) & (seconds <= HIGHEST_OFFSET)
    given = (seconds * (1 - 2 * (parts["sign"] == "-").cast(BIGINT))).set(~valid, None)
    found = given.set(zone.is_in(UTC), 0)
    named = found.is_null() & parts["sign"].is_null()
    for name in zone.filter(named).unique():
        here = (zone == name).fill_null(False)
        found = found.scatter(here.arg_true(), _ahead(str(name), local.filter(here)))
    return found * 1_000_000


def _ahead(name: str, local: pl.Series) -> pl.Series:
    """How many seconds the clock of a region is ahead of UTC when it shows these times.

    What it skips counts as if it had not been put on yet, as in Java.
    """
    near = local.set((local.abs() > MOST_IN_ZONE).fill_null(False), None)
    try:
        region = ZoneInfo(name)
        stamps = near.cast(TIMESTAMP_NTZ).dt.replace_time_zone(name, ambiguous="earliest", non_existent="null")
    except (KeyError, ValueError, OSError, pl.exceptions.PolarsError):
        return pl.Series([None], dtype=BIGINT).new_from_index(0, len(local))
    found = (local - stamps.dt.convert_time_zone("UTC").dt.replace_time_zone(None).to_physical()) // 1_000_000
    skipped = found.is_null() & near.is_not_null()
    if not skipped.any():
        return found
    offsets = [t.replace(tzinfo=region).utcoffset() for t in local.filter(skipped).cast(TIMESTAMP_NTZ)]
    seconds = [None if o is None else o // timedelta(seconds=1) for o in offsets]
    return found.scatter(skipped.arg_true(), pl.Series(seconds, dtype=BIGINT))


# -- as texts --------------------------------------------------------------------------------------------------------
def of_timestamp(stamps: pl.Series) -> pl.Series:
    """Without the zeros at the end of a fraction.

    >>> of_timestamp(pl.Series([1_500_000, 60_000_000]).cast(pl.Datetime("us", "UTC"))).to_list()
    ['1970-01-01 00:00:01.5', '1970-01-01 00:01:00']
    """
    return stamps.dt.strftime("%Y-%m-%d %H:%M:%S%.6f").str.strip_chars_end("0").str.strip_chars_end(".")


def of_float(values: pl.Series) -> pl.Series:
    """The fewest digits that give the number again, with an exponent below 0.001 and from 10,000,000 on.

    >>> of_float(pl.Series([1.0, 1e7, 0.00025, float("inf"), -0.0])).to_list()
    ['1.0', '1.0E7', '2.5E-4', 'Infinity', '-0.0']
    """
    size = values.abs()
    plain = (size >= LEAST_PLAIN) & (size < MOST_PLAIN) | (size == 0)
    found = values.cast(TEXT)
    if plain.all():
        return found
    odd = ~plain
    written = [_scientific(v) for v in found.filter(odd)]
    return found.scatter(odd.arg_true(), pl.Series(written, dtype=TEXT))


def _scientific(text: str) -> str:
    if (word := {"nan": "NaN", "inf": "Infinity", "-inf": "-Infinity"}.get(text.lower())) is not None:
        return word
    sign, text = ("-", text[1:]) if text.startswith("-") else ("", text)
    mantissa, _, exponent = text.lower().partition("e")
    before, _, after = mantissa.partition(".")
    digits = (before + after).lstrip("0")
    power = len(before) - 1 + int(exponent or 0) - (len(before + after) - len((before + after).lstrip("0")))
    digits = digits.rstrip("0") or "0"
    return f"{sign}{digits[0]}.{digits[1:] or '0'}E{power}"


def of_anything(values: pl.Series) -> pl.Series:
    """A value as CAST(.. AS STRING) writes it."""
    if values.dtype.is_float():
        return of_float(values)
    if isinstance(values.dtype, pl.Datetime):
        return of_timestamp(values)
    return values.cast(TEXT)
