"""All experiments on one page: the paper's figure, our plot, the claims and whether they hold, the figures."""

from __future__ import annotations

import base64
import json
from collections.abc import Sequence
from html import escape
from pathlib import Path
from typing import Any

from windrow.bench.experiment import Experiment

STYLE = """
body { font: 16px/1.5 system-ui, sans-serif; max-width: 60rem; margin: 2rem auto; padding: 0 1rem; color: #222 }
section { border-top: 1px solid #ccc; margin-top: 2rem }
img { max-width: 100% }
td, th { text-align: left; padding: 0 1rem 0 0 }
td:last-child { font-variant-numeric: tabular-nums }
.holds { color: #17692b } .fails { color: #a3131b; font-weight: bold }
"""


def write_gallery(experiments: Sequence[Experiment], folder: Path) -> Path:
    """One self-contained HTML file from the JSON and PNG files that the experiments left in a folder."""
    path = folder / "gallery.html"
    head = f'<meta charset="utf-8"><title>Windrow: experiments</title><style>{STYLE}</style>'
    sections = "".join(_section(e, folder) for e in experiments)
    body = f"<h1>Experiments</h1>{_summary(experiments, folder)}{sections}"
    page = f'<!doctype html><html lang="en"><head>{head}</head><body>{body}</body></html>\n'
    path.write_text(page, encoding="utf-8")
    return path


def _found(experiment: Experiment, folder: Path) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((folder / f"{experiment.name}.json").read_text())
    return found


def _summary(experiments: Sequence[Experiment], folder: Path) -> str:
    rows = []
    for experiment in experiments:
        holds = _found(experiment, folder)["holds"]
        name = escape(experiment.name)
        kind = "holds" if all(holds.values()) else "fails"
        result = f'<span class="{kind}">{sum(holds.values())} of {len(holds)} hold</span>' if holds else "no claims"
        rows.append(
            f'<tr><td><a href="#{name}">{name}</a></td><td>{escape(experiment.paper)}</td><td>{result}</td></tr>'
        )
    return f"<table><tr><th>experiment</th><th>reproduces</th><th>claims</th></tr>{''.join(rows)}</table>"


def _section(experiment: Experiment, folder: Path) -> str:
    found = _found(experiment, folder)
    name = escape(experiment.name)
    claims = "".join(_claim(claim, holds, found.get("curves", {})) for claim, holds in found["holds"].items())
    rows = {k: f"{v:,}" for k, v in found["figures"].items()} | dict.fromkeys(
        found.get("not_measured", ()), "not measured"
    )
    figures = "".join(f"<tr><td>{escape(k)}</td><td>{v}</td></tr>" for k, v in rows.items())
    return (
        f'<section id="{name}"><h2>{name}</h2><p>{escape(experiment.about)}. Reproduces: {escape(experiment.paper)}. '
        f"{found['seconds']:,} s, <code>windrow bench {name}</code>.</p>{_image(experiment, folder)}<ul>{claims}</ul>"
        f"<details><summary>Figures</summary><table>{figures}</table></details></section>"
    )


def _claim(claim: str, holds: bool, curves: dict[str, dict[str, float]]) -> str:
    result = f'<span class="{"holds" if holds else "fails"}">{"holds" if holds else "does not hold"}</span>'
    points = "".join(f"<tr><td>{escape(at)}</td><td>{v:,}</td></tr>" for at, v in curves.get(claim, {}).items())
    return f"<li>{escape(claim)}: {result}{f'<table>{points}</table>' if points else ''}</li>"


def _image(experiment: Experiment, folder: Path) -> str:
    plot = folder / f"{experiment.name}.png"
    if not plot.exists():
        return ""
    data = base64.b64encode(plot.read_bytes()).decode()
    return f'<img alt="plot of {escape(experiment.name)}" src="data:image/png;base64,{data}">'
