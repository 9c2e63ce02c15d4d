"""``windrow demo cameras``: what it generates, what it finds, and the page that it writes."""

import re
import struct
import zlib
from itertools import combinations, pairwise

import numpy as np
import polars as pl
import pytest
from rich.console import Console
from typer.testing import CliRunner

from windrow.cli import app
from windrow.cli.cameras import COMPARED, Alike, _check, _start, _watch, compared, query
from windrow.cli.cameras_page import Found, png, write_page
from windrow.cli.progress import Totals
from windrow.errors import DataError, QueryError
from windrow.sinks.parquet import read_committed
from windrow.sources.cameras import ALIKE, CAMERAS, COLOURS, FORMS, SLACK, WITHIN, picture, scene, similarity, write

run = CliRunner().invoke
THINGS = 24


def test_the_demo_without_a_name_is_the_one_of_the_links():
    assert "--minutes" in run(app, ["demo", "--help"]).output
    assert "--things" in run(app, ["demo", "cameras", "--help"]).output
    assert "windrow demo cameras --open" in " ".join(run(app, ["demo", "cameras", "--help"]).output.split())


def test_options_before_the_name_are_refused():
    error = run(app, ["demo", "--seed", "3", "cameras"]).exception
    assert isinstance(error, QueryError)
    assert str(error) == "--seed is an option of windrow demo: give those of cameras after its name"


def test_a_folder_with_something_in_it_is_refused(tmp_path):
    (tmp_path / "mine").touch()
    assert isinstance(run(app, ["demo", "cameras", "--out", str(tmp_path)]).exception, DataError)
    given = ["demo", "cameras", "--page", str(tmp_path / "nowhere" / "page.html")]
    assert isinstance(run(app, given).exception, QueryError)


# -- the pictures ------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("seed", range(3))
def test_what_can_be_alike_within_the_window_is_the_same_thing(seed):
    """All triples of one kind that the windows allow are those of one thing."""
    found = scene(100, seed)
    times = {f: at.timestamp() for frame in found.frames.values() for f, at in frame.select("frame", "seen").rows()}
    kinds = {}
    for frame, shows in found.shows.items():
        if shows != "nothing":
            kinds.setdefault(shows, {}).setdefault(frame.split("-")[0], []).append(frame)
    near = {
        (one, two, three)
        for kind in kinds.values()
        for one in kind.get("cam1", ())
        for two in kind.get("cam2", ())
        for three in kind.get("cam3", ())
        if max(times[f] for f in (one, two, three)) - min(times[f] for f in (one, two, three)) <= WITHIN
    }
    assert near == found.truth
    assert 40 < len(found.truth) < 90


def test_pictures_come_out_of_order_within_the_slack():
    for frame in scene(100).frames.values():
        seen = frame["seen"].to_physical().to_numpy()
        behind = np.maximum.accumulate(seen) - seen
        assert 1e6 < behind.max() < SLACK * 1e6
        assert frame["seen"].to_list()[-1] == frame["seen"].max()  # the empty one


def test_the_same_seed_gives_the_same_pictures():
    one, again, other = scene(9, 1), scene(9, 1), scene(9, 2)
    assert all(one.frames[name].equals(again.frames[name]) for name in one.frames)
    assert not one.frames["cam1"].equals(other.frames["cam1"])


def test_similarity_tells_form_and_colour_whatever_the_camera_and_the_turn():
    rng = np.random.default_rng(4)
    kinds = [f"{form} {colour}" for form in FORMS for colour in COLOURS]
    taken = {kind: [picture(camera, kind, rng).tobytes() for camera in CAMERAS] for kind in kinds}
    for pictures in taken.values():
        assert all(similarity(*pair) > ALIKE + 0.05 for pair in combinations(pictures, 2))
    for one, other in combinations(kinds, 2):
        assert similarity(taken[one][0], taken[other][1]) < ALIKE - 0.05, (one, other)
    nothing = picture(CAMERAS[0], None, rng).tobytes()
    assert similarity(nothing, taken[kinds[0]][0]) == similarity(nothing, nothing) == 0


# -- the query ---------------------------------------------------------------------------------------------------------
def test_the_query_finds_what_all_cameras_saw_in_process(tmp_path):
    seen = scene(THINGS)
    found = query(lambda name: seen.frames[name].drop("arrival"), Alike(str(tmp_path), 2), 2).collect()
    assert {tuple(row) for row in found.select("frame", "frame_cam2", "frame_cam3").rows()} == seen.truth
    assert found.height == len(seen.truth)


