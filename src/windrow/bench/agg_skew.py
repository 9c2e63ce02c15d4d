"""agg-skew: the memory of a sliding count over two fast links and one almost silent, which is behind (Li 8-11).

The thesis's Q8-5 at its rates, about 4,000 packets a second of M1 and M2 and less than one of C; with ``--quick`` M1
and M2 have an eighth of that. C gives readings of its clock, late as its packets.
"""

from __future__ import annotations

from collections.abc import Callable

from windrow.bench.experiment import Experiment, Outcome
from windrow.bench.skew import BAND, Feeds, by_band, compared, feed
from windrow.sources.links import Link

QUERY = "SELECT {} count(*) [RANGE 5 minutes, SLIDE 1 minute, WA ts] FROM M1 UNION M2 UNION C"
RATE, RATE_C = 4000, 0.5  # packets a second
DELAYS = (0, 2, 4, 6, 8, 10)
SECONDS = 380  # so that a window of full length and the next are closed while all links run


def run(quick: bool, say: Callable[[str, float], None]) -> Outcome:
    """Figure 8-11."""
    rate = RATE / 8 if quick else RATE
    delays = (0, 4, 10) if quick else DELAYS
    say("packets", 0.0)

    def links(band: float) -> Feeds:
        rates = {"M1": rate, "M2": rate, "C": RATE_C}
        return {name: feed(Link(name, each, band=band), SECONDS) for name, each in rates.items()}

    outcome = compared(QUERY, links(BAND), "C", delays, say)
    say("other disorders", 0.98)
    outcome.curves = by_band(QUERY, links, "C", delays, outcome.figures["growth_oop"])
    return outcome


AGG_SKEW = Experiment(
    "agg-skew",
    "state of a sliding count over a union, out of order and in order, as a silent link falls behind",
    run,
    "Li 8-11",
)
