"""The jars of a broker: those of the list and no others."""

import ssl

import pytest

from windrow.errors import PlanError
from windrow.testing import jars


@pytest.fixture
def empty(tmp_path, monkeypatch):
    monkeypatch.setenv("WINDROW_CACHE", str(tmp_path))
    monkeypatch.setattr(jars, "locked", lambda: [jars.Jar("g", "kafka-clients", "1", WANTED)])
    return tmp_path


WANTED = "2cf24dba5fb0a30e26e83b2ac5b9e29e1b161e5c1fa7425e73043362938b9824"  # of "hello"


def gives(monkeypatch, content):
    """What Maven Central has."""
    asked = []

    def fetch(wanted, work, into):
        asked.append(wanted)
        into.mkdir()
        (into / wanted[0].file).write_bytes(content)

    monkeypatch.setattr(jars, "_fetch", fetch)
    return asked


def test_jars_are_fetched_once_and_again_if_they_have_changed(empty, monkeypatch):
    asked = gives(monkeypatch, b"hello")
    folder = jars.fetched()
    assert folder == jars.fetched() == empty / "kafka-1"
    assert len(asked) == 1
    (folder / "kafka-clients-1.jar").write_bytes(b"hell")
    jars.fetched()
    assert len(asked) == 2
    assert [path.name for path in folder.iterdir()] == ["kafka-clients-1.jar"]


def test_other_jars_than_those_of_the_list_are_refused(empty, monkeypatch):
    gives(monkeypatch, b"evil")
    with pytest.raises(PlanError, match=r"kafka-clients-1.jar is not what kafka.lock says"):
        jars.fetched()
    assert [path.name for path in empty.iterdir()] == [".kafka-1"]  # whose lock keeps others out


def test_the_list_has_each_jar_once():
    found = [jar.file for jar in jars.locked()]
    assert len(found) == len(set(found)) == 45
    assert {"kafka_2.13-4.2.1.jar", "kafka-clients-4.2.1.jar"} <= set(found)


def test_java_trusts_what_this_machine_trusts():
    """The store begins as Java wants it, and has all certificates."""
    known = ssl.create_default_context().get_ca_certs(binary_form=True)
    store = jars.trusted(known)
    assert store[:8] == bytes.fromhex("feedfeed00000002")
    assert int.from_bytes(store[8:12], "big") == len(known)
    assert all(each in store for each in known)
