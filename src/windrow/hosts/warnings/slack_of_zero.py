"""An endless stream with slack 0, which is right only if its rows are in order."""

from __future__ import annotations

from collections.abc import Iterator

from windrow.hosts.outline import ROWS
from windrow.hosts.warnings.warned import Looked, Warned


def slack_of_zero(looked: Looked) -> Iterator[Warned]:
    """Not said of partitions that are in order one by one, nor where the user has said that rows are in order."""
    for source in looked.report.sources:
        given = source.declared
        if given.slack != 0 or given.ordered or given.kind == ROWS or given.parts_by is not None:
            continue
        if given.name in looked.endless:
            yield Warned(
                "slack_of_zero",
                given.key,
                f"Source `{given.name}` has a slack of zero: a row with a smaller {given.attribute} than one before it "
                "is late. If rows can be out of order, say by how much (slack='10 seconds', --slack '10 seconds'); if "
                "they are in order, say that (punctuation=wr.promise.ordered(), --punctuation 'ordered()').",
                hint=True,
            )
