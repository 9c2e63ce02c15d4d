"""Figures: the numbers of a report as they are watched, in a terminal, by Prometheus, or in Spark's own metrics."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

from windrow.hosts.outline import DATE, TIME, ZONED
from windrow.hosts.report import Report, Source, stage_of
from windrow.hosts.reporting import merged

DAY = 86_400.0


@dataclass(frozen=True)
class StreamFigures:
    """A source. ``promise`` is text, ``promised`` the same as a number: seconds since 1970 of times, else itself.
    ``lag``: how far it is behind the greatest value. ``disorder``: how far the rows of the last micro-batch reach back
    behind the greatest value of those before. Both in seconds, or units of the attribute; None where nothing is known.
    """

    name: str
    on: str
    rows: int
    rate: float
    promise: str
    promised: float | None
    lag: float | None
    disorder: float | None


@dataclass(frozen=True)
class OperatorFigures:
    """An operator: rows in and out, of all and per second of the last micro-batch, and its state."""

    name: str
    algorithm: str
    rows_in: int
    rows_out: int
    rate_in: float
    rate_out: float
    state: int
    held: int


@dataclass(frozen=True)
class Figures:
    """All of a query, after a micro-batch that took ``seconds``: that is the time from a promise to what it releases.
    ``queries``: of a session, how many results each has had.
    """

    batch: int
    seconds: float
    results: int
    rate: float
    streams: tuple[StreamFigures, ...]
    operators: tuple[OperatorFigures, ...]
    late: Mapping[str, int]
    bad: Mapping[str, int]
    queries: Mapping[str, int] = field(default_factory=dict)

    def as_json(self) -> dict[str, Any]:
        return asdict(self)

    @property
    def state(self) -> int:
        return sum(each.state for each in self.operators)


def figures_of(written: Mapping[str, Any]) -> Figures:
    """Those of what a micro-batch leaves beside its checkpoint, or a server tells."""
    seconds = float(written["milliseconds"].get("triggerExecution", 0)) / 1000
    queries = {str(name): int(count) for name, count in written.get("queries", {}).items()}
    return figures(merged(written["parts"]), seconds, queries)


def figures(report: Report, seconds: float, queries: Mapping[str, int] | None = None) -> Figures:
    """Those of a report; ``seconds``: how long its last micro-batch took."""

    def rate(rows: int) -> float:
        return rows / seconds if seconds > 0 else 0.0

    held = {(each.stage, each.operator): each.count for each in report.held}
    operators = []
    for part in report.parts:
        stage = report.stage(stage_of(part.name))
        operator = part.name.rsplit("/", 1)[-1].partition("-")[2]
        algorithm = "" if stage is None or (stage.number, operator) not in held else stage.algorithm
        count = 0 if stage is None else held.get((stage.number, operator), 0)
        name = f"{part.source}/{operator}" if part.source else part.name
        rates = rate(part.recent_in), rate(part.recent_out)
        operators.append(OperatorFigures(name, algorithm, part.rows_in, part.rows_out, *rates, part.bytes, count))
    streams = tuple(_stream(source, report, rate) for source in report.sources)
    late = {where: aside.count for where, aside in report.late.items()}
    bad: dict[str, int] = {}
    for where, aside in report.bad.items():
        at = where.partition("\t")[0]
        bad[at] = bad.get(at, 0) + aside.count
    return Figures(
        report.batch,
        seconds,
        report.results,
        rate(report.recent_results),
        streams,
        tuple(operators),
        late,
        bad,
        dict(queries or {}),
    )


def _stream(source: Source, report: Report, rate: Any) -> StreamFigures:
    seen, kind = source.seen, source.declared.kind
    recent = seen.recent[0] if seen.came == report.batch else 0
    known = seen.moved >= 0
    lag = seen.greatest - seen.promised if known and seen.greatest is not None else None
    return StreamFigures(
        source.name,
        source.declared.attribute,
        source.read,
        rate(recent),
        source.text(seen.promised),
        in_seconds(seen.promised, kind) if known else None,
        None if lag is None else in_seconds(max(lag, 0), kind),
        None if seen.came < 0 else in_seconds(seen.back, kind),
    )


def in_seconds(value: int, kind: str) -> float:
    """A progress value or a length of one as a number that dashboards know."""
    if kind in (TIME, ZONED):
        return value / 1_000_000
    return value * DAY if kind == DATE else float(value)


# -- Prometheus --------------------------------------------------------------------------------------------------------
Sample = tuple[Mapping[str, str], float]
Family = tuple[str, str, str, Sequence[Sample]]


def families(found: Figures) -> Iterator[Family]:
    """Name, type, meaning and samples of each metric."""
    streams = [({"source": s.name, "on": s.on}, s) for s in found.streams]
    operators = [({"operator": o.name}, o) for o in found.operators]
    yield "windrow_micro_batch", "gauge", "the last micro-batch", [({}, found.batch)]
    yield "windrow_micro_batch_seconds", "gauge", "how long it took, from a promise to results", [({}, found.seconds)]
    yield "windrow_results_total", "counter", "rows of the result", [({}, found.results)]
    yield "windrow_results_per_second", "gauge", "rows of the result in the last micro-batch", [({}, found.rate)]
    yield "windrow_rows_total", "counter", "rows that were read", [(of, s.rows) for of, s in streams]
    yield "windrow_rows_per_second", "gauge", "rows read in the last micro-batch", [(of, s.rate) for of, s in streams]
    promised = [(of, s.promised) for of, s in streams if s.promised is not None]
    yield "windrow_promise", "gauge", "the last promise, times in seconds since 1970", promised
    lags = [(of, s.lag) for of, s in streams if s.lag is not None]
    yield "windrow_promise_lag", "gauge", "how far the promise is behind the greatest value, times in seconds", lags
    backs = [(of, s.disorder) for of, s in streams if s.disorder is not None]
    yield "windrow_disorder", "gauge", "how far the last rows reach back behind those before, times in seconds", backs
    yield "windrow_operator_rows_in_total", "counter", "rows that went in", [(of, o.rows_in) for of, o in operators]
    yield "windrow_operator_rows_out_total", "counter", "rows that came out", [(of, o.rows_out) for of, o in operators]
    yield "windrow_operator_state_bytes", "gauge", "bytes of state", [(of, o.state) for of, o in operators]
    yield "windrow_operator_held", "gauge", "rows or partials that wait", [(of, o.held) for of, o in operators]
    yield "windrow_rows_late_total", "counter", "late rows", [({"at": at}, n) for at, n in found.late.items()]
    yield "windrow_rows_bad_total", "counter", "bad rows", [({"at": at}, n) for at, n in found.bad.items()]
    results = [({"query": name}, count) for name, count in found.queries.items()]
    yield "windrow_query_results_total", "counter", "rows of the result of each query of a session", results


def prometheus(found: Figures) -> str:
    """All figures in the text format of Prometheus."""
    lines = []
    for name, kind, meaning, samples in families(found):
        if samples:
            lines += [f"# HELP {name} {meaning}", f"# TYPE {name} {kind}"]
            lines += [f"{name}{_labels(of)} {value:.15g}" for of, value in samples]
    return "\n".join([*lines, ""])


def _labels(of: Mapping[str, str]) -> str:
    """Labels of a sample.

    >>> _labels({"source": 'a "b"'})
    '{source="a \\\\"b\\\\""}'
    """
    if not of:
        return ""
    escaped = ((k, v.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")) for k, v in of.items())
    return "{" + ",".join(f'{key}="{value}"' for key, value in escaped) + "}"
