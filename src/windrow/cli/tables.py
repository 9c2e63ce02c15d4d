"""A micro-batch as a table on the terminal."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from rich.console import Console
from rich.markup import escape
from rich.table import Table
from rich.text import Text

SHOWN = 20


def show_batch(batch: int, columns: Sequence[str], rows: Sequence[Sequence[Any]]) -> None:
    """Print the first rows of a micro-batch; nothing if it has none."""
    if not rows:
        return
    title = f"micro-batch {batch}"
    caption = f"first {SHOWN} of {len(rows):,} rows" if len(rows) > SHOWN else ""
    # A title is broken into lines at the width of its table, which may have one narrow column.
    table = Table(*map(escape, columns), title=title, caption=caption or None, min_width=max(len(title), len(caption)))
    for row in rows[:SHOWN]:
        table.add_row(*(Text("NULL" if v is None else str(v)) for v in row))
    Console().print(table)
