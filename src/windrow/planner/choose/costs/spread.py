"""What users' functions cost in a join of several streams, on one machine and spread over the nodes of a ring."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from windrow.operators.ring.costs import (
    Objective,
    Unit,
    bandwidth,
    best,
    best_orders,
    latency,
    lengths,
    output_rate,
    with_join_time,
)
from windrow.operators.ring.costs import Streams as Rates
from windrow.operators.ring.which_order import cheapest_order
from windrow.planner.choose.costs.multiway import PAIR, TESTED, Streams

CALL = 1e-3  # seconds that a function takes of which nothing is known
MANY = 2  # nodes where their number is not known yet
SHOWN = (1, 2, 4, 8, 16)
LONGEST = 64  # nodes that are looked at


@dataclass(frozen=True)
class Spread:
    """``functions``: the inputs that each function is about. ``by_rows``: of which inputs the last rows are held."""

    streams: Streams
    functions: tuple[frozenset[int], ...]
    keyed: bool
    unit: Unit = field(default_factory=Unit)
    by_rows: tuple[bool, ...] = ()

    @property
    def held(self) -> list[float]:
        """Rows of each input in its window."""
        counted = self.by_rows or (False,) * len(self.streams.rates)
        each = zip(counted, self.streams.rates, self.streams.lengths, strict=True)
        return [length if rows else rate * length for rows, rate, length in each]

    def called_at_end(self) -> float:
        """Microseconds per unit of progress, if functions are called for whole combinations."""
        calls = self.streams.results(range(len(self.streams.rates)))
        shares = [TESTED**n for n in range(len(self.functions))]
        return sum(calls * share for share in shares) * CALL * 1e6

    def ring(self, nodes: int) -> float:
        """The same of a ring, where each is called as soon as its rows are there, for all that a ring does."""
        found = 0.0
        for number, rate in enumerate(self.streams.rates):
            found += rate * (self._row(number) / nodes + self.unit.send * nodes)
        return found * 1e6

    def _row(self, number: int) -> float:
        """The seconds that a row of an input takes on all nodes together, in the best order."""
        numbers = range(len(self.streams.rates))
        pair = PAIR * 1e-6
        asked = [*self.streams.tests, *self.functions]
        tests = [(TESTED, pair)] * len(self.streams.tests) + [(TESTED, CALL)] * len(self.functions)
        if self.keyed:
            equal = [(frozenset((number, n)), self.streams.equal((number, n))) for n in numbers if n != number]
            asked, tests = [*(of for of, _ in equal), *asked], [*((share, pair) for _, share in equal), *tests]
        order = cheapest_order(self.held, asked, tests, number)
        return best_orders(self.held, asked, tests, number, [order])[0][0]

    @property
    def rates(self) -> Rates:
        """The inputs as the model of the paper has them: the rows of each window, with one share of pairs for all."""
        share, count = TESTED ** (len(self.functions) + len(self.streams.tests)), len(self.streams.rates)
        return Rates(tuple(max(1.0, h) for h in self.held), (1.0,) * count, (share ** (1 / (count - 1)),) * count)

    def initial(self, nodes: int, asked: bool, objective: Objective) -> tuple[int, ...]:
        """How many of the nodes share the state of each input at first; empty if nothing is known of the inputs.

        ``asked``: as many as there are have to hold some.
        """
        if self.streams.basis == "assumed":
            return ()
        found = lengths(self.rates, with_join_time(self.unit, CALL), nodes, objective)
        return tuple(nodes if asked and each == max(found) else each for each in found)

    def lines(self, nodes: int | None) -> Iterator[str]:
        """For ``explain``: the model of the paper, by the number of nodes."""
        rates, unit = self.rates, with_join_time(self.unit, CALL)
        most = best(rates, unit, LONGEST)
        shown = sorted({*SHOWN, most, *([nodes] if nodes else [])})
        yield (
            f"ring by its model, for {CALL * 1000:g} ms a call, {unit.send * 1e6:,.3g} us to send and receive "
            f"a row, and {unit.hop * 1e6:,.3g} us for a hop; while it runs, what is measured decides:"
        )
        for number in shown:
            each = ", ".join(map(str, lengths(rates, unit, number)))
            chosen = "; asked for" if number == nodes else "; least latency" if number == most else ""
            yield (
                f"  {number} node{'s' * (number > 1)} ({each} by input): "
                f"latency {latency(rates, unit, number):,.3g} s, "
                f"output {output_rate(rates, unit, number):.3g} times that of one, "
                f"network {bandwidth(rates, unit, number, 1000) / 1e6:,.3g} MB/s for rows of 1 KB{chosen}"
            )
