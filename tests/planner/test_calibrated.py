"""Unit costs of joins: measured by an injected timer, kept in a file, and used if they are of this machine."""

import json
from dataclasses import asdict, fields, replace
from itertools import count

import pytest
from typer.testing import CliRunner

from windrow.cli import app, calibrate, doctor
from windrow.operators.joins.costs import Unit
from windrow.operators.ring.costs import Unit as RingUnit
from windrow.planner.choose import calibrated
from windrow.planner.choose.measured_costs import NANO, Stopwatch, measured

run = CliRunner().invoke


@pytest.fixture
def file(tmp_path, monkeypatch):
    monkeypatch.delenv(calibrated.PLACE)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    return tmp_path / "windrow" / calibrated.FILE


def steady(seconds):
    """A timer by which everything takes as long."""
    ticks = count()
    return lambda: next(ticks) * seconds


def test_each_cost_is_measured_with_the_timer_that_is_given():
    said = []
    unit = measured(Stopwatch(steady(1e-3), rounds=2), lambda name, done: said.append((name, done)))
    assert unit.call == unit.run == pytest.approx(1e6)  # 1 ms each
    assert unit.scan * 8192 * 512 == pytest.approx(1e6)
    assert unit.chase * 128 * 2048 == pytest.approx(1e6)
    assert unit.sort == unit.chain == 1e-3  # as long with as without: the least that is believed
    assert {name for name, _ in said} == {each.name for each in fields(Unit)}
    assert [done for _, done in said] == sorted(done for _, done in said)
    assert all(0 < cost < 1e9 for cost in asdict(unit).values())


def test_the_least_of_some_rounds_counts():
    times = iter([0, 5, 5, 7, 7, 10])
    assert Stopwatch(lambda: next(times), rounds=3).of(lambda: None) == 2 * NANO


def test_what_was_measured_is_used_on_this_machine_only(file, monkeypatch):
    assert calibrated.found() is calibrated.REFERENCE
    calibrated.write(Unit(scan=7), file)
    assert calibrated.found().unit == Unit(scan=7)
    monkeypatch.setattr(calibrated, "machine", lambda: "another one")
    assert calibrated.found() is calibrated.REFERENCE


@pytest.mark.parametrize(
    "text",
    [
        "",
        "[]",
        "{}",
        json.dumps({"format": 99, "machine": calibrated.machine(), "nanoseconds": asdict(Unit())}),
        json.dumps({"format": 1, "machine": calibrated.machine(), "nanoseconds": {"scan": 1}}),
        json.dumps({"format": 1, "machine": calibrated.machine(), "nanoseconds": asdict(replace(Unit(), run=-1.0))}),
    ],
)
def test_a_file_that_is_torn_or_of_another_version_is_not_used(file, text):
    file.parent.mkdir()
    file.write_text(text)
    assert calibrated.found() is calibrated.REFERENCE


def test_a_variable_names_another_file_or_none(file, tmp_path, monkeypatch):
    calibrated.write(Unit(scan=3), tmp_path / "other.json")
    monkeypatch.setenv(calibrated.PLACE, str(tmp_path / "other.json"))
    assert calibrated.found().unit.scan == 3
    monkeypatch.setenv(calibrated.PLACE, "none")
    assert calibrated.place() is None


def test_the_command_writes_what_it_measures_and_doctor_shows_it(file, monkeypatch):
    monkeypatch.setattr(calibrate, "Stopwatch", lambda: Stopwatch(steady(1e-3), rounds=1))
    monkeypatch.setattr(calibrate, "_hop", lambda: 5e-5)  # it starts two processes
    [before] = [f for f in doctor.examine() if f.what == "costs of joins"]
    assert before.advice == "windrow calibrate measures them here"
    result = run(app, ["calibrate", "--json"])
    assert result.exit_code == 0
    shown = json.loads(result.stdout.splitlines()[-1])
    assert shown["file"] == str(file)
    assert calibrated.found().unit == Unit(**shown["nanoseconds"])
    assert calibrated.found().ring == RingUnit(**shown["ring_seconds"])
    assert shown["ring_seconds"]["hop"] == 5e-5
    assert shown["ring_seconds"]["send"] == pytest.approx(1e-3 / 64)  # with a timer by which each run takes 1 ms
    [after] = [f for f in doctor.examine() if f.what == "costs of joins"]
    assert after.found.startswith("measured on this machine")
    assert "C_n: a row that nested loops look at" in " ".join(run(app, ["calibrate"]).output.split())
    assert "windrow calibrate --out costs.json" in " ".join(run(app, ["calibrate", "--help"]).output.split())


def test_it_does_not_measure_what_nobody_would_read():
    result = run(app, ["calibrate"])
    assert result.exit_code == 1
    assert "WINDROW_CALIBRATION is none" in str(result.exception)
