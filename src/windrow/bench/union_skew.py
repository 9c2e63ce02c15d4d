"""union-skew: the memory of a count over the union of two links, of which one is behind (Li 8-8).

The thesis's Q8-2. There each link has 110,000 packets a second in 65,536 groups; here a tenth of both, with ``--quick``
a fiftieth. So a window has nearly all its groups after a few seconds, as in the thesis.
"""

from __future__ import annotations

from collections.abc import Callable

from windrow.bench.experiment import Experiment, Outcome
from windrow.bench.skew import BAND, Feeds, by_band, compared, feed
from windrow.sources.links import Link

QUERY = (
    "SELECT {} srcIP, destIP, count(*) [RANGE 1 minute, SLIDE 1 minute, WA ts] FROM M1 UNION M2 GROUP BY srcIP, destIP"
)
RATE = 110_000
SIDE = 256  # addresses on each side
SKEWS = (0, 10, 20, 30, 40)
SECONDS = 200  # two windows close while both links run, also with the largest skew


def run(quick: bool, say: Callable[[str, float], None]) -> Outcome:
    """Figure 8-8."""
    scale = 50 if quick else 10
    addresses = round(SIDE / scale**0.5)
    say("packets", 0.0)

    def links(band: float) -> Feeds:
        links = [Link(name, RATE / scale, hosts=addresses, band=band) for name in ("M1", "M2")]
        return {x.name: feed(x, SECONDS, addresses) for x in links}

    outcome = compared(QUERY, links(BAND), "M2", SKEWS, say)
    say("other disorders", 0.98)
    outcome.curves = by_band(QUERY, links, "M2", SKEWS, outcome.figures["growth_oop"])
    return outcome


UNION_SKEW = Experiment(
    "union-skew", "state of a count over a union, out of order and in order, as one link falls behind", run, "Li 8-8"
)
