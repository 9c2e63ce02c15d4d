"""The causes: one function each, which finds it in a report or not. ``CAUSES`` is the order in which they are tried.

What comes first would explain what comes later: a clock in the future makes rows late, so late rows are looked at after
it; a source without rows has no partitions that are stuck.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import permutations

from windrow.hosts.outline import ROWS, TIME, ZONED
from windrow.hosts.report import Source
from windrow.hosts.why.case import MINUTE, Case, Cause, length
from windrow.progress import START

Rule = Callable[[Case], Cause | None]
SILENT = (
    "See whether it still sends. If it is often silent, say so, and it promises without rows: delay='10 seconds' if "
    "its rows are never later than that, idle_after='1 minute' if being silent for so long means that there are none, "
    "or markers."
)
QUARTER = 15 * MINUTE
FARTHEST = 14 * 60 * MINUTE  # no two time zones that are mixed up are further apart, or nearly
MOST_LATE = 0.9  # of the rows of a micro-batch: more, and it is not disorder
FAR = 10  # times the slack and the length of a batch: further ahead is not disorder either


def nothing_read(case: Case) -> Cause | None:
    """No source has had a row."""
    if any(source.read or source.seen.rows for source in case.sources):
        return None
    names = _listed(case.sources)
    batches = f"in {case.report.batch + 1:,} micro-batches" if case.report.batch >= 0 else "yet"
    return case.cause(
        "nothing read",
        f"Nothing has been read from {names} {batches}.",
        case.sources[0] if len(case.sources) == 1 else None,
        "Look at where the rows should come from: the path or topic, its permissions, and where reading begins.",
    )


def filter_removes_everything(case: Case) -> Cause | None:
    """A condition that none of the rows of a source has met, so that nothing is held, or nothing to join with."""
    stage = None if case.wait is None else case.report.stage(case.wait.stage)
    joins = stage is not None and stage.arms > 1 and all(case.is_active(source) for source in case.behind)
    if case.report.results or not (case.wait is None or joins):
        return None
    for part in case.report.parts:
        if "select" not in part.name or not part.rows_in or part.rows_out or not part.source:
            continue
        source = next((s for s in case.sources if s.name == part.source and s.declared.filters), None)
        if source is None:
            continue
        condition = " and ".join(source.declared.filters)
        return case.cause(
            "filter removes everything",
            f"The condition {condition} has removed all {part.rows_in:,} rows of source `{source.name}`.",
            source,
            "Look at some rows and compare them with the condition: values in other units, other case, or NULL.",
        )
    return None


def missing_punctuation(case: Case) -> Cause | None:
    """Markers were declared, and none has come."""
    for source in case.sources:
        if source.declared.markers and source.seen.rows and source.promised == START and not _groups(case):
            return case.cause(
                "missing punctuation",
                f"Waiting for the first marker of source `{source.name}`: {source.seen.rows:,} rows have come and no "
                f"marker; {case.held_text}.",
                source,
                "Have the source write markers, or say how far its rows can be behind: slack='10 seconds'.",
            )
    return None


def future_clock(case: Case) -> Cause | None:
    """One row far ahead of all others has promised what makes them late."""
    if not _all_late(case):
        return None
    for source in case.sources:
        declared, seen = source.declared, source.seen
        count, low, high = seen.recent
        if not count or low is None or high is None or seen.greatest is None or seen.least is None:
            continue
        ahead = seen.greatest - high
        if declared.slack is None or high >= source.promised or low <= seen.least:
            continue
        if ahead > FAR * max(declared.slack, 1) or ahead > FAR * max(high - low, 1):
            return case.cause(
                "future clock",
                f"A row of source `{source.name}` is at {source.text(seen.greatest)}, {length(ahead, declared.kind)} "
                f"ahead of the rows that come now ({source.text(high)}); {_late_text(case)}.",
                source,
                "Correct the clock, and keep such rows out: wr.stream(.., ahead='1 minute', arrival=..).",
            )
    return None


def all_late(case: Case) -> Cause | None:
    """Nearly all rows of the last micro-batch with any were late."""
    if not _all_late(case):
        return None
    sources = [s for s in case.sources if s.seen.recent[2] is not None and s.seen.recent[2] < s.promised]
    source = min(sources or list(case.sources), key=lambda s: s.seen.recent[2] or 0)
    _, low, high = source.seen.recent
    behind = source.promised - low if low is not None and source.promised > START else 0
    return case.cause(
        "all rows late",
        f"The rows of source `{source.name}` are late: it has promised {source.text(source.promised)}, and those of "
        f"the last micro-batch are from {source.text(low)} to {source.text(high)}; {_late_text(case)}.",
        source,
        f"They are up to {length(behind, source.declared.kind)} behind the promise: give the source more slack, look "
        "at who promised so much, or take late rows with LATE SIDE or LATE REVISE."
        if behind > 0
        else "Take late rows with LATE SIDE or LATE REVISE.",
    )


def stuck_partition(case: Case) -> Cause | None:
    """A partition of a source has not come as far as the others, or is not there at all."""
    for source in case.behind:
        declared, seen = source.declared, source.seen
        if declared.parts_by is None or not seen.parts:
            continue
        if seen.parts_there < declared.parts:
            missing = declared.parts - seen.parts_there
            return case.cause(
                "stuck partition",
                f"Waiting for {missing} of the {declared.parts} partitions of source `{source.name}` (by "
                f"{declared.parts_by}): nothing has come from them, and {case.held_text}.",
                source,
                f"See why they send nothing, or declare how many there are: count={seen.parts_there}.",
            )
        part, reached = seen.parts[0]
        if reached == START:
            return case.cause(
                "stuck partition",
                f"Waiting for partition {part} of source `{source.name}`: nothing has come from it, and "
                f"{case.held_text}.",
                source,
                "See why its producer sends nothing, or let the source be asked: delay=.. or idle_after=...",
                part,
            )
        if seen.greatest is not None and reached < seen.greatest and seen.came > seen.same:
            return case.cause(
                "stuck partition",
                f"Waiting for partition {part} of source `{source.name}`: it has come to {source.text(reached)}, and "
                f"no further since {case.when(max(seen.same, 0))}; the furthest one has come to "
                f"{source.text(seen.greatest)}; {case.last(source)}; {case.held_text}.",
                source,
                "See whether its producer still writes.",
                part,
            )
    return None


def wrong_time_zone(case: Case) -> Cause | None:
    """Two sources that both go on, apart by a whole number of quarters of an hour."""
    for behind, ahead in permutations(case.sources, 2):
        apart = _apart(case, behind, ahead)
        if apart is None or not 2 * QUARTER <= apart <= FARTHEST:
            continue
        off = (apart + QUARTER // 2) % QUARTER - QUARTER // 2
        if abs(off) <= _tolerance(behind, ahead) and _matters(case, behind, ahead):
            hours = length((apart - off), behind.declared.kind)
            return case.cause(
                "wrong time zone",
                f"Source `{behind.name}` is {hours} behind source `{ahead.name}`, and rows of both keep coming: that "
                f"looks like a time zone; {case.last(behind)}; {case.held_text}.",
                behind,
                "Look at how each writes its times, and convert one: a text with its zone (parse='iso8601'), or a "
                "column moved by an expression.",
            )
    return None


def silent_group(case: Case) -> Cause | None:
    """A group that has open windows and no marker, where others have theirs."""
    groups = _groups(case)
    if not groups or case.wait is None:
        return None
    marked = [s for s in case.behind if s.declared.marker_by]
    if not marked:
        return None
    [source, *_] = marked
    group, closed = groups[0]
    by = ", ".join(source.declared.marker_by)
    names = group.strip("[]")
    told = "it has never been promised anything" if closed == START else f"closed up to {case.waits_text(closed)}"
    return case.cause(
        "silent group",
        f"Waiting for a marker about {by} = {names} of source `{source.name}`: {told}; {case.held_text}.",
        source,
        "Have the source write a marker about the group, or one about everyone.",
        names,
    )


def idle_source(case: Case) -> Cause | None:
    """A source that holds others back and sends nothing, or never has."""
    for source in case.behind:
        others = [other for other in case.sources if other.seen.came > source.seen.came]
        if source.declared.kind == ROWS or case.is_active(source) or not others:
            continue
        came = source.seen.came
        rows = "no row has come from it" if came < 0 else f"no rows since {case.when(came)}"
        return case.cause(
            "idle source",
            f"Waiting for source `{source.name}`: {case.last(source)}, {rows}; {case.held_text}.",
            source,
            "See whether it still sends." if source.declared.asked else SILENT,
        )
    return None


def clock_ahead(case: Case) -> Cause | None:
    """Two sources that both go on, one of them far ahead."""
    for behind, ahead in permutations(case.sources, 2):
        apart = _apart(case, behind, ahead)
        if apart is None or not _matters(case, behind, ahead):
            continue
        if apart > FAR * max(_tolerance(behind, ahead), 1):
            return case.cause(
                "clock ahead",
                f"Source `{ahead.name}` is {length(apart, ahead.declared.kind)} ahead of source `{behind.name}`, and "
                f"rows of both keep coming: one of their clocks is wrong, or `{behind.name}` is delayed; "
                f"{case.last(behind)}; {case.held_text}.",
                behind,
                "Compare the newest rows of both with the time of day.",
            )
    return None


def slack_too_large(case: Case) -> Cause | None:
    """All that a source has sent is within its slack and one window."""
    wait = case.wait
    if wait is None or case.report.results:
        return None
    stage = case.report.stage(wait.stage)
    for source in case.behind:
        slack, seen = source.declared.slack, source.seen
        needs = case.needs(source)
        if not slack or seen.least is None or seen.greatest is None or needs is None:
            continue
        covered = seen.greatest - seen.least
        enough = slack + ((stage.length if stage is not None else None) or 0)
        if covered < enough and needs <= seen.greatest:  # without slack it would be released
            kind = source.declared.kind
            return case.cause(
                "slack too large",
                f"Waiting for source `{source.name}`: its rows cover {length(covered, kind)}, and it promises "
                f"{length(slack, kind)} behind the greatest {source.declared.attribute} ({case.last(source)}); "
                f"the first release needs a row at {source.text(needs + slack)} or later; {case.held_text}.",
                source,
                "If rows are never that far out of order, give less slack; else wait.",
            )
    return None


def waiting(case: Case) -> Cause | None:
    """Something waits for a promise that has not come yet: as it should be, if the source goes on."""
    wait = case.wait
    if wait is None:
        return None
    if not case.behind:
        return case.cause("waiting", f"Waiting for more rows: {case.held_text}.", remedy="Nothing: this is normal.")
    source = case.behind[0]
    names = _listed(case.behind)
    if source.declared.kind == ROWS:
        return case.cause("waiting", f"Waiting for more rows of {names}: {case.held_text}.", source)
    needs = case.needs(source)
    return case.cause(
        "waiting",
        f"Waiting for {names}: {case.last(source)}, {source.text(needs)} is needed; {case.held_text}.",
        source,
        "Nothing, as long as rows keep coming: this is normal.",
    )


def all_is_well(case: Case) -> Cause | None:
    """Nothing is held."""
    report = case.report
    results = f"{report.results:,} results are out" if report.results != 1 else "1 result is out"
    return case.cause("nothing waits", f"Nothing is waiting: {results}, and no operator holds rows for a promise.")


CAUSES: tuple[Rule, ...] = (
    nothing_read,
    filter_removes_everything,
    missing_punctuation,
    future_clock,
    all_late,
    stuck_partition,
    wrong_time_zone,
    silent_group,
    idle_source,
    clock_ahead,
    slack_too_large,
    waiting,
    all_is_well,
)


# -- what several rules look at ----------------------------------------------------------------------------------------
def _all_late(case: Case) -> bool:
    """Whether nearly all rows of the last micro-batch that had any were late."""
    newest = max((aside.batch for aside in case.report.late.values()), default=-1)
    late = sum(aside.recent for aside in case.report.late.values() if aside.batch == newest)
    rows = sum(source.seen.recent[0] for source in case.sources if source.seen.came == newest)
    came = max((source.seen.came for source in case.sources), default=-1)
    return newest >= 0 and newest == came and late >= MOST_LATE * rows > 0


def _late_text(case: Case) -> str:
    late = sum(aside.count for aside in case.report.late.values())
    return f"{late:,} row has been late" if late == 1 else f"{late:,} rows have been late so far"


def _groups(case: Case) -> tuple[tuple[str, int], ...]:
    return () if case.wait is None else case.wait.groups


def _listed(sources: tuple[Source, ...]) -> str:
    names = list(dict.fromkeys(f"`{source.name}`" for source in sources))
    if len(names) == 1:
        return f"source {names[0]}"
    return f"sources {', '.join(names[:-1])} and {names[-1]}"


def _apart(case: Case, behind: Source, ahead: Source) -> int | None:
    """How far one source is behind another of the same kind, if rows of both keep coming."""
    times = {behind.declared.kind, ahead.declared.kind} <= {TIME, ZONED}
    ends = behind.seen.recent[2], ahead.seen.recent[2]
    if not times or behind.name == ahead.name or ends[0] is None or ends[1] is None:
        return None
    if behind.seen.first == behind.seen.came or not (case.is_active(behind) and case.is_active(ahead)):
        return None
    return ends[1] - ends[0] if ends[1] > ends[0] else None


def _tolerance(behind: Source, ahead: Source) -> int:
    """How far two sources with good clocks can be apart: by their slack, and by what a micro-batch covers."""
    spans = [s.seen.recent[2] - s.seen.recent[1] for s in (behind, ahead) if s.seen.recent[1] is not None]  # type: ignore[operator]
    slack = max(behind.declared.slack or 0, ahead.declared.slack or 0)
    return min(max([MINUTE, slack, *spans]), QUARTER // 3)


def _matters(case: Case, behind: Source, ahead: Source) -> bool:
    """Whether the one holds results back that the other has made ready."""
    return case.wait is not None and behind in case.behind and ahead in case.others
