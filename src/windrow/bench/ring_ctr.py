"""ring-ctr: response and state of coordinated tuple routing, by nodes and copies (Wang, Rundensteiner, 8e, 8f).

In virtual time, with the ring (PSP) on the same rows beside it; up to four nodes in real processes, too.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import Any

from windrow.bench.experiment import Experiment, Outcome
from windrow.bench.ring_copies import NODES, Point, Say, agree, coming, figures_of, lines, point, ring
from windrow.bench.ring_copies_real import Run, beside, near, panel

COPIES = (2, 4, 6, 9)
SAME = 1.05  # between the most and the least, where something does not grow
SECONDS = 30.0  # a route costs a simulation far more than a row of PSP or ATR

REAL = (Run("ctr", 4), Run("psp", 4))


def run(quick: bool, say: Say) -> Outcome:
    """Both figures; ``--quick`` has two numbers of copies and of nodes, and 14 seconds of the streams; and no
    real nodes."""
    copies, nodes, seconds = ((2, 4), (4, 8), 14.0) if quick else (COPIES, NODES, SECONDS)
    come, shown = coming(seconds), {count: usable(count, nodes) for count in copies}
    figures, points = ring(nodes, come, say, 0.3)
    every = [(count, each) for count, some in shown.items() for each in some]
    for number, (count, each) in enumerate(every):
        say(f"{count} copies, {each} nodes", 0.3 + 0.7 * number / len(every))
        points.append(point("ctr", each, come, copies=count))
        figures |= figures_of(f"ctr_{count}_{each}", points[-1])
    figures |= {} if quick else beside(REAL, say)
    holds = claims(figures, points, shown, nodes) | near(figures)
    return Outcome(figures, holds, lambda f: plot(f, figures, shown, nodes))


def usable(copies: int, nodes: Sequence[int]) -> tuple[int, ...]:
    """There are twice as many nodes as copies, or more, as in the paper.

    >>> usable(6, (4, 9, 14, 19))
    (14, 19)
    """
    return tuple(each for each in nodes if each >= 2 * copies)


def claims(
    figures: Mapping[str, float], points: Sequence[Point], shown: Mapping[int, Sequence[int]], nodes: Sequence[int]
) -> dict[str, bool]:
    """What the paper sees in its figures, of ours."""
    more = [(a, b, n) for a, b in pairwise(sorted(shown)) for n in shown[b]]
    states = [[figures[f"rows_ctr_{copies}_{n}"] for n in some] for copies, some in shown.items()]
    return {
        "the response of CTR falls with the nodes": all(
            figures[f"ms_ctr_{copies}_{b}"] < figures[f"ms_ctr_{copies}_{a}"]
            for copies, some in shown.items()
            for a, b in pairwise(some)
        ),
        "with more copies, and as many nodes, the response of CTR is larger": all(
            figures[f"ms_ctr_{a}_{n}"] < figures[f"ms_ctr_{b}_{n}"] for a, b, n in more
        ),
        "with more copies, and as many nodes, the state of CTR is larger": all(
            figures[f"rows_ctr_{a}_{n}"] < figures[f"rows_ctr_{b}_{n}"] for a, b, n in more
        ),
        "the state of CTR does not grow with the nodes": all(max(some) <= SAME * min(some) for some in states),
        "no row of PSP is at two nodes": all(figures[f"copies_psp_{n}"] == 0 for n in nodes),
        "all find the same": agree(points),
    }


def plot(figure: Any, figures: Mapping[str, float], shown: Mapping[int, Sequence[int]], nodes: Sequence[int]) -> None:
    """Figures 8e and 8f."""
    series = {f"CTR, {copies} copies": (f"ctr_{copies}", some) for copies, some in shown.items()}
    panel(lines(figure, figures, {**series, "PSP": ("psp", nodes)}), figures, REAL)


RING_CTR = Experiment(
    "ring-ctr", "response and state of coordinated tuple routing, by nodes and copies", run, "Wang 8e, 8f"
)
