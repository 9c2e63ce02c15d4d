"""Bad rows as side outputs show them."""

from __future__ import annotations

import polars as pl

from windrow.spec.names import REASON

BAD_SCHEMA = {"source": pl.String(), "reason": pl.String(), "row": pl.String()}


def described(rows: pl.DataFrame, source: str) -> pl.DataFrame:
    """Bad rows of any stage in the same columns: where, why, and the row as JSON."""
    values = pl.struct(pl.exclude(REASON, "^@.*$")).struct.json_encode()
    shown = values if any(c != REASON and not c.startswith("@") for c in rows.columns) else pl.lit("{}")
    return rows.select(pl.lit(source).alias("source"), pl.col(REASON), shown.alias("row"))
