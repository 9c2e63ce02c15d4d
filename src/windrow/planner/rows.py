"""Steps on rows: from a source to the next state, and the stages that keep rows rather than windows."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial

import polars as pl
from sqlglot import exp

from windrow.logical.explain import asked_text, promises_text
from windrow.logical.expressions import dtype_of, translate
from windrow.logical.nodes import Apply, Distinct, Filter, Node, Ordered, Progress, Project, Scan, Split, Top
from windrow.operators import (
    Admit,
    Asking,
    Decode,
    DupElim,
    Everyone,
    Generate,
    Judge,
    Merge,
    Operator,
    Punctuate,
    Retime,
    Retract,
    Select,
    Shift,
    Unique,
    Witness,
)
from windrow.operators import Apply as ApplyOperator
from windrow.operators import Project as ProjectOperator
from windrow.operators import Split as SplitOperator
from windrow.operators import Top as TopOperator
from windrow.operators.progress.admit import Unmarked
from windrow.operators.state.late import late_schema
from windrow.planner.partition import ByKeys
from windrow.planner.plan import MELD, Arm, Meeting, Pipeline, Read, Stage, Step
from windrow.spec.names import BRANCH, PROGRESS, SOURCE, WINDOW_END
from windrow.spec.rules import Asked
from windrow.spec.time import parsed


def columns(names: Sequence[str]) -> Step:
    """Only these columns, in this order."""
    chosen = partial(ProjectOperator, [pl.col(n) for n in names])
    return Step("columns", chosen, f"columns {', '.join(names)}", renames={n: n for n in names})


def selection(node: Filter) -> Step:
    """WHERE and HAVING."""
    predicate = translate(node.predicate, node.input.schema)
    if node.input.versioned:
        return Step("retract", partial(Retract, predicate), f"retract rows unless {node.predicate.sql('spark')}")
    return Step("select", partial(Select, predicate), f"keep rows where {node.predicate.sql('spark')}")


def about_everyone(node: Node, pipelines: Sequence[Pipeline]) -> list[Pipeline]:
    """Where promises about single groups close nothing, they end. Those that markers make are counted as ignored."""
    by = node.promised_by
    if not by:
        return list(pipelines)
    says = f"promises about single {', '.join(by)} close nothing here: the groups are not by them"
    return [p.then(Step("everyone", partial(Everyone, _has_markers(p)), says)) for p in pipelines]


def _has_markers(pipeline: Pipeline) -> bool:
    source = pipeline.source
    if isinstance(source, Read):
        return bool(source.scan.source.marker_by)
    return any(_has_markers(p) for p in source.inputs)


def reading(scan: Scan, attribute: str | None, by_rows: bool, needs: tuple[str, ...]) -> Read:
    """A source as its consumers want it: progressing on one of its attributes, or by row numbers."""
    source = scan.source
    if attribute in (None, source.attribute) or by_rows:
        return Read(scan, scan.progress, (*_decoded(scan), *admission(scan, by_rows, needs)), by_rows)
    assert attribute is not None
    slack = dict(source.also)[attribute]
    other = Progress(attribute, slack, row_num=source.row_num, row_slack=source.row_slack)
    steps = admission(replace(scan, source=other), by_rows, (*needs, scan.progress))
    return Read(scan, attribute, (*_decoded(scan), *_unmarked(source), *steps[:1], *_parsed(scan), *steps[1:]))


def _decoded(scan: Scan) -> tuple[Step, ...]:
    """The rows inside messages, where these are what a source gives."""
    messages = scan.source.messages
    return () if messages is None else (Step("decode", partial(Decode, messages), messages.says()),)


def admission(scan: Scan, by_rows: bool, needs: tuple[str, ...]) -> tuple[Step, ...]:
    """From what a source gives to rows and promises."""
    source = scan.source
    if by_rows:
        number = source.row_num[-1]
        named = f"row number {number}"
        admit = partial(Admit, number, scan.schema[number], None, None, source.row_num[:-1], called=named)
        first = Step("admit", admit, f"rows without a number in {' and '.join(source.row_num)} to the side output")
        sourced = len(source.row_num) > 1
        steps = [*_unmarked(source), first, *_parsed(scan)]
        if sourced:
            tag = [pl.all(), pl.col(source.row_num[0]).alias(SOURCE)]
            steps.append(Step("partition", partial(ProjectOperator, tag), f"promises by {source.row_num[0]}"))
        punctuate = partial(Punctuate, source.row_slack, True, sourced)
        return *steps, Step(
            "punctuate", punctuate, f"promise what is more than {source.row_slack} before max({number})"
        )
    dtype = scan.schema[scan.progress]
    about = tuple(scan.schema[c] for c in source.marker_by)
    markers = source.marker_by, source.skew, source.ahead, about
    admit = partial(Admit, scan.progress, dtype, source.parse, source.marker, needs, *markers)
    first = Step("admit", admit, f"rows without a readable {scan.progress} to the side output")
    rule = asking(scan) or source.rule
    if source.rule is not None and rule is not None:
        halves = partial(Witness, rule), partial(Judge, rule)
        return first, Step("generate", partial(Generate, rule), promises_text(scan), halves)
    says = f"promise max({scan.progress}) - slack" if source.slack is not None else "notes how far the stream comes"
    if rule is None:
        return first, Step("punctuate", partial(Punctuate, source.slack), says)
    both = partial(Punctuate, source.slack), partial(Judge, rule)
    return first, Step("punctuate", partial(Asking, source.slack, rule), f"{says}; {asked_text(scan)}", both)


def asking(scan: Scan) -> Asked | None:
    """The rule of a source that can be asked how far it has come."""
    source = scan.source
    if source.delay is None and source.idle_after is None:
        return None
    return Asked(source.rule, source.delay, source.idle_after, scan.schema[scan.progress] == pl.Date)


def _unmarked(source: Progress) -> tuple[Step, ...]:
    """Promises on another attribute mean nothing here."""
    marker = source.marker
    return () if marker is None else (Step("unmarked", partial(Unmarked, marker), "without markers"),)


def _parsed(scan: Scan) -> tuple[Step, ...]:
    """A progress value that is text: it is not what rows progress on here, but the query can ask for it."""
    if scan.source.parse is None:
        return ()
    read = parsed(pl.col(scan.progress), scan.source.parse).alias(scan.progress)
    tried = partial(ProjectOperator, [pl.exclude(scan.progress), read])
    return (Step("parse", tried, f"{scan.progress} as a timestamp, or NULL"),)


def projection(node: Project, by_rows: bool = False) -> tuple[Step, ...]:
    """SELECT without aggregates. Where rows progress on an expression from here on, so do promises."""
    given = node.input.schema
    computed = [translate(e, given).alias(n) for n, e in node.columns]
    says = ", ".join(f"{e.sql('spark')} AS {n}" for n, e in node.columns)
    if by_rows or node.progress is not None:
        computed.append(pl.col(PROGRESS))
    kept = {n: e.name for n, e in node.columns if isinstance(e, exp.Column)}
    step = Step("project", partial(ProjectOperator, computed), f"compute {says}", renames=kept)
    if not by_rows and node.on is not None:
        return *_moved(node.input.times[node.on].lead, node.on), step
    if by_rows or (tree := node.retimes) is None:
        return (step,)
    before = node.input.progress
    assert before is not None
    make = partial(Retime, before, given[before], translate(tree, given), dtype_of(tree, given))
    return *_moved(node.input.lead, before), Step("retime", make, f"progress on {tree.sql('spark')}"), step


def _moved(lead: int, column: str | None) -> tuple[Step, ...]:
    """What makes progress values the values of a progressing column, where they are not."""
    return (Step("shift", partial(Shift, lead), f"progress on the value of {column}"),) if lead else ()


def application(node: Apply, by_rows: bool = False) -> tuple[Step, ...]:
    """A Python function."""
    function = node.function
    moved = node.moves and not by_rows
    make = partial(ApplyOperator, node.column, function, node.input.schema[node.column] if moved else None)
    says = f"{node.column} by {function.name}({', '.join(function.columns)})"
    step = Step("apply", make, says, computes=(node.column,))
    return (*_moved(node.input.lead, node.column), step) if moved else (step,)


def splitting(node: Split, by_rows: bool = False) -> Step:
    """Two branches for rows; on Spark both are on the map side, so that the source is read once."""
    branches = [_branch(node.yes, by_rows), _branch(node.no, by_rows)]
    predicate = translate(node.predicate, node.input.schema)
    says = [" and ".join(step.says for step in branch) or "as they are" for branch in branches]
    return Step(
        "split",
        partial(_split, predicate, *(tuple(step.make for step in branch) for branch in branches)),
        f"rows where {node.predicate.sql('spark')}: {says[0]}; the others: {says[1]}",
        renames={},
    )


def _split(predicate: pl.Expr, yes: Sequence[Callable[[], Operator]], no: Sequence[Callable[[], Operator]]) -> Operator:
    return SplitOperator(predicate, [make() for make in yes], [make() for make in no])


def _branch(node: Node, by_rows: bool) -> list[Step]:
    match node:
        case Filter():
            return [*_branch(node.input, by_rows), selection(node)]
        case Project():
            return [*_branch(node.input, by_rows), *projection(node, by_rows)]
        case Apply():
            return [*_branch(node.input, by_rows), *application(node, by_rows)]
        case Split():
            return [*_branch(node.input, by_rows), splitting(node, by_rows)]
        case _:
            assert isinstance(node, Scan)
            assert node.name == BRANCH
            return []


def distinct_stage(number: int, node: Distinct, before_it: Sequence[Pipeline], meeting: Meeting = MELD) -> Stage:
    """Rows that could be equal meet in the same shard; each map task sends a row once."""
    names = tuple(node.schema)
    known = [*names, PROGRESS]
    kept = Step("columns", partial(ProjectOperator, [pl.col(n) for n in known]), "what makes a row")
    once = Step("unique", partial(Unique, known), "each row of a batch once")
    inputs = tuple(p.then(kept, once) for p in before_it)
    step = Step("dupelim", partial(DupElim, known), "rows not seen yet; forgets what the promise has passed")
    arm = Arm(inputs, ByKeys(names), meeting)
    return Stage(number, node, (arm,), (step,), "dupelim", _late(node), spread=names)


def ordered_stage(number: int, node: Ordered, before_it: Sequence[Pipeline], cost: str) -> Stage:
    """One order needs one place: a single shard."""
    given = node.input.schema
    names = [f"@order{i}" for i in range(len(node.order))]
    by = [translate(e, given).alias(n) for n, (e, _) in zip(names, node.order, strict=True)]
    kept = [pl.col(n) for n in given] + [pl.col(PROGRESS), *by]
    before = Step("order", partial(ProjectOperator, kept), "what the order is by")
    after = Step("columns", partial(ProjectOperator, [pl.exclude(names)]), "without it")
    inputs = tuple(p.then(before) for p in before_it)
    arm = Arm(inputs, meeting=merging(names, [down for _, down in node.order], cost=cost))
    return Stage(number, node, (arm,), (after,) if names else (), "merge", _late(node))


def merging(order: Sequence[str] = (), descending: Sequence[bool] = (), late: str = "drop", cost: str = "") -> Meeting:
    """Inputs that meet in order."""
    make = partial(Merge, order=tuple(order), descending=tuple(descending), late=late)
    return Meeting("merge", make, "rows in order, each held until every input has promised past it", cost)


def _late(node: Distinct | Ordered) -> tuple[tuple[str, pl.DataType], ...]:
    assert node.progress is not None
    return tuple(late_schema(dict(node.schema), node.schema[node.progress]).items())


def top_stage(number: int, node: Top, before_it: Sequence[Pipeline]) -> Stage:
    """ORDER BY and LIMIT inside a window."""
    given = node.input.schema
    names = [f"@order{i}" for i in range(len(node.order))]
    by = [translate(e, given).alias(n) for n, (e, _) in zip(names, node.order, strict=True)]
    before = Step("order", partial(ProjectOperator, [pl.all(), *by]), "what the order is by")
    top = partial(TopOperator, names, [down for _, down in node.order], node.limit)
    after = Step("columns", partial(ProjectOperator, [pl.exclude(names)]), "without it")
    inputs = tuple(p.then(before) for p in before_it)
    steps = (Step("top", top, f"the first {node.limit} rows of each window"), after)
    return Stage(number, node, (Arm(inputs, ByKeys((WINDOW_END,))),), steps, "top", spread=(WINDOW_END,))
