"""The logical plan as text: one line per node, inputs indented below."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

import polars as pl
from sqlglot import exp

from windrow.logical.nodes import (
    AggregateCall,
    Apply,
    AsOf,
    Distinct,
    Filter,
    Join,
    Lookup,
    Measure,
    MultiJoin,
    Node,
    Ordered,
    PairAggregate,
    Project,
    Scan,
    Sequence,
    Shape,
    Split,
    Together,
    Top,
    Union,
    WindowAggregate,
)
from windrow.logical.scalar.types import type_name
from windrow.spec.allocation import policies
from windrow.spec.joining import Limits
from windrow.spec.keeping import ALIKE
from windrow.spec.names import BRANCH, POSITION, WINDOW_TIME
from windrow.spec.options import Options
from windrow.windows import Landmark, Partitioned, RowSliding, Session, SlideByTuple, Sliding
from windrow.windows.pairing import Pairing, SameWindow, Within


def span(value: int, dtype: pl.DataType) -> str:
    """A length on the progressing attribute in words.

    >>> span(90_000_000, pl.Datetime("us")), span(7, pl.Date()), span(7, pl.Int64())
    ('90 seconds', '7 days', '7')
    """
    if isinstance(dtype, pl.Datetime):
        units = (("day", 86_400_000_000), ("hour", 3_600_000_000), ("minute", 60_000_000), ("second", 1_000_000))
        for name, size in (*units, ("millisecond", 1000), ("microsecond", 1)):
            if value % size == 0:
                return f"{value // size} {name}{'' if value // size == 1 else 's'}"
    return f"{value} day{'' if value == 1 else 's'}" if dtype == pl.Date else str(value)


def shape_text(shape: Shape, attribute: str, dtype: pl.DataType) -> str:
    """A window as its clause says it."""
    match shape:
        case Sliding():
            origin = f", ORIGIN {span(shape.origin, dtype)}" if shape.origin else ""
            lengths = f"RANGE {span(shape.range, dtype)}, SLIDE {span(shape.slide, dtype)}"
            return f"[{lengths}, WA {attribute}{origin}]"
        case Landmark():
            origin = f", ORIGIN {span(shape.origin, dtype)}" if shape.origin else ""
            return f"[RANGE ALL, SLIDE {span(shape.slide, dtype)}, WA {attribute}{origin}]"
        case RowSliding() | Partitioned():
            return f"[RANGE {shape.range} ROWS, SLIDE {shape.slide} ROWS, WA row_num]"
        case SlideByTuple():
            by = attribute if shape.by == "rank" else "row_num"
            satr = f"rank({by})" if shape.by == "rank" else by
            return f"[RANGE {span(shape.range, dtype)}, RATTR {attribute}, SLIDE {shape.slide} ROWS, SATTR {satr}]"
        case Session():
            return f"[SESSION {span(shape.gap, dtype)}, WA {attribute}]"


def options_text(options: Options, parts: tuple[str, ...], dtype: pl.DataType) -> str:
    """What a window has besides its shape, as its clause says it; nothing for a plain one."""
    found = [f"PA ({', '.join(parts)})"] if parts else []
    if options.zone is not None:
        found.append(f"TIME ZONE '{options.zone}'")
    found += ["WITH EMPTY"] if options.empty else []
    found += ["WITHOUT PARTIAL"] if not options.partial else []
    if options.late != "drop":
        kept = f" FOR {span(options.keep, dtype)}" if options.keep is not None else ""
        found.append(f"LATE {options.late.upper()}{kept}")
    found += ["GENEROUS"] if options.generous else []
    if options.early is not None:
        found.append(f"EMIT EARLY EVERY {span(options.early, dtype)}")
    return f" with {', '.join(found)}" if found else ""


def call_text(call: AggregateCall) -> str:
    """An aggregate as SQL writes it."""
    argument = "*" if call.argument is None else call.argument.sql("spark")
    parameters = "".join(f", {float(p) if p != int(p) else int(p)}" for p in call.parameters)
    return f"{call.function}({argument}{parameters}) AS {call.name}"


def promises_text(scan: Scan) -> str:
    """Where the promises of a source come from."""
    promises = _promises(scan, scan.schema[scan.progress])
    if scan.source.row_num:
        by = " and ".join(scan.source.row_num)
        disorder = f", at most {scan.source.row_slack} out of order" if POSITION not in scan.stamps else ""
        promises += f"; rows numbered by {by}{disorder}"
    for column, slack in scan.source.also:
        behind = f", {span(slack, scan.schema[column])} behind" if column not in scan.stamps else ""
        promises += f"; also progresses on {column}{behind}"
    if scan.stamps:
        promises += f"; {' and '.join(scan.stamps)} as rows arrive"
    if scan.source.messages is not None:
        promises += f"; {scan.source.messages.says()}"
    if (ahead := scan.source.ahead) is not None:
        promises += f"; bad if more than {ahead.says} ahead of {ahead.arrival}"
    if scan.progress not in scan.stamps and (asked := asked_text(scan)):
        promises += f"; {asked}"
    return promises


def asked_text(scan: Scan) -> str:
    """What a source promises when it has no rows."""
    source, micros = scan.source, pl.Datetime("us")
    found = []
    if source.delay is not None:
        found.append("now" if not source.delay else f"now less {span(source.delay, micros)}")
    if source.idle_after is not None:
        found.append(f"now less {span(source.idle_after, micros)} after {span(source.idle_after, micros)} without rows")
    return f"when it is empty promises {', and '.join(found)}" if found else ""


def _promises(scan: Scan, dtype: pl.DataType) -> str:
    if scan.source.marker is not None:
        by = f", about everyone or one {', '.join(scan.source.marker_by)}" if scan.source.marker_by else ""
        skew = f", less {span(scan.source.skew, dtype)}" if scan.source.skew else ""
        return f"promises from column {scan.source.marker}{skew}{by}"
    if scan.source.rule is not None:
        return scan.source.rule.says(scan.progress, partial(span, dtype=dtype))
    if scan.progress in scan.stamps:
        return "in order, promises by itself"
    if scan.source.slack is None and scan.source.delay is not None:
        return f"its rows come at most {span(scan.source.delay, pl.Datetime('us'))} after their {scan.progress}"
    if scan.source.slack is not None:
        return f"promises {span(scan.source.slack, dtype)} behind the greatest {scan.progress}"
    return "finite: its end is its only promise"


def lines(node: Node, depth: int = 0) -> Iterator[str]:
    """The plan, top down."""
    pad = "  " * depth
    match node:
        case Scan() if node.name == BRANCH:
            yield f"{pad}its rows"
        case Scan():
            yield f"{pad}Scan {node.name} (progress {node.progress}; {promises_text(node)})"
        case Filter():
            yield f"{pad}Filter {node.predicate.sql('spark')}"
            yield from lines(node.input, depth + 1)
        case Project():
            shown = ", ".join(
                e.sql("spark") if e.sql("spark") == n else f"{e.sql('spark')} AS {n}" for n, e in node.columns
            )
            yield f"{pad}Project {shown}{'' if node.on is None else f'; progress on the value of {node.on}'}"
            yield from lines(node.input, depth + 1)
        case Apply():
            function = node.function
            kind = f"{' vectorized' if function.vectorized else ''}{' monotone' if function.monotone else ''}"
            called = f"{function.name}({', '.join(function.columns)})"
            yield f"{pad}Apply{kind} {called} AS {node.column} ({type_name(function.returns)})"
            yield from lines(node.input, depth + 1)
        case Split():
            yield f"{pad}Split by {node.predicate.sql('spark')}; true:"
            yield from lines(node.yes, depth + 2)
            yield f"{pad}  else:"
            yield from lines(node.no, depth + 2)
            yield f"{pad}  of:"
            yield from lines(node.input, depth + 1)
        case Distinct():
            yield f"{pad}Distinct"
            yield from lines(node.input, depth + 1)
        case Ordered():
            more = "".join(f", {e.sql('spark')}{' DESC' if down else ''}" for e, down in node.order)
            yield f"{pad}Ordered by {node.progress}{more}"
            yield from lines(node.input, depth + 1)
        case Union():
            yield f"{pad}Union"
            for each in node.inputs:
                yield from lines(each, depth + 1)
        case Lookup():
            yield f"{pad}Lookup {lookup_text(node)}"
            yield from lines(node.input, depth + 1)
        case Join():
            yield f"{pad}Join {join_text(node)}"
            for each in node.inputs:
                yield from lines(each, depth + 1)
        case MultiJoin():
            yield f"{pad}MultiJoin {multi_join_text(node)}"
            for each in node.inputs:
                yield from lines(each, depth + 1)
        case AsOf():
            yield f"{pad}AsOf {as_of_text(node)}"
            for each in node.inputs:
                yield from lines(each, depth + 1)
        case Sequence():
            yield f"{pad}Sequence {sequence_text(node)}"
            for each in node.inputs:
                yield from lines(each, depth + 1)
        case PairAggregate():
            calls = ", ".join(call_text(c) for c in node.calls)
            yield f"{pad}PairAggregate by {_keys(node)}, complete when {node.left} and {node.right} are: {calls}"
            yield from lines(node.input, depth + 1)
        case WindowAggregate():
            dtype = node.bound
            calls = ", ".join(call_text(c) for c in node.calls)
            by = f" by {keys}" if (keys := _keys(node)) else ""
            extra = options_text(node.options, node.parts, dtype)
            over = node.attribute if not node.input.lead or node.by_rows else WINDOW_TIME
            yield f"{pad}WindowAggregate {shape_text(node.window, over, dtype)}{extra}{by}: {calls}"
            yield from lines(node.input, depth + 1)
        case Together():
            yield f"{pad}Together"
            for name, query in node.queries:
                yield f"{pad}  {name}:"
                yield from lines(query, depth + 2)
        case Top():
            order = ", ".join(f"{e.sql('spark')}{' DESC' if down else ''}" for e, down in node.order)
            yield f"{pad}Top {node.limit} of each window by {order}"
            yield from lines(node.input, depth + 1)


def _keys(node: WindowAggregate | PairAggregate) -> str:
    return ", ".join(e.sql("spark") if e.sql("spark") == n else f"{e.sql('spark')} AS {n}" for n, e in node.keys)


def join_text(node: Join) -> str:
    """The condition of a join. How it keeps rows is no part of what its state belongs to."""
    left, right = node.left.progress, node.right.progress
    dtype = node.left.schema[left or ""]
    keys = "".join(f" {a.sql('spark')} = {b.sql('spark')} and" for a, b in node.on)
    if node.by_rows:
        left, right, dtype = *(each.arrival[-1] for each in node.inputs), pl.Int64()
    more = f" and {node.where.sql('spark')}" if node.where is not None else ""
    if (test := node.test) is not None:
        more += f" and {test.name}({', '.join(test.columns)})"
    sides = ", ".join(f"{('left', 'right')[side]}.{column} AS {name}" for name, side, column in node.columns)
    late = "" if node.late == ("drop", "drop") else f"; late left rows: {node.late[0]}, right rows: {node.late[1]}"
    how = "" if node.how == "inner" else f"{node.how} "
    using = _using(node) + ("" if node.limits is None else f"; {_limits_text(node.limits, dtype)}")
    return f"{how}on{keys} {_near(node.window, left or '', right or '', dtype)}{more}: {sides}{late}{using}"


def _using(node: Join | MultiJoin) -> str:
    using = "" if node.using in (None, *ALIKE) else f"; using {node.using}"
    using += "" if node.alpha is None else f", alpha {node.alpha:g}"
    return using + ("" if node.cost is None else f", a comparison takes {node.cost:g}")


def _limits_text(limits: Limits, dtype: pl.DataType) -> str:
    """What a join may spend, and how its sides share it."""
    unit = "second" if isinstance(dtype, pl.Datetime) else "day" if dtype == pl.Date else "unit"
    found = [] if limits.max_rate is None else [f"{limits.max_rate:,g} rows per {unit}"]
    found += [] if limits.max_state is None else [f"{limits.max_state:,} rows of state"]
    policy = limits.policy or policies(limits.max_rate, limits.max_state)[0]
    seed = f", seed {limits.seed}" if limits.seed else ""
    return f"at most {' and '.join(found)}, shared {policy}{seed}"


def multi_join_text(node: MultiJoin) -> str:
    """How long rows are held, and the condition of a multi-way join; its inputs are numbered from 0."""
    members = [(f"{number}", member, member.progress or "") for number, member in enumerate(node.members)]
    held = zip(members, node.ranges.lengths, strict=True)
    counted = node.ranges.counts
    ranges = ", ".join(
        f"{of} [RANGE {f'{w} ROWS' if counted(int(of)) else span(w, m.schema[time])}, WA {time}]"
        for (of, m, time), w in held
    )
    terms = [" = ".join(_of_step(of, tree) for (of, _, _), tree in zip(members, key, strict=True)) for key in node.keys]
    terms += [node.where.sql("spark")] if node.where is not None else []
    terms += [f"{test.name}({', '.join(test.columns)})" for test in node.tests]
    condition = f" on {' and '.join(terms)}" if terms else ""
    shown = ", ".join(f"{member}.{column} AS {name}" for name, member, column in node.columns)
    late = "" if set(node.late) <= {"drop"} else f"; late rows: {', '.join(node.late)}"
    return f"{ranges}{condition}: {shown}{late}{_using(node)}"


def as_of_text(node: AsOf) -> str:
    """Which right row is taken for a left one."""
    dtype = node.left.schema[node.left.progress or ""]
    keys = "".join(f" {a.sql('spark')} = {b.sql('spark')} and" for a, b in node.on)
    time = f"right {node.right.progress}{f' + {span(node.shift, dtype)}' if node.shift else ''}"
    found = f"{'' if node.how == 'inner' else 'left '}on{keys} the {_side_of(node)} {time} to left {node.left.progress}"
    found += f", at most {span(node.tolerance, dtype)} away" if node.tolerance is not None else ""
    found += f" and {node.where.sql('spark')}" if node.where is not None else ""
    found += f"; at most {node.most_keys} keys" if node.most_keys is not None else ""
    sides = ", ".join(f"{('left', 'right')[side]}.{column} AS {name}" for name, side, column in node.columns)
    late = "" if node.late == ("drop", "drop") else f"; late left rows: {node.late[0]}, right rows: {node.late[1]}"
    return f"{found}: {sides}{late}"


def _side_of(node: AsOf) -> str:
    what = {"backward": "latest", "forward": "earliest", "nearest": "nearest"}[node.strategy]
    relation = {"backward": "<", "forward": ">", "nearest": "<>"}[node.strategy]
    if node.strategy == "nearest":
        return what if node.exact else f"{what} {relation}"
    return f"{what} {relation}{'=' if node.exact else ''}"


def sequence_text(node: Sequence) -> str:
    """The steps of a sequence, and which rows they take."""
    dtype = node.members[0].schema[node.members[0].progress or ""]
    steps = ", ".join(f"{'NOT ' if s.negated else ''}{s.name}{'+' if s.repeated else ''}" for s in node.steps)
    found = f"SEQ({steps}) {node.matching.upper()}"
    found += f" WITHIN {span(node.within, dtype)}" if node.within is not None else ""
    found += f" KEYS {node.most_keys}" if node.most_keys is not None else ""
    names = [step.name for step in node.steps]
    terms = [" = ".join(_of_step(n, e) for n, e in zip(names, key, strict=True)) for key in node.on]
    terms += [
        f"{_of_step(names[c.left_step], c.left)} {c.comparison} {_of_step(names[c.right_step], c.right)}"
        for c in node.conditions
    ]
    found += f" ON {' AND '.join(terms)}" if terms else ""
    found += f" AFTER MATCH SKIP {node.skip.upper()}{'; rows of the last step alone, too' if node.outer else ''}"
    shown = ", ".join(f"{_measured(node, m)} AS {m.name}" for m in node.measures)
    late = "" if set(node.late) <= {"drop"} else f"; late rows: {', '.join(node.late)}"
    return f"{found}: {shown}{late}"


def _of_step(name: str, tree: exp.Expr) -> str:
    shown = tree.sql("spark")
    return f"{name}.{shown}" if isinstance(tree, exp.Column) else f"{name}.({shown})"


def _measured(node: Sequence, measure: Measure) -> str:
    column = f"{node.steps[measure.step].name}.{measure.column or '*'}"
    return f"{measure.function}({column})" if measure.function else column


def lookup_text(node: Lookup) -> str:
    """A join with a table, which is known by its name and its columns."""
    sides = ", ".join(f"{('stream', 'table')[side]}.{column} AS {name}" for name, side, column in node.columns)
    return f"{lookup_condition(node)}: {sides}"


def lookup_condition(node: Lookup) -> str:
    """Which rows of the table are partners."""
    keys = [f"{a.sql('spark')} = {b.sql('spark')}" for a, b in node.on]
    keys += [node.where.sql("spark")] if node.where is not None else []
    if (test := node.test) is not None:
        keys.append(f"{test.name}({', '.join(test.columns)})")
    known = ", ".join(f"{name} {type_name(dtype)}" for name, dtype in node.table.columns)
    how = "" if node.how == "inner" else f"{node.how} "
    return f"{how}in table {node.table.name} ({known}) on {' and '.join(keys) or 'nothing'}"


def _near(window: Pairing, left: str, right: str, dtype: pl.DataType) -> str:
    """How near the times of a pair are."""
    if isinstance(window, Within):
        return f"{span(window.low, dtype)} <= right {right} - left {left} <= {span(window.high, dtype)}"
    assert isinstance(window, SameWindow)
    origin = f", ORIGIN {span(window.origin, dtype)}" if window.origin else ""
    return f"left {left} and right {right} in one window [TUMBLING {span(window.length, dtype)}{origin}]"


def text(node: Node) -> str:
    """The whole plan. It names everything that gives a query its meaning, so it also serves as its identity."""
    return "\n".join(lines(node))
