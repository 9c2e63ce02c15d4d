"""Generated cameras: small pictures of moving things of several forms and colours, and a function that compares two."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cache
from itertools import product
from pathlib import Path

import numpy as np
import polars as pl
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Bytes = NDArray[np.uint8]
Bools = NDArray[np.bool_]

MICROS = 1_000_000
START = 1_700_000_040 * MICROS
SIDE = 40  # pixels
SLACK = 4.0  # seconds that a picture can be late
EVERY, SHIFT = 1.0, 0.4  # seconds between two things, and how far each is off that
WALK = (5.0, 8.0)  # seconds from one camera to the next
WITHIN = 24  # seconds: three pictures of one thing are nearer, those of two things that look alike are not
ALIKE = 0.66  # what is more similar shows the same thing
MISSED = 0.12  # the share of things that a camera does not see
COLOURS = {
    "red": (222, 60, 52),
    "amber": (240, 176, 28),
    "green": (52, 168, 83),
    "cyan": (38, 190, 208),
    "blue": (72, 108, 240),
    "magenta": (208, 66, 190),
}


# -- forms: whether a point is inside one of radius 1 ------------------------------------------------------------------
def _moon(x: Floats, y: Floats) -> Bools:
    inside: Bools = (np.hypot(x + 0.1, y) < 0.95) & (np.hypot(x - 0.4, y) > 0.7)
    return inside


def _ring(x: Floats, y: Floats) -> Bools:
    inside: Bools = (np.hypot(x, y) < 0.95) & (np.hypot(x, y) > 0.5)
    return inside


def _triangle(x: Floats, y: Floats) -> Bools:
    sides = [y * np.cos(turn) + x * np.sin(turn) < 0.55 for turn in (0, 2 * np.pi / 3, 4 * np.pi / 3)]
    inside: Bools = sides[0] & sides[1] & sides[2]
    return inside


def _star(x: Floats, y: Floats) -> Bools:
    turn = np.mod(np.arctan2(y, x), 2 * np.pi / 5) - np.pi / 5
    return np.hypot(x, y) < 0.42 + 0.62 * (np.abs(turn) / (np.pi / 5)) ** 1.5


def _cross(x: Floats, y: Floats) -> Bools:
    return (np.minimum(np.abs(x), np.abs(y)) < 0.26) & (np.maximum(np.abs(x), np.abs(y)) < 0.95)


def _bar(x: Floats, y: Floats) -> Bools:
    return (np.abs(x) < 1.0) & (np.abs(y) < 0.34)


FORMS: dict[str, Callable[[Floats, Floats], Bools]] = {
    "moon": _moon,
    "ring": _ring,
    "triangle": _triangle,
    "star": _star,
    "cross": _cross,
    "bar": _bar,
}


# -- what there is to see ----------------------------------------------------------------------------------------------
@dataclass(frozen=True)
class Camera:
    """What is its own: how bright its pictures are, their background, and how noisy they are."""

    name: str
    light: float
    ground: tuple[int, int, int]
    noise: float
    behind: float = 0.0  # seconds on the way, for all pictures


CAMERAS = (
    Camera("cam1", 1.0, (62, 66, 70), 7),
    Camera("cam2", 0.82, (40, 44, 58), 10, behind=3),
    Camera("cam3", 1.12, (98, 92, 84), 9),
)


@dataclass
class Scene:
    """``frames``: what each camera has taken, in order of arrival. ``truth``: the frames that show the same thing, one
    of each camera. ``shows``: what is on a frame.
    """

    frames: dict[str, pl.DataFrame] = field(default_factory=dict)
    truth: set[tuple[str, ...]] = field(default_factory=set)
    shows: dict[str, str] = field(default_factory=dict)


def scene(things: int = 120, seed: int = 0) -> Scene:
    """Things that pass one camera after another, some unseen by one of them. Of 36 kinds each comes again when the last
    one is gone. Each camera ends with an empty picture, so that everything before it is promised.
    """
    rng = np.random.default_rng([seed, 17])
    kinds = [*product(FORMS, COLOURS)]
    order = rng.permutation(len(kinds))
    seen: dict[str, list[tuple[float, str | None, int]]] = {camera.name: [] for camera in CAMERAS}
    for thing in range(things):
        at = thing * EVERY + rng.uniform(-SHIFT, SHIFT) + 1
        missed = rng.integers(len(CAMERAS)) if rng.random() < MISSED * len(CAMERAS) else None
        for number, camera in enumerate(CAMERAS):
            if number != missed:
                seen[camera.name].append((at, " ".join(kinds[order[thing % len(kinds)]]), thing))
            at += rng.uniform(*WALK)
    last = max(at for all_seen in seen.values() for at, _, _ in all_seen)
    found = Scene()
    by_thing: dict[int, dict[str, str]] = {}
    for camera in CAMERAS:
        own = [*sorted(seen[camera.name]), (last + SLACK + 1, None, -1)]
        for number, (_, what, thing) in enumerate(own):
            frame = frame_name(camera, number)
            found.shows[frame] = what or "nothing"
            by_thing.setdefault(thing, {})[camera.name] = frame
        found.frames[camera.name] = _taken(camera, own, rng)
    by_thing.pop(-1)
    whole = [each for each in by_thing.values() if len(each) == len(CAMERAS)]
    found.truth = {tuple(each[camera.name] for camera in CAMERAS) for each in whole}
    return found


def frame_name(camera: Camera, number: int) -> str:
    """What a picture is called.

    >>> frame_name(CAMERAS[0], 7)
    'cam1-007'
    """
    return f"{camera.name}-{number:03d}"


def _taken(camera: Camera, seen: list[tuple[float, str | None, int]], rng: np.random.Generator) -> pl.DataFrame:
    times = np.array([round(at * MICROS) for at, _, _ in seen])
    delays = rng.uniform(0, SLACK * 0.95 * MICROS, len(times)).astype(np.int64)
    delays[-1] = SLACK * MICROS
    frame = pl.DataFrame(
        {
            "seen": pl.Series(times + START).cast(pl.Datetime("us", "UTC")),
            "frame": [frame_name(camera, number) for number in range(len(times))],
            "image": [picture(camera, what, rng).tobytes() for _, what, _ in seen],
            "arrival": times + delays + round(camera.behind * MICROS) + START,
        }
    )
    return frame.sort("arrival", maintain_order=True)


def picture(camera: Camera, what: str | None, rng: np.random.Generator) -> Bytes:
    """What a camera sees of a thing, or of nothing: turned, somewhat off the middle, nearer or farther, with noise."""
    down = np.linspace(-1, 1, SIDE)[:, None, None]
    found = np.array(camera.ground, np.float64) * (1 + rng.uniform(-0.15, 0.15) * down) + np.zeros((SIDE, SIDE, 3))
    if what is not None:
        form, colour = what.split()
        inside = _mask(form, rng.uniform(0, 2 * np.pi), rng.uniform(11, 15), rng.uniform(-2, 2, 2))[..., None]
        found = found * (1 - inside) + np.array(COLOURS[colour]) * camera.light * inside
    found += rng.normal(0, camera.noise, found.shape)
    return np.clip(found, 0, 255).astype(np.uint8)


def _mask(form: str, turn: float, radius: float, off: Floats, finer: int = 3) -> Floats:
    """How much of each pixel is inside."""
    at = (np.arange(SIDE * finer) + 0.5) / finer - SIDE / 2
    x, y = (at - off[0])[None, :] / radius, (at - off[1])[:, None] / radius
    inside = FORMS[form](x * np.cos(turn) - y * np.sin(turn), x * np.sin(turn) + y * np.cos(turn))
    mean: Floats = inside.reshape(SIDE, finer, SIDE, finer).mean((1, 3))
    return mean


def write(frame: pl.DataFrame, folder: Path, step: float) -> list[Path]:
    """One Parquet file for each ``step`` seconds of arrival."""
    folder.mkdir(parents=True, exist_ok=True)
    slots = ((frame["arrival"] - START) // int(step * MICROS)).to_numpy()
    files = []
    for slot in range(int(slots.max(initial=-1)) + 1):
        files.append(folder / f"{slot:05d}.parquet")
        frame.filter(pl.Series(slots == slot)).drop("arrival").write_parquet(files[-1])
        os.utime(files[-1], (START // MICROS + slot, START // MICROS + slot))  # Spark takes files in this order
    return files


# -- whether two pictures show the same --------------------------------------------------------------------------------
TURNS = 48
GRID = 20  # points across what is compared
FAR = 60.0  # of two colours, in units of one channel


def similarity(one: bytes, other: bytes) -> float:
    """0 for nothing in common, 1 for the same form in the same colour, whichever way it is turned, and however far.

    The thing in each picture is cut out, and one is turned until its form fits that of the other best: half a
    millisecond of work.

    >>> rng = np.random.default_rng(1)
    >>> star, again, moon = (picture(CAMERAS[0], what, rng).tobytes() for what in ("star red", "star red", "moon red"))
    >>> similarity(star, again) > ALIKE > similarity(star, moon)
    True
    """
    first, second = _cut(one), _cut(other)
    if first is None or second is None:
        return 0.0
    still, turned = first.sampled(1)[0], second.sampled(TURNS)
    fits = float((turned @ still).max())
    apart = float(np.linalg.norm(first.colour - second.colour)) / FAR
    return max(0.0, fits) ** 2 * float(np.exp(-apart * apart))


@dataclass(frozen=True)
class _Cut:
    """A thing as it is cut out of its picture: how far each pixel belongs to it, its middle, size and colour."""

    inside: Floats
    middle: tuple[float, float]
    size: float
    colour: Floats

    def sampled(self, turns: int) -> Floats:
        """The form at points of a grid about its middle, in each turn; of mean 0 and length 1."""
        x, y = _grid(turns)
        columns = np.clip(np.rint(self.middle[0] + x * self.size), 0, SIDE - 1).astype(np.intp)
        rows = np.clip(np.rint(self.middle[1] + y * self.size), 0, SIDE - 1).astype(np.intp)
        found = self.inside[rows, columns]
        found = found - found.mean(1, keepdims=True)
        lengths: Floats = np.linalg.norm(found, axis=1, keepdims=True)
        return np.asarray(found / np.maximum(lengths, 1e-9))


@cache
def _grid(turns: int) -> tuple[Floats, Floats]:
    """The points of a grid as wide as two and a half times the size of a thing, in each turn."""
    across = np.linspace(-2.2, 2.2, GRID)
    x, y = (each.ravel() for each in np.meshgrid(across, across))
    angles = np.arange(turns)[:, None] * 2 * np.pi / turns
    return x * np.cos(angles) - y * np.sin(angles), x * np.sin(angles) + y * np.cos(angles)


def _cut(image: bytes) -> _Cut | None:
    """None if there is nothing on a picture."""
    pixels = np.frombuffer(image, np.uint8).reshape(SIDE, SIDE, 3).astype(np.float64)
    rim = np.concatenate([pixels[0], pixels[-1], pixels[:, 0], pixels[:, -1]])
    ground = np.median(rim, axis=0)
    away = np.linalg.norm(pixels - ground, axis=2)
    inside = np.clip((away - 45) / 45, 0, 1)
    weight = inside.sum()
    if weight < 20:
        return None
    at = np.arange(SIDE)
    x, y = float((inside.sum(0) * at).sum() / weight), float((inside.sum(1) * at).sum() / weight)
    spread = (inside * ((at - x)[None, :] ** 2 + (at - y)[:, None] ** 2)).sum() / weight
    colour = (pixels * inside[..., None]).sum((0, 1)) / weight
    bright = colour * (180 / max(1.0, float(np.linalg.norm(colour))))  # cameras differ in light
    return _Cut(inside, (x, y), float(np.sqrt(spread)), bright)
