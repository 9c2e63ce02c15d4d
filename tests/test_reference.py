"""The pages of the aggregates are what their generator writes now."""

import runpy
from pathlib import Path

from windrow.aggregates import FUNCTIONS

REFERENCE = Path(__file__).parents[1] / "docs" / "reference"


def test_the_pages_are_what_the_generator_writes(tmp_path):
    runpy.run_path(str(REFERENCE / "generate.py"))["main"](tmp_path)
    written = {p.name: p.read_text() for p in tmp_path.iterdir()}
    assert written == {p.name: p.read_text() for p in (REFERENCE / "aggregates").iterdir()}


def test_every_aggregate_has_a_page():
    text = "".join(p.read_text() for p in (REFERENCE / "aggregates").glob("*.md"))
    distinct = {name: f"{name.removesuffix('_distinct')}(DISTINCT x)" for name in ("sum_distinct", "avg_distinct")}
    missing = [name for name in FUNCTIONS if f"`{name}(" not in text and f"`{distinct.get(name, name)}`" not in text]
    assert [name for name in missing if name != "var"] == []  # var is what Python calls var_samp
