"""State that only grows."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import pairwise

from windrow.hosts.outline import StageOutline
from windrow.hosts.report import Report, Source, operator_of, stage_of
from windrow.hosts.warnings.warned import Looked, Warned
from windrow.progress import START

LARGE = 8 << 20  # bytes; less is no concern
REPORTS = 9  # that are compared
GROWTH = 1.25  # from quarter to quarter
ENDLESS = ("running", "partitioned", "as-of-join")  # algorithms that keep something of each key for ever
STILL = 8  # micro-batches in which a source has promised nothing more


def growing_state(looked: Looked) -> Iterator[Warned]:
    """Quarter after quarter of the time looked at, while about as many rows come as before. Until promises have gone on
    for longer than a window, growing is what it should do.
    """
    reports, now = (*looked.before, looked.report), looked.report
    if len(reports) < REPORTS or now.state_bytes < LARGE or not _grows(reports):
        return
    largest = max(now.parts, key=lambda part: part.bytes)
    stage = now.stage(stage_of(largest.name))
    sources = [s for key in (stage.sources if stage is not None else ()) if (s := now.source(key)) is not None]
    if still := [source for source in sources if now.batch - source.seen.moved >= STILL]:
        remedy = (
            f"source `{still[0].name}` has promised nothing more since micro-batch {still[0].seen.moved}, so nothing "
            "closes: see windrow why; delay= or idle_after= let a silent source promise"
        )
    elif stage is not None and any(_should_be_full(stage, source, reports[0]) for source in sources):
        remedy = (
            "promises go on, but free too little: bound its keys (max_keys= of an as-of join), or shorten its windows"
        )
    else:
        return
    where = f"{operator_of(largest.name)} of stage {stage_of(largest.name)}"
    yield Warned(
        "growing_state",
        largest.name,
        f"The state grows with every micro-batch, to {now.state_bytes >> 20:,} MiB now, most of it in {where}: "
        f"{remedy}. state_limit= stops the query in time.",
    )


def _should_be_full(stage: StageOutline, source: Source, first: Report) -> bool:
    """Whether a stage has had promises for long enough to hold all that it ever should."""
    before = first.source(source.declared.key)
    if before is None or before.promised == START or source.promised == START:
        return False
    if stage.length is None:
        return stage.algorithm in ENDLESS
    return source.declared.kind == stage.kind and source.promised - before.promised >= 2 * stage.length


def _grows(reports: Sequence[Report]) -> bool:
    first, last = reports[0].batch, reports[-1].batch
    ends = [first + quarter * (last - first) / 4 for quarter in range(5)]
    places = [next(report for report in reports if report.batch >= end) for end in ends]
    sizes = [max(1, report.state_bytes) for report in places]
    rows = [sum(source.seen.recent[0] for source in report.sources) for report in places]
    return all(after >= GROWTH * before for before, after in pairwise(sizes)) and rows[-1] <= 2 * max(1, rows[1])
