"""``windrow bench`` and its gallery, with experiments that measure nothing."""

import base64
import json
import re
from pathlib import Path

import pytest
from typer.testing import CliRunner

from windrow.bench import EXPERIMENTS, Experiment, Outcome
from windrow.bench.experiment import AFTERWARDS, afterwards
from windrow.cli import app
from windrow.cli import bench as command


def draw(figure):
    figure.subplots().plot([1, 2])


def made(name, holds, paper="ours", plot=draw):
    return Experiment(name, f"about <{name}>", lambda quick, say: Outcome({"n": 1000 + quick}, holds, plot), paper)


@pytest.fixture
def invoke(monkeypatch, tmp_path):
    def run(experiments, *arguments):
        monkeypatch.setattr(command, "EXPERIMENTS", {e.name: e for e in experiments})
        return CliRunner().invoke(app, ["bench", *arguments, "--out", str(tmp_path)]), tmp_path

    return run


def test_all_writes_one_page_with_every_plot_claim_and_figure(invoke):
    good, bad = made("good", {"a < b": True}, "Li 6-11"), made("bad", {"c": False, "d": True}, plot=None)
    result, folder = invoke([good, bad], "all", "--quick")
    assert result.exit_code == 1  # a claim does not hold
    text = (folder / "gallery.html").read_text()
    assert "Li 6-11" in text
    assert 'a &lt; b: <span class="holds">holds' in text
    assert 'c: <span class="fails">does not hold' in text
    assert "about &lt;good&gt;" in text
    assert "1,001" in text
    assert "1 of 2 hold" in text
    (plot,) = re.findall(r'src="data:image/png;base64,([^"]+)"', text)
    assert base64.b64decode(plot) == (folder / "good.png").read_bytes()
    assert not re.search(r'(src|href)="(?!data:|#)', text)  # nothing from elsewhere


def test_a_claim_whose_workload_was_chosen_shows_what_the_others_give(invoke):
    """Issue 11."""
    claim = afterwards("a < b", "rings of 2")
    assert claim.endswith("(rings of 2: chosen after seeing the figures)")
    curves = {claim: {"ring of 1": 0.5, "ring of 2": 1.5}}
    chosen = Experiment("chosen", "", lambda quick, say: Outcome({}, {claim: True, "c": True}, None, curves))
    result, folder = invoke([chosen], "all", "--json")
    assert json.loads((folder / "chosen.json").read_text())["curves"] == curves
    assert "ring of 1" in result.output
    text = (folder / "gallery.html").read_text()
    assert "<tr><td>ring of 1</td><td>0.5</td></tr><tr><td>ring of 2</td><td>1.5</td></tr></table></li><li>c:" in text


def test_experiments_whose_workload_was_chosen_say_so_in_the_page_of_experiments():
    """Every claim that says so in its own line does in the page's, too."""
    lines = (Path(__file__).parents[2] / "docs" / "experiments.md").read_text().split("\n")
    for name in (
        "flush",
        "slide-by-tuple",
        "wid-vs-buffering",
        "union-skew",
        "agg-skew",
        "adaptwid",
        "spark-sliding",
        "optimizer-grid",
        "ring-table",
        "ring-length",
        "ring-adapt",
    ):
        (line,) = [line for line in lines if line.startswith(f"| {name} |")]
        assert AFTERWARDS in line, name


def test_the_page_is_there_even_if_a_later_experiment_fails(invoke):
    def broken(quick, say):
        raise ZeroDivisionError

    result, folder = invoke([made("good", {}), Experiment("broken", "", broken)], "all")
    assert isinstance(result.exception, ZeroDivisionError)
    assert "no claims" in (folder / "gallery.html").read_text()


def test_one_experiment_leaves_its_files_and_a_json_line_and_no_page(invoke):
    result, folder = invoke([made("good", {"a": True})], "good", "--json")
    assert result.exit_code == 0
    found = json.loads(result.stdout.strip().split("\n")[-1])
    assert found == json.loads((folder / "good.json").read_text())
    assert (found["figures"], found["holds"]) == ({"n": 1000}, {"a": True})
    assert not (folder / "gallery.html").exists()


def test_the_list_names_the_figure_of_the_paper(invoke):
    result, _folder = invoke([made("good", {}, "Li 6-11")], "--list")
    assert re.search(r"good\s+Li 6-11\s+about", result.output)


def test_the_page_of_experiments_lists_them_all():
    text = (Path(__file__).parents[2] / "docs" / "experiments.md").read_text()
    for name, experiment in EXPERIMENTS.items():
        assert f"| {name} | `windrow bench {name}` | {experiment.paper} |" in text
