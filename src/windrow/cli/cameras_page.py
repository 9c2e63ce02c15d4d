"""The page of ``windrow demo cameras``: one file with all pictures in it, and nothing from elsewhere."""

from __future__ import annotations

import base64
import struct
import zlib
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from html import escape
from itertools import pairwise
from pathlib import Path

import polars as pl

from windrow.cli.cameras_style import SCRIPT, STYLE
from windrow.sources.cameras import ALIKE, CAMERAS, COLOURS, SIDE, WITHIN, Scene

NAMES = [camera.name for camera in CAMERAS]
SECOND, LANE, THUMB, LEFT = 34, 112, 36, 84  # pixels of the timeline
BINS, WIDE, HIGH = 25, 520, 150  # of the histogram
CLOSE = 6  # pairs on each side of the line
GREY = "#8a8f98"


@dataclass(frozen=True)
class Found:
    """What a run has found. ``compared``: node, first, second and similarity of each call of the function."""

    results: pl.DataFrame
    compared: pl.DataFrame
    nodes: int
    seconds: float
    batches: int

    def triples(self) -> list[tuple[str, ...]]:
        """The frames of each result, in the order of time."""
        names = [column(name, "frame") for name in NAMES]
        return self.results.sort(column(NAMES[0], "seen")).select(names).rows() if self.results.height else []

    def similarities(self) -> dict[tuple[str, str], float]:
        """By pictures."""
        return {(one, other): found for _, one, other, found in self.compared.rows()}

    def by_node(self) -> list[int]:
        """How many pairs each node has compared."""
        return [self.compared.filter(pl.col("node") == node).height for node in range(self.nodes)]


def column(camera: str, name: str) -> str:
    """What a column of a camera is called in results."""
    return name if camera == NAMES[0] else f"{name}_{camera}"


def write_page(path: Path, found: Found, scene: Scene, wrong: int) -> None:
    """Write it."""
    pictures = pl.concat(scene.frames.values())
    times = dict(pictures.select("frame", "seen").rows())
    parts = [
        _head(found, scene, wrong),
        _timeline(found, scene, times),
        _work(found),
        _close(found, scene),
        _cards(found, scene, times),
        _query(found),
    ]
    images = "".join(
        f'<image id="{frame}" width="{SIDE}" height="{SIDE}" href="{data_uri(image)}"/>'
        for frame, image in pictures.select("frame", "image").rows()
    )
    body = f'<svg width="0" height="0" class="away"><defs>{images}</defs></svg>{"".join(parts)}'
    head = (
        '<meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1">'
        f"<title>Windrow: three cameras</title><style>{STYLE}</style>"
    )
    page = f'<!doctype html><html lang="en"><head>{head}</head><body>{body}<script>{SCRIPT}</script></body></html>\n'
    path.write_text(page, encoding="utf-8")


