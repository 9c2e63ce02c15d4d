"""wid-vs-buffering: eager against lazy aggregation as windows overlap more (Li 6-10).

The thesis's query: max over windows of 4000 rows, SLIDE from 4000 rows to 1, over an ordered stream. Both operators
take the same batches, each followed by its promise, so that both close windows equally often and neither waits.

The thesis updates tuple by tuple. Here WID reduces a batch to one partial per window and merges that into its state,
which an engine that works by the batch can do with rows that it looks at as they come; lazy aggregation looks at every
row once for each of its windows. The claims are about batches of RANGE rows: in one call as much comes as a window
holds. The figures of a quarter of that are given, too: there the fixed cost of a call, of which WID makes more than
a buffer that only appends, outweighs the work on 1000 rows where windows hardly overlap.
Time is CPU time, the least of some runs; the scan alone is shown, as in Figure 6-10 (b).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import polars as pl

from windrow.aggregates import Partials, make
from windrow.bench.drive import Step, drive
from windrow.bench.experiment import Experiment, Outcome, afterwards
from windrow.operators import Bucket, Buffering, Operator, Wid, Windowing
from windrow.operators.operator import Stateless
from windrow.windows import Sliding

RANGE = 4000
BATCHES = (RANGE, RANGE // 4)
SLIDES = (4000, 2000, 1000, 400, 100, 40, 10, 4, 1)
NOISE = 1.1  # two measurements within this factor count as equal
NEVER = afterwards("WID is never slower than buffering", f"batches of {RANGE} rows")
GROWS = afterwards("the gap grows with RANGE / SLIDE", f"batches of {RANGE} rows")
ALGORITHMS: dict[str, Callable[..., Operator]] = {"wid": Wid, "buffering": Buffering}


class Scan(Stateless):
    """Takes rows and does nothing: what remains is the cost of the stream."""

    def on_batch(self, port: int, batch: pl.DataFrame) -> list[Any]:  # noqa: ARG002
        return []


def run(quick: bool, say: Callable[[str, float], None]) -> Outcome:
    """Microseconds per row by SLIDE; only as many rows at SLIDE 1 as the many visits of buffering allow."""
    slides = tuple(s for s in SLIDES if s not in (2000, 40, 4)) if quick else SLIDES
    rows, runs = (48_000, 2) if quick else (120_000, 3)
    found: dict[tuple[str, int, int], float] = {}
    same = True
    for batch in BATCHES:
        steps = arrivals(rows, batch)
        for i, slide in enumerate(slides):
            say(f"SLIDE {slide}, batches of {batch}", (BATCHES.index(batch) + i / len(slides)) / len(BATCHES))
            some = steps if slide > 4 else steps[: len(steps) // 4]
            results = set()
            # More where a run is short; in turn, so that what slows the machine slows both.
            for _ in range(runs if slide < 100 else 4 * runs):
                for algorithm in ALGORITHMS:
                    cost = drive(Bucket(Sliding(RANGE, slide)), operator(algorithm, slide), some)
                    micros = 1e6 * cost.seconds / (batch * len(some))
                    found[algorithm, slide, batch] = min(found.get((algorithm, slide, batch), micros), micros)
                    results.add(cost.results)
            same = same and len(results) == 1
    scan = min(drive(Bucket(Sliding(RANGE, RANGE)), Scan(), arrivals(rows, RANGE)).seconds for _ in range(runs))
    found["scan", RANGE, RANGE] = 1e6 * scan / rows
    return _outcome(found, slides, same)


def operator(algorithm: str, slide: int) -> Operator:
    aggregates = Partials([make("max", "most", "x", pl.Int64())])
    return ALGORITHMS[algorithm](Windowing(Sliding(RANGE, slide), (), aggregates))


def arrivals(rows: int, batch: int) -> list[Step]:
    """An ordered stream; row numbers are the progress values."""
    data = pl.DataFrame({"@t": np.arange(rows), "x": np.random.default_rng(3).integers(40, 1501, rows)})
    return [(data[a : a + batch], a + batch) for a in range(0, rows, batch)]


def _outcome(found: dict[tuple[str, int, int], float], slides: tuple[int, ...], same: bool) -> Outcome:
    figures = {}
    for (algorithm, slide, batch), micros in found.items():
        figures[f"us_per_row_{algorithm}_{slide}{_of(batch)}"] = round(micros, 3)
    ratios = {(s, b): found["buffering", s, b] / found["wid", s, b] for b in BATCHES for s in slides}
    figures |= {f"speedup_{slide}{_of(batch)}": round(ratio, 2) for (slide, batch), ratio in ratios.items()}
    large = [ratios[slide, RANGE] for slide in slides]
    holds = {
        NEVER: all(ratio >= 1 / NOISE for ratio in large),
        GROWS: _grows(large),
        "both give the same number of windows": same,
    }
    curve = {f"batches of {b} rows, SLIDE {s}": round(ratio, 2) for (s, b), ratio in ratios.items()}
    return Outcome(figures, holds, lambda figure: _plot(figure, found, slides), {NEVER: curve, GROWS: curve})


def _of(batch: int) -> str:
    return "" if batch == RANGE else f"_batch{batch}"


def _grows(ratios: list[float]) -> bool:
    """Whether the ratio at the greatest overlap is the greatest, and the upper half is above the lower."""
    half = len(ratios) // 2
    return max(ratios) == ratios[-1] and float(np.median(ratios[half:])) > float(np.median(ratios[:half]))


def _plot(figure: Any, found: dict[tuple[str, int, int], float], slides: tuple[int, ...]) -> None:
    axes = figure.subplots()
    for algorithm, colour in zip(ALGORITHMS, ("tab:blue", "tab:orange"), strict=True):
        for batch, style in zip(BATCHES, ("-", "--"), strict=True):
            times = [found[algorithm, s, batch] for s in slides]
            label = f"{algorithm}, batches of {batch} rows"
            axes.plot([RANGE / s for s in slides], times, style, color=colour, marker="o", label=label)
    axes.axhline(found["scan", RANGE, RANGE], linestyle=":", color="grey", label="scan")
    axes.set(xscale="log", yscale="log", xlabel="RANGE / SLIDE (RANGE 4000 rows)", ylabel="microseconds of CPU per row")
    axes.legend()


WID_VS_BUFFERING = Experiment(
    "wid-vs-buffering", "eager against lazy aggregation, SLIDE 1..4000 rows (Li 6-10)", run, paper="Li 6-10"
)
