"""ring-atr: response and state of aligned tuple routing, by nodes and length of segments (Wang, Rundensteiner, 8c, 8d).

In virtual time, with the ring (PSP) on the same rows beside it; up to four nodes in real processes, too.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from windrow.bench.experiment import Experiment, Outcome
from windrow.bench.ring_copies import NODES, Point, Say, agree, coming, figures_of, lines, point, ring
from windrow.bench.ring_copies_real import Run, beside, near, panel

SEGMENTS = (10, 20, 30, 40, 50)  # seconds
IMPROVES = 0.9  # of the response with the fewest nodes: what is more than this is no improvement
SECONDS = 80.0  # several segments, whatever their length

REAL = (Run("atr", 2), Run("atr", 4), Run("psp", 2), Run("psp", 4))


def run(quick: bool, say: Say) -> Outcome:
    """Both figures; ``--quick`` has two lengths, two numbers of nodes, and 24 seconds of the streams; and no
    real nodes."""
    segments, nodes, seconds = ((10, 50), NODES[:2], 24.0) if quick else (SEGMENTS, NODES, SECONDS)
    come = coming(seconds)
    figures, points = ring(nodes, come, say, 0.5)
    for i, segment in enumerate(segments):
        for j, count in enumerate(nodes):
            say(
                f"segments of {segment} s, {count} nodes", 0.5 + 0.5 * (i * len(nodes) + j) / len(segments) / len(nodes)
            )
            each = point("atr", count, come, segment=segment)
            points.append(each)
            figures |= figures_of(f"atr_{segment}_{count}", each)
    figures |= {} if quick else beside(REAL, say)
    holds = claims(figures, points, segments, nodes) | near(figures)
    return Outcome(figures, holds, lambda f: plot(f, figures, segments, nodes))


def claims(
    figures: Mapping[str, float], points: Sequence[Point], segments: Sequence[int], nodes: Sequence[int]
) -> dict[str, bool]:
    """What the paper sees in its figures, of ours."""
    first, last = nodes[0], nodes[-1]
    return {
        "the response of ATR does not improve with the nodes": all(
            figures[f"ms_atr_{s}_{last}"] >= IMPROVES * figures[f"ms_atr_{s}_{first}"] for s in segments
        ),
        "ATR has copies of rows, whatever the length of segments and however many nodes": all(
            figures[f"copies_atr_{s}_{n}"] > 0 for s in segments for n in nodes
        ),
        "the state of ATR is larger than that of PSP": all(
            figures[f"rows_atr_{s}_{n}"] > figures[f"rows_psp_{n}"] for s in segments for n in nodes
        ),
        "no row of PSP is at two nodes": all(figures[f"copies_psp_{n}"] == 0 for n in nodes),
        "all find the same": agree(points),
    }


def plot(figure: Any, figures: Mapping[str, float], segments: Sequence[int], nodes: Sequence[int]) -> None:
    """Figures 8c and 8d."""
    series = {f"ATR, segments of {s} s": (f"atr_{s}", nodes) for s in segments}
    panel(lines(figure, figures, {**series, "PSP": ("psp", nodes)}), figures, REAL)


RING_ATR = Experiment(
    "ring-atr", "response and state of aligned tuple routing, by nodes and segments", run, "Wang 8c, 8d"
)
