"""Joins whose results come in order: which of them an ORDER BY makes one, how it goes, and how long its rows wait."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import partial

import polars as pl

from windrow.logical.checked_order import timeless
from windrow.logical.nodes import Apply, Filter, Join, Lookup, MultiJoin, Node, Project, Split
from windrow.operators import InOrderJoin, Operator, WindowJoin
from windrow.operators import MultiJoin as MultiJoinOperator
from windrow.operators.joins.opib_join import refused
from windrow.operators.joins.window_join import NAMES, Kind, On
from windrow.planner.choose import Choice, Option
from windrow.planner.choose.calibrated import found
from windrow.planner.choose.costs.in_order import Streams, filter_order, filters, keeps_up, sync_filter
from windrow.planner.choose.flow import UNTIL_THE_END, Flow, weakest
from windrow.planner.choose.flows import Flows
from windrow.planner.choose.results import pairs_of
from windrow.planner.plan import Stage
from windrow.spec.in_order import ALPHA, MODES, Mode
from windrow.windows.pairing import Side

SIDES: tuple[Side, Side] = (0, 1)
DAY = 86_400_000_000_000  # in nanoseconds


def join_below(node: Node) -> Join | None:
    """The join whose results these rows are, with nothing but steps on single rows between."""
    while isinstance(node, (Filter, Project, Apply, Lookup, Split)):
        node = node.input
    return node if isinstance(node, Join) else None


def in_order(node: Join, time: str) -> Join:
    """A join for an ORDER BY this time, if it can have that order itself; else its results are only sorted."""
    if (
        node.using is not None
        or node.limits is not None
        or node.by_rows
        or refused(Kind.of(node.how), time) is not None
    ):
        return node
    return replace(node, using="sync-filter" if timeless(node) else "adaptive")


def making(node: Join | MultiJoin) -> Callable[[WindowJoin | MultiJoinOperator], Operator]:
    """What makes an ordered join of a window join, or of a multi-way join."""
    return partial(InOrderJoin, mode=_mode(node), alpha=_alpha(node), cost=cost_of(node) or 0.0)


def cost_of(node: Join | MultiJoin) -> float | None:
    """c, the time to compare two rows, in the smallest unit of progress; None if that is not known."""
    if node.cost is not None:
        return node.cost
    if timeless(node):
        return None
    dtype = node.inputs[0].schema[node.inputs[0].progress or ""]
    return found().unit.scan / (1000 if isinstance(dtype, pl.Datetime) else DAY)


def _mode(node: Join | MultiJoin) -> Mode:
    return next(mode for mode in MODES if mode == node.using)


def _alpha(node: Join | MultiJoin) -> float:
    return ALPHA if node.alpha is None else node.alpha


# -- explain -----------------------------------------------------------------------------------------------------------
@dataclass(frozen=True)
class InOrder(Choice):
    """How a join in order goes; of an option ``micros`` is the mean response in units of progress."""

    says: str = ""
    shown: tuple[str, ...] = ()

    def lines(self) -> Iterator[str]:
        """For ``explain``."""
        yield f"join in order as {self.name}: {self.reason}"
        yield f"  {self.says}"
        yield from (f"  {line}" for line in self.shown)


def with_choice(stage: Stage, asked: Join, time: On, samples: Mapping[str, pl.DataFrame]) -> Stage:
    """The stage of a join in this order, and what the ways cost; ``asked``: the join as the query has it."""
    node = stage.node
    assert isinstance(node, Join)
    if node.using not in MODES:
        return stage
    streams, says, options = estimates(stage, time, Flows(samples).into(stage))
    runs = node.using
    if runs == "adaptive":
        runs = "filter-order" if filters(streams, _alpha(node)) else "sync-filter"
    shown = tuple(_shown(node, options, runs))
    return replace(stage, choice=InOrder(node.using, _reason(node, asked), options, None, says, shown))


def _reason(node: Join, asked: Join) -> str:
    if asked.using is not None:
        return "as asked for"
    if node.using == "sync-filter":
        return (
            "ORDER BY its time; it has the least state, and whether filtering first is faster is not known, as a unit "
            f"of {node.left.progress} is no time"
        )
    return "ORDER BY its time; it is the better of the two at the rates that it sees"


def estimates(stage: Stage, time: On, flows: list[Flow]) -> tuple[Streams, str, tuple[Option, ...]]:
    """The mean response by Eqs. 3 and 5 for both ways, and what waits for so long (Little's law): rows, or pairs.

    Promises are behind rows, and in the order of one side's time a row waits for its last partner: that comes on top.
    """
    node = stage.node
    assert isinstance(node, Join)
    slow, fast = sorted(flows, key=lambda flow: flow.rate)
    cost, window = cost_of(node), (node.window.width + 1) / 2
    streams = Streams(slow.rate, fast.rate, window, cost or 0.0)
    behind = max(flow.wait for flow in flows)
    if time in NAMES:
        behind += max(0, int(node.window.partners(SIDES[NAMES.index(time)], 0)[1]))
    says = _streams_text(node, streams, cost, f"({weakest(f.basis for f in flows)})")
    if behind == UNTIL_THE_END or not slow.rate:
        return streams, f"{says}; nothing is promised before the end", ()
    pairs = pairs_of(stage, flows)
    found = filter_order(streams) + behind
    options = [Option("filter-order", found, found * pairs * slow.width)]
    if cost is not None:
        waiting = sync_filter(streams) + behind
        options.insert(0, Option("sync-filter", waiting, waiting * (slow.rate + fast.rate) * slow.width))
    return streams, says, tuple(options)


def _streams_text(node: Join, streams: Streams, cost: float | None, basis: str) -> str:
    dtype = node.left.schema[node.left.progress or ""]
    timed = isinstance(dtype, pl.Datetime)
    per, unit = (1_000_000, "a second") if timed else (1, "a day" if dtype == pl.Date else "for each unit of progress")
    rates = f"{streams.slow * per:,.6g} and {streams.fast * per:,.6g} rows {unit} {basis}"
    window = f"|w| = {streams.window / per:,.6g} {'seconds' if timed else 'days' if dtype == pl.Date else 'units'}"
    if cost is None:
        return f"{rates}, {window}; c is not known in units of {node.left.progress}"
    shown = f"{cost * 1000:,.4g} ns" if timed else f"{cost:.3g}{' days' if dtype == pl.Date else ''}"
    busy = f"c|w|l1 l2 = {streams.share:.3g}, {_against(streams, _alpha(node))}"
    return f"{rates}, {window}, c = {shown}: {busy}"


def _against(streams: Streams, alpha: float) -> str:
    if not keeps_up(streams):
        return "more than it can do"
    return f"{'at least' if filters(streams, alpha) else 'less than'} alpha = {alpha:g}"


def _shown(node: Join, options: tuple[Option, ...], runs: str) -> Iterator[str]:
    dtype = node.left.schema[node.left.progress or ""]
    for option in options:
        response = f"{option.micros / 1000:,.3f} ms" if isinstance(dtype, pl.Datetime) else f"{option.micros:,.3g}"
        role = "at these rates" if option.name == runs else "possible"
        yield f"{option.name}: mean response {response}, {option.bytes / 1024:,.1f} KiB wait; {role}"
