"""The archive of Spark's classes: used where it is whole and belongs to this Java, else passed over."""

import os

import pytest

from windrow.cli.warm_up import in_another_process
from windrow.errors import PlanError
from windrow.hosts.spark import archive as module
from windrow.hosts.spark import java, session
from windrow.hosts.spark.archive import NONE, UNUSED, Archive, is_our_spark

JAVA = """#!/bin/sh
echo 'openjdk version "17.0.1"' >&2; echo 'Runtime (build 17.0.1+7-test, mixed mode)' >&2
"""


def installed(folder):
    command = folder / "bin" / "java"
    command.parent.mkdir(parents=True)
    command.write_text(JAVA)
    command.chmod(0o755)
    return str(command)


@pytest.fixture
def home(tmp_path, monkeypatch):
    """A place for archives, and an environment that says nothing about Spark."""
    for name in ("SPARK_HOME", "SPARK_CONF_DIR", "HADOOP_CONF_DIR", "PYSPARK_SUBMIT_ARGS"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr(module.sys, "prefix", str(tmp_path / "venv"))
    return tmp_path


@pytest.fixture(autouse=True)
def accepted(request, monkeypatch):
    """Java accepts every archive, unless a real one is asked."""
    if "soak" not in request.keywords:
        monkeypatch.setattr(module, "_is_taken", lambda options: True)


def warm_up(options):
    """What a Spark does that ends: it writes the classes to the file it was told."""
    file = options.split("-XX:ArchiveClassesAtExit=")[1]
    with open(file, "w") as out:
        out.write("classes")


def test_it_is_made_once_and_then_used(home):
    found = Archive(installed(home))
    assert found.options() == ""
    assert found.state() == NONE
    found.make(warm_up)
    assert f"-XX:SharedArchiveFile={found.classes} " in found.options()
    assert found.classes.parent == home / "venv" / "share" / "windrow"
    assert sorted(p.name for p in found.folder.iterdir()) == [f"{found.name}.jsa", f"{found.name}.json"]


def test_it_belongs_to_one_java_and_one_pyspark(home, monkeypatch):
    found = Archive(installed(home / "one"))
    assert "java-17.0.1+7-test" in found.name
    found.make(warm_up)
    assert Archive(installed(home / "other")).options() == ""  # another Java of the same version
    monkeypatch.setattr(module.importlib.metadata, "version", lambda name: "9.9.9")
    assert Archive(found.java).options() == ""


@pytest.mark.parametrize("damage", ["torn", "changed", "gone", "no manifest", "odd manifest"])
def test_a_damaged_one_is_passed_over_and_doctor_says_so(home, damage):
    found = Archive(installed(home))
    found.make(warm_up)
    if damage == "torn":
        found.classes.write_text("cl")
    elif damage == "changed":
        os.utime(found.classes, (1, 1))
    elif damage == "gone":
        found.classes.unlink()
    else:
        found.manifest.write_text("" if damage == "no manifest" else '["a"]')
    assert found.options() == ""
    assert found.state() == UNUSED


def test_a_java_that_does_not_accept_it_is_named_and_keeps_none(home, monkeypatch):
    found = Archive(installed(home))
    monkeypatch.setattr(module, "_is_taken", lambda options: False)
    with pytest.raises(PlanError, match=r"Java 17\.0\.1\+7-test .* does not accept it"):
        found.make(warm_up)
    assert found.state() == NONE
    assert list(found.folder.iterdir()) == []


def test_a_warm_up_that_fails_leaves_nothing_behind(home):
    found = Archive(installed(home))
    found.make(warm_up)
    with pytest.raises(PlanError, match="makes no archive"):
        found.make(lambda options: None)
    assert found.options() == ""
    assert found.state() == NONE


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("SPARK_HOME", "/opt/spark"),
        ("SPARK_CONF_DIR", "/etc/spark"),
        ("PYSPARK_SUBMIT_ARGS", "--driver-java-options x"),
    ],
)
def test_another_spark_and_its_settings_are_left_alone(home, monkeypatch, name, value):
    found = Archive(installed(home))
    found.make(warm_up)
    monkeypatch.setenv(name, value)
    assert not is_our_spark()
    assert found.options() == ""
    assert "not used" in found.state()
    with pytest.raises(PlanError, match="comes with PySpark"):
        found.make(warm_up)


def test_sessions_add_it_to_what_they_are_told(home):
    found = Archive(installed(home))
    found.make(warm_up)
    assert session._java_options("-Xmx2g", found.java).startswith(f"-Xmx2g -XX:SharedArchiveFile={found.classes}")
    own = "-XX:SharedArchiveFile=mine.jsa"
    assert session._java_options(own, found.java) == own


@pytest.mark.soak
def test_java_takes_what_a_real_spark_leaves(home):
    found = Archive(java.ensure())
    found.make(in_another_process)
    assert "in use" in found.state()
    found.classes.chmod(0o644)
    before = found.classes.read_bytes()
    found.classes.write_bytes(before[: len(before) // 2])
    found.manifest.write_text(module.json.dumps({found.classes.name: module._looks(found.classes)}))
    assert found.state() == UNUSED  # as large as its manifest says, and yet Java refuses it
