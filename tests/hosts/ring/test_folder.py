"""Files of a ring: a file is there as a whole or not at all, and one that is written once stays what it is."""

import threading

import pytest

from windrow.errors import CheckpointError
from windrow.hosts.ring.folder import Folder, TakenError


def test_a_file_is_replaced_unless_it_is_written_once(tmp_path):
    files = Folder(str(tmp_path / "new"))
    files.put("a", b"1")
    files.put("a", b"2")
    assert files.read("a") == b"2"
    files.put("b", b"1", once=True)
    with pytest.raises(TakenError):
        files.put("b", b"2", once=True)
    assert files.read("b") == b"1"
    assert sorted(files.names()) == ["a", "b"]  # no drafts
    assert bytes(files.mapped("b")) == b"1"


def test_of_several_that_write_at_once_one_succeeds(tmp_path):
    files, taken, start = Folder(str(tmp_path)), [], threading.Barrier(8)

    def put(number):
        start.wait()
        try:
            files.put("a", b"%d" % number, once=True)
        except TakenError:
            taken.append(number)

    threads = [threading.Thread(target=put, args=(number,)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(taken) == 7
    assert int(files.read("a")) not in taken


def test_names_may_have_folders(tmp_path):
    files = Folder(f"file:{tmp_path}")
    with files.writing("x/y", lasting=True) as out:
        out.write(b"1")
    files.move("x/y", "z/y")
    assert (files.has("x/y"), files.has("z/y"), files.has("z")) == (False, True, False)
    assert (files.names(), files.names("z"), files.names("none")) == ([], ["y"], [])
    files.delete("z/y")
    files.delete("z/y")
    assert files.names("z") == []
    with pytest.raises(FileNotFoundError):
        files.read("z/y")


def test_where_nodes_cannot_write_is_named():
    with pytest.raises(CheckpointError, match="they cannot reach dbfs://there"):
        Folder("dbfs://there")
