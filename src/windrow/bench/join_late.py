"""join-late: the memory of a tumbling-window join in which one side has late tuples (Li 8-10).

The thesis's Q8-4 at its rates, about 4,000 packets a second of M1 and M2 and less than one of C, which is late; with
``--quick`` M1 and M2 have an eighth of that. Links are in order, and give readings of their clock, late as their
packets. The thesis does not say how many pairs there are; here a packet of M1 has one partner in its window.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from windrow.api.stream import Stream
from windrow.bench.experiment import Experiment, Outcome
from windrow.bench.flows import BACK, THERE, number_of_flows, packets_of_flows
from windrow.bench.skew import PLANS, Feeds, links, measured, plot, with_clock

RATE, RATE_C = 4000, 0.5  # packets a second
WINDOW = 60  # seconds
DELAYS = (0, 2, 4, 6, 8, 10)
SECONDS = 200  # three windows close while all links run


def run(quick: bool, say: Callable[[str, float], None]) -> Outcome:
    """Figure 8-10."""
    rate, delays = (RATE / 8, (0, 4, 10)) if quick else (RATE, DELAYS)
    say("packets", 0.0)
    figures, same = measured(query, feeds(rate), ("C",), delays, say)
    for plan in PLANS:
        first, last = figures[f"bytes_{plan}_{delays[0]}"], figures[f"bytes_{plan}_{delays[-1]}"]
        figures[f"growth_{plan}"] = round(last / first, 3)
    return Outcome(figures, claims(figures, delays, same), lambda figure: plot(figure, figures, "C", delays))


def feeds(rate: float, seconds: int = SECONDS) -> Feeds:
    """M1 in one direction, M2 and C in the other."""
    flows = number_of_flows(rate, WINDOW, 1)
    rates = {"M1": rate, "M2": rate, "C": RATE_C}
    sides = {name: packets_of_flows(name, r, seconds, flows, back=name != "M1") for name, r in rates.items()}
    return {name: with_clock(rows, seconds + 1) for name, rows in sides.items()}


def query(plan: str, fed: Feeds) -> Stream:
    """Q8-4."""
    given = links(fed, 0)
    using = "iop" if plan == "iop" else None
    m3 = given["M2"].union(given["C"])
    pairs = given["M1"].join(m3, left_on=THERE, right_on=BACK, tumbling=f"{WINDOW} seconds", using=using)
    return pairs.select("srcIP", "destIP", "ts")


def claims(figures: Mapping[str, float], delays: Sequence[int], same: bool) -> dict[str, bool]:
    """What the thesis sees in its figure, of ours."""
    oop, iop = ([figures[f"bytes_{plan}_{d}"] for d in delays] for plan in ("oop", "iop"))
    return {
        "out of order the memory grows more slowly with the delay than in order": oop[-1] - oop[0] < iop[-1] - iop[0],
        "out of order takes less memory than in order, at every delay above 0": all(
            a < b for a, b in zip(oop[1:], iop[1:], strict=True)
        ),
        "both plans give the same results, and lose no row": same,
    }


JOIN_LATE = Experiment(
    "join-late", "state of a join, out of order and in order, as tuples of one side are late", run, "Li 8-10"
)
