"""State that only grows."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from windrow.hosts.outline import StageOutline
from windrow.hosts.report import Report, Source, operator_of, stage_of
from windrow.hosts.warnings.warned import Looked, Warned
from windrow.progress import START

LARGE = 16 << 20  # bytes; less is no concern
REPORTS = 9  # that are compared
GROWTH = 1.25  # from quarter to quarter
ENDLESS = ("landmark", "partitioned", "as-of join")  # algorithms that keep something of each key for ever
STILL = 8  # micro-batches with rows in which a source has promised nothing more


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
    if still := [source for source in sources if _stands(source)]:
        remedy = (
            f"{still[0].name!r} has promised nothing more since micro-batch {still[0].seen.moved}, so nothing closes: see "
            "why it does not, or take it out of the union"
        )
    elif stage is not None and any(_should_be_full(stage, source, reports[0]) for source in sources):
        remedy = "promises go on, but free too little: bound its keys (max_keys= of an as-of join), or shorten its windows"
    else:
        return
    yield Warned(
        "growing_state",
        largest.name,
        f"the state grows with every micro-batch, to {now.state_bytes >> 20:,} MiB now, most of it in "
        f"{operator_of(largest.name)} of stage {stage_of(largest.name)}: {remedy}. state_limit= stops the query in time",
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
    places = [round(quarter * (len(reports) - 1) / 4) for quarter in range(5)]
    sizes = [max(1, reports[place].state_bytes) for place in places]
    first, last = (sum(s.seen.recent[0] for s in reports[place].sources) for place in (places[1], -1))
    steps = zip(sizes, sizes[1:], strict=False)
    return all(after >= GROWTH * before for before, after in steps) and last <= 2 * max(1, first)


def _stands(source: Source) -> bool:
    return source.seen.came - source.seen.moved >= STILL