def found_in(scene_, change=()):
    """What a run would have found, and noted."""
    images = {name: dict(frame.select("frame", "image").rows()) for name, frame in scene_.frames.items()}
    times = {name: dict(frame.select("frame", "seen").rows()) for name, frame in scene_.frames.items()}
    triples = (scene_.truth - set(change)) or set(change)
    rows = [
        {
            f"{column}{'' if name == 'cam1' else f'_{name}'}": of[name][frame]
            for column, of in (("seen", times), ("image", images))
            for name, frame in zip(images, triple, strict=True)
        }
        | {"frame": triple[0], "frame_cam2": triple[1], "frame_cam3": triple[2]}
        for triple in sorted(triples)
    ]
    pairs = {pair for triple in triples for pair in pairwise(triple)}
    noted = [(number % 2, *pair, 0.9) for number, pair in enumerate(sorted(pairs))]
    return Found(pl.DataFrame(rows), pl.DataFrame(noted, COMPARED, orient="row"), 2, 12.0, 3)


def test_the_check_counts_what_is_missing_strange_and_double():
    seen, console = scene(THINGS), Console(quiet=True)
    right = found_in(seen)
    assert _check(console, right, seen) == 0
    one = sorted(seen.truth)[0]
    assert _check(console, found_in(seen, [one]), seen) == 1
    twice = Found(pl.concat([right.results, right.results[:1]]), right.compared, 2, 1, 1)
    assert _check(console, twice, seen) == 1
    strange = Found(
        right.results.with_columns(frame_cam2=pl.col("frame_cam2").shift(1)).drop_nulls(), right.compared, 2, 1, 1
    )
    assert _check(console, strange, seen) > 2
    assert _check(console, Found(pl.DataFrame(), right.compared, 2, 1, 1), seen) == len(seen.truth)


# -- the page ----------------------------------------------------------------------------------------------------------
def test_a_picture_is_a_png_file():
    pixels = bytes(range(48))
    file = png(pixels, side=4)
    assert struct.unpack(">II", file[16:24]) == (4, 4)
    at = file.index(b"IDAT")
    [length] = struct.unpack(">I", file[at - 4 : at])
    rows = zlib.decompress(file[at + 4 : at + 4 + length])
    assert b"".join(rows[n * 13 + 1 : n * 13 + 13] for n in range(4)) == pixels


def test_the_page_has_all_pictures_and_nothing_from_elsewhere(tmp_path):
    seen = scene(THINGS)
    write_page(tmp_path / "page.html", found_in(seen), seen, 0)
    page = (tmp_path / "page.html").read_text()
    defined = set(re.findall(r'<image id="([^"]+)"', page))
    assert defined == {f for frame in seen.frames.values() for f in frame["frame"]}
    assert set(re.findall(r'href="#([^"]+)"', page)) <= defined
    assert not re.search(r'(src|href)="(?!#|data:)', page)
    assert "url(" not in page
    assert "://" not in page
    assert page.count('class="card m') == len(seen.truth)
    assert page.count('class="line m') == len(seen.truth)
    assert "all of them, and nothing else" in page
    write_page(tmp_path / "page.html", found_in(seen), seen, 2)
    assert "checked: 2 wrong" in (tmp_path / "page.html").read_text()


def test_a_page_without_matches_is_a_page(tmp_path):
    seen, nothing = scene(1), pl.DataFrame(schema=COMPARED)
    write_page(tmp_path / "page.html", Found(pl.DataFrame(), nothing, 3, 1.0, 1), seen, 0)
    assert "0 matches" in (tmp_path / "page.html").read_text()


# -- on Spark ----------------------------------------------------------------------------------------------------------
@pytest.mark.spark
def test_the_demo_on_spark(spark, tmp_path):
    seen, console, totals = scene(THINGS, 5), Console(quiet=True), Totals()
    for name, frame in seen.frames.items():
        write(frame, tmp_path / name, step=4)
    (tmp_path / "compared").mkdir()
    _watch(console, _start(spark, tmp_path, 2), totals, tmp_path)
    found = Found(read_committed(tmp_path / "matches"), compared(tmp_path), 2, 1.0, totals.batches)
    assert _check(console, found, seen) == 0
    assert totals.batches > 1
    assert all(found.by_node())
    assert {one.split("-")[0] for one in found.compared["first"].to_list()} == {"cam1", "cam2"}
