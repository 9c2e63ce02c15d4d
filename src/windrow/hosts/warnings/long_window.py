"""Windows longer than what the rows so far cover: no result can be there yet."""

from __future__ import annotations

from collections.abc import Iterator

from windrow.hosts.warnings.one_window import one_window
from windrow.hosts.warnings.warned import Looked, Warned
from windrow.hosts.why.case import length as in_words

BATCHES = 3


def long_window(looked: Looked) -> Iterator[Warned]:
    """After a few micro-batches, or at the end. Not if all rows are in one window, which has another reason."""
    report = looked.report
    if report.results or not (looked.final or report.batch >= BATCHES - 1) or report.batch < 0:
        return
    if any(True for _ in one_window(looked)):
        return
    for stage, length, source in looked.windows():
        least, greatest = source.seen.least, source.seen.greatest
        if least is None or greatest is None or greatest - least >= length:
            continue
        covered = in_words(greatest - least, stage.kind)
        yield Warned(
            "long_window",
            f"{source.declared.key} {stage.number}",
            f"No window of {in_words(length, stage.kind)} is over yet: the rows of source `{source.name}` so far cover "
            f"{covered} ({source.text(least)} to {source.text(greatest)}). Wait, make RANGE shorter, or look at "
            "windows before their end with EMIT EARLY.",
            hint=True,
        )
