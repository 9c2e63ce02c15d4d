"""How a join keeps the rows of each side to begin with: sorted runs, hash table or list, by cost for each direction."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial

import polars as pl

from windrow.logical.nodes import Join, Statistics
from windrow.operators.joins.choosing import WAYS, Choosing
from windrow.operators.joins.costs import Probe, arranged, cheapest, inserted, probed
from windrow.operators.joins.window_join import WindowJoin
from windrow.planner.choice import LEAST, Given, sample_of
from windrow.planner.choose import Choice
from windrow.planner.choose.calibrated import REFERENCE, Calibration, found
from windrow.planner.choose.costs.asymmetric import Side, Weights, determinant
from windrow.planner.limited import unit_of
from windrow.planner.plan import Arm
from windrow.spec.allocation import allocate
from windrow.spec.keeping import BY_COST, KEPT, Keeping
from windrow.spec.names import PROGRESS
from windrow.windows.pairing import Pairing, Within

BATCH = 1000  # rows that come together
ROWS, KEYS = 1000.0, 100.0  # of a window of which nothing is known
NAMES = ("left", "right")


@dataclass(frozen=True)
class Streams:
    """Both sides in numbers, and ``alike``, the share of pairs with equal keys."""

    sides: tuple[Side, Side]
    alike: float
    basis: str

    def cost(self, at: int, way: Keeping, by: Calibration) -> float:
        """Microseconds for so many rows that probe the rows of a side, and for those that come there meanwhile."""
        own, other = self.sides[at], self.sides[1 - at]
        held = round(own.rows)
        probe = Probe(BATCH, held, self.alike, own.rows * self.alike)
        come = round(BATCH * own.rate / other.rate)
        return (probed(way, by.unit, probe) + inserted(way, by.unit, max(come, 1), held)) / 1000

    def sorting(self, by: Calibration) -> float:
        """Microseconds to sort as many rows, as is done with the batches of both sides if either is in runs."""
        return arranged(by.unit, BATCH) / 1000

    def cheapest(self, by: Calibration) -> tuple[Keeping, Keeping]:
        """The ways of both sides that cost least together, for as many rows as come in the same time."""
        rates = [side.rate for side in self.sides]
        costs = [{way: self.cost(at, way, by) * rates[1 - at] for way in WAYS} for at in (0, 1)]
        return cheapest(costs, self.sorting(by) * sum(rates))

    @property
    def says(self) -> str:
        rows = [f"{side.rows:,.0f} {name} rows" for side, name in zip(self.sides, NAMES, strict=True)]
        ratio = self.sides[1].rate / self.sides[0].rate
        keys = f"{100 * self.alike:.3g} % of pairs have equal keys"
        return f"{self.basis}: {' and '.join(rows)} are kept, {ratio:.3g} right rows come for each left one; {keys}"


@dataclass(frozen=True)
class Kept(Choice):
    """The way of each side. ``changing``: the join changes it when another has been cheaper for long enough. ``by``:
    the unit costs that it decides by; they are part of the plan, so that no worker reads a file.
    """

    ways: tuple[Keeping, Keeping] = ("runs", "runs")
    streams: Streams | None = None
    by: Calibration = REFERENCE
    changing: bool = False

    @property
    def lasting(self) -> bool:
        """Each way reads the state of any other."""
        return False

    def making(self, join: Callable[..., WindowJoin]) -> Callable[[], WindowJoin]:
        """Joins that keep rows so."""
        return partial(_changing, join, self) if self.changing else partial(join, keeping=self.ways)

    def lines(self) -> Iterator[str]:
        yield f"rows are kept as {self.ways[0]} on the left and {self.ways[1]} on the right: {self.reason}"
        if self.streams is None:
            return
        yield f"  {self.streams.says}"
        for at, name in enumerate(NAMES):
            costs = (f"{way} {self.streams.cost(at, way, self.by):,.0f}" for way in WAYS)
            yield f"  {name} rows, which {NAMES[1 - at]} rows probe: {', '.join(costs)} us for {BATCH:,} of these"
        yield f"  sorting {BATCH:,} rows, which runs on either side need, {self.streams.sorting(self.by):,.0f} us"
        yield f"  with buckets as in 2002, not in the order of time, and tuple by tuple: {self._of_2002()}"
        yield f"  unit costs: {self.by.says}"

    def _of_2002(self) -> str:
        """What Eq. 8 takes."""
        assert self.streams is not None
        weights = Weights(self.by.unit.scan, self.by.unit.chase)
        picks = (determinant(self.streams.sides[1 - at], self.streams.sides[at], weights) for at in (0, 1))
        return " and ".join(
            f"{'loops' if pick == 'nested' else pick} {name}" for pick, name in zip(picks, NAMES, strict=True)
        )


def _changing(join: Callable[..., WindowJoin], kept: Kept) -> WindowJoin:
    return join(keeping=kept.ways, choosing=Choosing(kept.by.unit))


def kept_rows(node: Join, arms: Sequence[Arm], given: Given) -> Kept:
    """As the query asks; else the cheapest way of each side."""
    streams, by = streams_of(node, arms, given), found()
    if node.using in KEPT:
        return Kept(node.using, "as asked for", ways=KEPT[node.using], streams=streams, by=by)
    left, right = streams.cheapest(by)
    reason = "the cheapest by the cost model, and changed while another is cheaper"
    return Kept(BY_COST, reason, ways=(left, right), streams=streams, by=by, changing=True)


# -- statistics ----------------------------------------------------------------------------------------------------
def streams_of(node: Join, arms: Sequence[Arm], given: Given) -> Streams:
    """Measured if both sides have samples, declared if all their sources are, or else assumed to be alike."""
    if node.by_rows:
        return _assumed(node)
    samples = [rows for arm in arms if (rows := sample_of(arm.inputs, given)) is not None and rows.height >= LEAST]
    return (_measured(node, samples) if len(samples) == 2 else None) or _declared(node) or _assumed(node)


def _measured(node: Join, samples: Sequence[pl.DataFrame]) -> Streams | None:
    keys = [f"@key{i}" for i in range(len(node.on))]
    rates = [rows.height / max(1, int(t.max()) - int(t.min())) for rows in samples for t in [rows[PROGRESS].to_numpy()]]
    if not keys:
        return _of(node, rates, 1.0, (1.0, 1.0), "measured")
    left, right = (rows.group_by(keys).agg(pl.len().truediv(rows.height).alias("share")) for rows in samples)
    met = left.join(right, on=keys).select((pl.col("share") * pl.col("share_right")).sum()).item()
    return _of(node, rates, float(met), (left.height, right.height), "measured")


def _declared(node: Join) -> Streams | None:
    """From what the user says of all sources."""
    known: list[tuple[float, float]] = []
    for side in node.inputs:
        said = [s for scan in side.scans if isinstance(s := scan.statistics, Statistics)]
        if not said or len(said) < len(side.scans):
            return None
        timed = isinstance(side.schema[side.progress or ""], pl.Datetime)
        rate = sum(s.rate for s in said) / (1_000_000 if timed else 1)
        known.append((max(rate, 1e-12), max(s.groups for s in said) if node.on else 1.0))
    (left, of_left), (right, of_right) = known
    return _of(node, (left, right), 1 / max(of_left, of_right), (of_left, of_right), "declared")


def _assumed(node: Join) -> Streams:
    """Streams that are alike: the longer window holds a typical number of rows."""
    rate, keys = ROWS / max(_length(node.window, at) for at in (0, 1)), KEYS if node.on else 1.0
    return _of(node, (rate, rate), 1 / keys, (keys, keys), "assumed")


def _of(node: Join, rates: Sequence[float], alike: float, keys: Sequence[float], basis: str) -> Streams:
    lengths = _length(node.window, 0), _length(node.window, 1)
    if (limits := node.limits) is not None:  # the determinant is about the rates that are left (Kang, 4.2)
        rate = None if limits.max_rate is None else limits.max_rate / unit_of(node)
        left_over = allocate((rates[0], rates[1]), lengths, rate, limits.max_state, limits.policy)
        rates = [max(each, 1e-12) for each in left_over.rates]
        lengths = left_over.windows
    left, right = (Side(rates[at], lengths[at], max(keys[at], 1.0)) for at in (0, 1))
    return Streams((left, right), alike, basis)


def _length(window: Pairing, at: int) -> float:
    """For how long a row is kept if all is in order."""
    if isinstance(window, Within):
        return float(max(-window.low if at else window.high, 0) + 1)
    return float(window.width + 1)
