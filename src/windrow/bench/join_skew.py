"""join-skew: the memory of a tumbling-window join of two unions, of which a link each is behind (Li 8-9).

The thesis's Q8-3. There each of the four links has 10,000 packets a second; here a tenth, with ``--quick`` a fiftieth.
Links are in order, and give readings of their clock, late as their packets. The thesis does not say how many pairs
there are; here a packet has one partner in its window.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from windrow.api.stream import Stream
from windrow.bench.experiment import Experiment, Outcome
from windrow.bench.flows import BACK, THERE, number_of_flows, packets_of_flows
from windrow.bench.skew import Feeds, links, measured, plot, with_clock

RATE = 10_000
WINDOW = 10  # seconds
SKEWS = (0, 20, 40, 60, 80, 100)
SECONDS = 130  # with the largest skew, three windows close while all links run
MORE = 1.2  # out of order may take so many times the memory


def run(quick: bool, say: Callable[[str, float], None]) -> Outcome:
    """Figure 8-9."""
    rate, skews = (RATE / 50, (0, 40, 100)) if quick else (RATE / 10, SKEWS)
    say("packets", 0.0)
    figures, same = measured(query, feeds(rate), ("B", "D"), skews, say)
    return Outcome(figures, claims(figures, skews, same), lambda figure: plot(figure, figures, "B and D", skews))


def feeds(rate: float, seconds: int = SECONDS) -> Feeds:
    """A and B in one direction, C and D in the other."""
    flows = number_of_flows(2 * rate, WINDOW, 1)
    sides = {name: packets_of_flows(name, rate, seconds, flows, back=name in "CD") for name in "ABCD"}
    return {name: with_clock(rows, seconds + 1) for name, rows in sides.items()}


def query(plan: str, fed: Feeds) -> Stream:
    """Q8-3."""
    given = links(fed, 0)
    m1, m2 = given["A"].union(given["B"]), given["C"].union(given["D"])
    using = "iop" if plan == "iop" else None
    pairs = m1.join(m2, left_on=THERE, right_on=BACK, tumbling=f"{WINDOW} seconds", using=using)
    return pairs.select("srcIP", "destIP", "ts")


def claims(figures: Mapping[str, float], skews: Sequence[int], same: bool) -> dict[str, bool]:
    """What the thesis sees in its figure, of ours."""
    return {
        f"out of order takes at most {MORE:g} times the memory of the plan in order, at every skew": all(
            figures[f"bytes_oop_{s}"] <= MORE * figures[f"bytes_iop_{s}"] for s in skews
        ),
        "both plans give the same results, and lose no row": same,
    }


JOIN_SKEW = Experiment(
    "join-skew", "state of a join of two unions, out of order and in order, as links fall behind", run, "Li 8-9"
)