# -- pictures ----------------------------------------------------------------------------------------------------------
def png(pixels: bytes, side: int = SIDE) -> bytes:
    """Rows of RGB as a PNG file.

    >>> png(bytes(12), side=2)[:8]
    b'\\x89PNG\\r\\n\\x1a\\n'
    """

    def chunk(kind: bytes, data: bytes) -> bytes:
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    rows = b"".join(b"\0" + pixels[at : at + 3 * side] for at in range(0, len(pixels), 3 * side))
    header = struct.pack(">IIBBBBB", side, len(pixels) // (3 * side), 8, 2, 0, 0, 0)
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + chunk(b"IDAT", zlib.compress(rows, 9)) + chunk(b"IEND", b"")


def data_uri(pixels: bytes) -> str:
    """A picture in a page."""
    return "data:image/png;base64," + base64.b64encode(png(pixels)).decode()


def _picture(frame: str, size: int) -> str:
    """A picture that has been defined at the top, at some size."""
    return (
        f'<svg class="pic" width="{size}" height="{size}" viewBox="0 0 {SIDE} {SIDE}" role="img" '
        f'aria-label="{frame}"><use href="#{frame}"/></svg>'
    )


def _colour(scene: Scene, frame: str) -> str:
    rgb = COLOURS.get(scene.shows[frame].rpartition(" ")[2])
    return GREY if rgb is None else "#{:02x}{:02x}{:02x}".format(*rgb)


def _says(scene: Scene, frame: str) -> str:
    form, _, colour = scene.shows[frame].rpartition(" ")
    return f"{colour} {form}".strip()


def _clock(at: datetime) -> str:
    return f"{at:%M:%S}.{at.microsecond // 100_000}"


# -- parts -------------------------------------------------------------------------------------------------------------
def _head(found: Found, scene: Scene, wrong: int) -> str:
    pictures = sum(frame.height for frame in scene.frames.values())
    right = "all of them, and nothing else" if not wrong else f"{wrong} wrong"
    tiles = [
        (f"{pictures:,}", "pictures, which come out of order"),
        (f"{found.compared.height:,}", f"comparisons, on {found.nodes} node{'s' * (found.nodes != 1)}"),
        (f"{len(found.triples()):,}", "things seen by all three"),
        ("&#10003;" if not wrong else "&#10007;", f"checked: {right}"),
    ]
    shown = "".join(f"<div><b>{number}</b><span>{says}</span></div>" for number, says in tiles)
    return (
        "<header><h1>Which things passed all three cameras?</h1><p>Things move past three cameras, one after another. "
        "No picture says what it shows: a Python function cuts out the thing, turns it, and compares form and colour. "
        f"Spark joins the three streams with it, over a ring of {found.nodes} nodes.</p>"
        f'<div class="tiles{" wrong" * bool(wrong)}">{shown}</div></header>'
    )


def _timeline(found: Found, scene: Scene, times: dict[str, datetime]) -> str:
    first = min(times.values())
    places: dict[str, tuple[float, float]] = {}
    for lane, name in enumerate(NAMES):
        rows = [0.0, 0.0]  # where each ends
        for frame in scene.frames[name].sort("seen")["frame"].to_list():
            x = LEFT + (times[frame] - first).total_seconds() * SECOND
            row = min((0, 1), key=rows.__getitem__)
            places[frame], rows[row] = (x, 26 + lane * LANE + row * (THUMB + 4)), x
    wide, high = max(x for x, _ in places.values()) + THUMB + 16, 26 + len(NAMES) * LANE - 28
    matched = {frame: number for number, triple in enumerate(found.triples()) for frame in triple}
    lines = "".join(
        f'<path class="line m{number}" stroke="{_colour(scene, triple[0])}" d="{_path([places[f] for f in triple])}"/>'
        for number, triple in enumerate(found.triples())
    )
    thumbs = "".join(_thumb(scene, frame, x, y, times[frame], matched.get(frame)) for frame, (x, y) in places.items())
    ticks = "".join(
        f'<line class="tick" x1="{x}" x2="{x}" y1="18" y2="{high}"/><text x="{x + 3}" y="14">{second} s</text>'
        for second in range(0, int((wide - LEFT) / SECOND) + 1, 5)
        for x in [LEFT + second * SECOND]
    )
    labels = "".join(
        f'<div style="top:{26 + lane * LANE + THUMB - 4}px">{name}</div>' for lane, name in enumerate(NAMES)
    )
    return (
        f"<section><h2>What the cameras saw</h2><p>Scroll to the right for the time to pass. Lines join the pictures "
        "of a match; a faint picture is in none: some camera did not see that thing.</p>"
        f'<div class="time"><div class="lanes">{labels}</div><div class="scroll">'
        f'<svg width="{wide:.0f}" height="{high}">{ticks}{lines}{thumbs}</svg></div></div></section>'
    )


def _path(points: Sequence[tuple[float, float]]) -> str:
    middle = [(x + THUMB / 2, y + THUMB / 2) for x, y in points]
    found = "M{:.0f} {:.0f}".format(*middle[0])
    for (x0, y0), (x1, y1) in pairwise(middle):
        half = (y0 + y1) / 2
        found += f" C{x0:.0f} {half:.0f} {x1:.0f} {half:.0f} {x1:.0f} {y1:.0f}"
    return found


def _thumb(scene: Scene, frame: str, x: float, y: float, at: datetime, match: int | None) -> str:
    kind = "alone" if match is None else f"hit m{match}"
    rim = "none" if match is None else _colour(scene, frame)
    return (
        f'<g class="{kind}" transform="translate({x:.0f} {y:.0f})"><title>{frame}, {_clock(at)}: '
        f'{escape(_says(scene, frame))}</title><use href="#{frame}" transform="scale({THUMB / SIDE})"/>'
        f'<rect width="{THUMB}" height="{THUMB}" rx="3" fill="none" stroke="{rim}" stroke-width="2"/></g>'
    )


def _cards(found: Found, scene: Scene, times: dict[str, datetime]) -> str:
    alike = found.similarities()
    cards = []
    for number, triple in enumerate(found.triples()):
        shown = []
        for place, frame in enumerate(triple):
            if place:
                shown.append(f"<i>{alike.get((triple[place - 1], frame), 0):.2f}</i>")
            shown.append(f"<figure>{_picture(frame, 80)}<figcaption>{_clock(times[frame])}</figcaption></figure>")
        says = escape(_says(scene, triple[0]))
        cards.append(
            f'<div class="card m{number}" data-m="{number}" style="--c:{_colour(scene, triple[0])}">'
            f"<div>{''.join(shown)}</div><p>{says}</p></div>"
        )
    says = f"Between two pictures: how similar they are. All three were taken within {WITHIN} seconds."
    return f'<section><h2>{len(cards)} matches</h2><p>{says}</p><div class="cards">{"".join(cards)}</div></section>'


def _work(found: Found) -> str:
    counts, total = found.by_node(), max(1, found.compared.height)
    rows = "".join(
        f'<tr><th>node {node}</th><td><span class="bar n{node % 4}" style="width:{100 * n / max(1, *counts):.0f}%">'
        f"</span></td><td>{n:,}</td><td>{n / total:.0%}</td></tr>"
        for node, n in enumerate(counts)
    )
    return (
        '<section class="two"><div><h2>Who compared them</h2><p>Each node holds a slice of the last '
        f"{WITHIN} seconds. A new picture goes round, and meets each slice once.</p><table>{rows}</table>"
        f"<p>{found.batches} micro-batches, {found.seconds:.0f} seconds on Spark.</p></div>"
        f"<div><h2>How similar they were</h2>{_histogram(found)}</div></section>"
    )


def _histogram(found: Found) -> str:
    """Pairs by similarity, those of each node on top of each other. The square root, so that few can be seen."""
    per = [[0] * BINS for _ in range(found.nodes)]
    for node, _, _, similar in found.compared.rows():
        per[node][min(BINS - 1, int(similar * BINS))] += 1
    most = max(1, *(sum(own[at] for own in per) for at in range(BINS)))
    bars, step = [], WIDE / BINS
    for at in range(BINS):
        total, below = sum(own[at] for own in per), 0.0
        for node, own in enumerate(per):
            tall = HIGH * (total / most) ** 0.5 * own[at] / max(1, total)
            below += tall
            bars.append(
                f'<rect class="n{node % 4}" x="{at * step + 1:.1f}" y="{HIGH - below:.1f}" width="{step - 2:.1f}" '
                f'height="{tall:.1f}"><title>{at / BINS:.2f} to {(at + 1) / BINS:.2f}: {own[at]:,} pairs by node '
                f"{node}</title></rect>"
            )
    line = ALIKE * WIDE
    axis = "".join(
        f'<text x="{n / 5 * WIDE:.0f}" y="{HIGH + 16}" text-anchor="middle">{n / 5:.1f}</text>' for n in range(6)
    )
    return (
        f'<svg class="histogram" viewBox="-10 -14 {WIDE + 24} {HIGH + 36}">{"".join(bars)}'
        f'<line class="limit" x1="{line}" x2="{line}" y1="-2" y2="{HIGH}"/>'
        f'<text x="{line + 5}" y="4">the same from {ALIKE} on</text>{axis}</svg>'
        "<p>Bars are as high as the square roots of the counts.</p>"
    )


def _close(found: Found, scene: Scene) -> str:
    """The pairs on both sides of the line that are nearest to it."""
    pairs = found.compared.unique(["first", "second"]).sort("similarity", "first")
    sides = {
        "The most similar that are not the same": pairs.filter(pl.col("similarity") <= ALIKE).reverse(),
        "The least similar that are": pairs.filter(pl.col("similarity") > ALIKE),
    }
    shown = []
    for title, side in sides.items():
        each = "".join(
            f"<div>{_picture(one, 64)}{_picture(other, 64)}<p>{similar:.2f}<br>{escape(_says(scene, one))}"
            f"{'' if scene.shows[one] == scene.shows[other] else f',<br>{escape(_says(scene, other))}'}</p></div>"
            for _, one, other, similar in side.head(CLOSE).rows()
        )
        shown.append(f'<div><h2>{title}</h2><div class="pairs">{each}</div></div>')
    return f'<section class="two">{"".join(shown)}</section>'


def _query(found: Found) -> str:
    code = f"""def alike(one, other):
    return similarity(one.image, other.image) > {ALIKE}

matches = wr.multi_join(
    cam1, cam2, cam3,
    within="{WITHIN} seconds",
    where=[lambda cam1, cam2: alike(cam1, cam2), lambda cam2, cam3: alike(cam2, cam3)],
    nodes={found.nodes},
)
writer = matches.to_spark().writeStream.format("parquet").option("checkpointLocation", "state")
writer.start("matches")"""
    return f"<section><h2>The query</h2><pre>{escape(code)}</pre></section>"
