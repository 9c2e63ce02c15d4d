"""``windrow bench`` and its gallery, with experiments that measure nothing."""

import base64
import json
import re
from pathlib import Path

import pytest
from typer.testing import CliRunner

from windrow.bench import EXPERIMENTS, Experiment, Outcome
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
