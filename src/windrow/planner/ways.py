"""One operator, or binary joins in which order: the choice for a multi-way join, by cost."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import islice

import numpy as np
import polars as pl
from numpy.typing import NDArray

from windrow.errors import PlanError
from windrow.logical.explain import text
from windrow.logical.multi_join import MULTI, PIPELINE
from windrow.logical.node import columns_in
from windrow.logical.nodes import MultiJoin, Statistics
from windrow.planner.choice import GOES_ON, LEAST, Given, sample_of
from windrow.planner.choose import Choice, Option, calibrated
from windrow.planner.choose.costs.multiway import KEYS, ROWS, Streams, costs, probe_orders, uniform
from windrow.planner.choose.costs.spread import MANY, Spread
from windrow.planner.multi import early, key_columns
from windrow.planner.plan import Arm
from windrow.spec.in_order import MODES
from windrow.spec.names import PROGRESS
from windrow.spec.spread import RINGS

RING = RINGS[0]
SHOWN = 4  # orders in ``explain``


@dataclass(frozen=True)
class Way(Choice):
    """How a multi-way join runs; an option is microseconds for a thousand rows of all inputs. ``probes``: the orders
    in which rows of each input probe the others at first. ``spread``: what a ring of ``nodes`` costs, where it is one.
    """

    says: str = ""
    probes: tuple[tuple[int, ...], ...] = ()
    spread: Spread | None = None
    nodes: int | None = None

    @property
    def order(self) -> tuple[int, ...]:
        """The inputs of a pipeline in the order in which they are joined; none of one operator."""
        return _order(self.name)

    def lines(self) -> Iterator[str]:
        yield f"join as {self.name}: {self.reason}"
        yield f"  {self.says}"
        if self.spread is not None:
            yield from (f"  {line}" for line in self.spread.lines(self.nodes))
        chosen = MULTI if self.name in MODES else self.name
        best = [o for o in self.options if o.name in (chosen, MULTI)]
        shown = {o.name: o for o in (*islice(self.options, SHOWN), *best)}
        for option in sorted(shown.values(), key=lambda o: o.micros):
            role = "chosen" if option.name == chosen else "possible"
            yield f"  {option.name}: {option.micros:,.1f} us for 1,000 rows; {option.refused or role}"
        if hidden := len(self.options) - len(shown):
            yield f"  and {hidden} other orders, up to {max(o.micros for o in self.options):,.1f} us"


def named(order: Sequence[int]) -> str:
    """What a way is called.

    >>> named(()), named((2, 0, 1))
    ('multi', 'pipeline 2-0-1')
    """
    return f"{PIPELINE} {'-'.join(map(str, order))}" if order else MULTI


def _order(name: str) -> tuple[int, ...]:
    if not name.startswith(PIPELINE):
        return ()
    return tuple(int(each) for each in name.removeprefix(f"{PIPELINE} ").split("-"))


def way_of(node: MultiJoin, arms: Sequence[Arm], given: Given) -> Way:
    """The cheapest way; a query that is restarted goes on as it began."""
    if not given.spread and (node.nodes or 1) > 1:
        raise PlanError(
            f"nodes={node.nodes} needs a task for each node that runs at the same time as the others, and a session on "
            "Spark has none: run the join as a query of its own, with to_spark(), or leave nodes= out"
        )
    streams = streams_of(node, arms, given)
    rows = sum(streams.rates)
    found = [(order, cost) for order, cost in costs(streams).items()]
    refused = {order: _refused(node, order) for order, _ in found}
    options = [Option(named(order), cost / rows * 1000, 0.0, refused[order]) for order, cost in found]
    options, spread = _with_ring(node, options, streams, rows, given)
    options.sort(key=lambda o: (bool(o.refused), o.micros))
    way = partial(Way, options=tuple(options), says=streams.says, probes=probe_orders(streams))
    if RING in (node.using, options[0].name):
        way = partial(way, spread=spread, nodes=node.nodes)
    if node.using in MODES:
        return way(node.using, "as asked for, in order")
    if (kept := given.kept.get(text(node))) is not None:
        if sorted(_order(kept)) not in ([], list(range(len(node.members)))):
            raise PlanError(f"the checkpoint has joined the streams as {kept!r}, which is no order of these")
        return way(kept, GOES_ON)
    reason = "the cheapest by the cost model"
    if node.using in RINGS:
        return way(node.using, "as asked for")
    if node.by_rows:
        return way(RING, "only a join that is spread over nodes holds the last rows of a stream")
    if node.using is not None:
        reason = "as asked for" if node.using == MULTI else "as asked for, in the cheapest order by the cost model"
    return way(options[0].name, reason)


def _with_ring(
    node: MultiJoin, options: Sequence[Option], streams: Streams, rows: float, given: Given
) -> tuple[list[Option], Spread]:
    """What functions cost in each way; a ring is worth a look where there are some, and tasks to share the work."""
    of = {name: member for name, member, _ in node.columns}
    functions = tuple(frozenset(of[name] for name in test.columns) for test in node.tests)
    spread = Spread(streams, functions, bool(node.keys), calibrated.found().ring, node.ranges.by_rows)
    parts = MANY if given.exchanged and node.keys else 1
    called = spread.called_at_end() / rows * 1000 / parts if node.tests else 0.0
    found = [replace(option, micros=option.micros + called) for option in options]
    if node.using == RING or node.by_rows or (node.tests and (given.exchanged or len(node.tests) > 1) and given.spread):
        micros = spread.ring(node.nodes or (MANY if given.exchanged else 1)) / rows * 1000
        found.append(Option(RING, micros, 0.0, "" if node.using in (None, RING) else f"{node.using} is asked for"))
    return found, spread


def _refused(node: MultiJoin, order: Sequence[int]) -> str:
    way = PIPELINE if order else MULTI
    if node.using in MODES:
        return f"{node.using} is asked for: one operator in order, or name binary joins that are" if order else ""
    if node.by_rows:
        return "it holds rows for a time"
    return "" if node.using in (None, way) else f"{node.using} is asked for"


# -- statistics ----------------------------------------------------------------------------------------------------
def streams_of(node: MultiJoin, arms: Sequence[Arm], given: Given) -> Streams:
    """The inputs in numbers: measured if all have samples, declared if all are, or else assumed to be alike."""
    of = {name: member for name, member, _ in node.columns}
    tests = tuple(frozenset(of[name] for name in columns_in([each])) for each in early(node)[0])
    lengths = node.ranges.lengths
    samples = [sample_of(arm.inputs, given) for arm in arms]
    if all(rows is not None and rows.height >= LEAST for rows in samples):
        known = _measured(node, [rows for rows in samples if rows is not None])
    else:
        known = _declared(node) or _assumed(node)
    return replace(known, lengths=lengths, tests=tests, exchanged=given.exchanged)


def _measured(node: MultiJoin, samples: Sequence[pl.DataFrame]) -> Streams:
    rates = []
    for rows in samples:
        times = rows[PROGRESS].to_numpy()
        rates.append(rows.height / max(1, int(times.max()) - int(times.min())))
    return Streams(tuple(rates), (), _shares(samples, key_columns(node)), "measured")


def _shares(samples: Sequence[pl.DataFrame], keys: Sequence[str]) -> NDArray[np.float64]:
    """Of each sample the share of its rows with each key."""
    if not keys:
        return np.ones((len(samples), 1))
    counted = [
        rows.group_by(keys).agg(pl.len().truediv(rows.height).alias(f"@{number}"))
        for number, rows in enumerate(samples)
    ]
    found = counted[0]
    for each in counted[1:]:
        found = found.join(each, on=list(keys), how="full", coalesce=True)
    return found.select(pl.exclude(*keys).fill_null(0.0)).to_numpy().T


def _declared(node: MultiJoin) -> Streams | None:
    """From what the user says of all sources."""
    known: list[tuple[float, float]] = []
    for member in node.members:
        statistics = [scan.statistics for scan in member.scans]
        if not statistics or any(each is None for each in statistics):
            return None
        said = [each for each in statistics if isinstance(each, Statistics)]
        timed = isinstance(member.schema[member.progress or ""], pl.Datetime)
        known.append((sum(s.rate for s in said) / (1_000_000 if timed else 1), max(s.groups for s in said)))
    keys = [groups for _, groups in known] if node.keys else [1.0 for _ in known]
    return Streams(tuple(max(rate, 1e-12) for rate, _ in known), (), uniform(keys), "declared")


def _assumed(node: MultiJoin) -> Streams:
    """Streams that are alike: the longest range holds a typical number of rows."""
    count = len(node.members)
    rate = ROWS / max(node.ranges.lengths)
    return Streams((rate,) * count, (), uniform([KEYS if node.keys else 1.0] * count), "assumed")
