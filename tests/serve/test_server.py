"""The process around a session: the folder, loopback, signals and a clean end."""

import os
import signal
import socket
import stat
import subprocess
import sys
from pathlib import Path

import pytest
from fake_session import FakeSession

from windrow.errors import WindrowError
from windrow.serve.folder import Folder
from windrow.serve.server import address_of, listening, serve

PROGRAM = """
import sys
from fake_session import FakeSession
from windrow.serve.folder import Folder
from windrow.serve.server import listening, serve

class Loud(FakeSession):
    def stop(self):
        print("stopped", flush=True)

folder = Folder(sys.argv[1])
with folder.claimed(), listening("127.0.0.1", 0) as listener:
    serve(Loud(), folder, listener, lambda address: print(address, flush=True))
"""


# -- the folder --------------------------------------------------------------------------------------------------------
def test_the_token_is_made_once_and_is_for_its_owner_alone(tmp_path):
    folder = Folder(tmp_path)
    token = folder.token()
    assert len(token) > 40
    assert stat.S_IMODE((tmp_path / "token").stat().st_mode) == 0o600
    assert Folder(tmp_path).token() == token
    assert [p.name for p in tmp_path.iterdir()] == ["token"]


def test_a_token_that_protects_nothing_is_refused(tmp_path):
    folder = Folder(tmp_path)
    folder.token()
    (tmp_path / "token").chmod(0o644)
    with pytest.raises(WindrowError, match="open to other users: chmod 600"):
        folder.token()
    (tmp_path / "token").chmod(0o600)
    (tmp_path / "token").write_text("\n")
    with pytest.raises(WindrowError, match="is empty"):
        folder.token()


def test_a_folder_is_served_once_at_a_time(tmp_path, monkeypatch):
    monkeypatch.setattr("windrow.serve.folder.TRIES", 1)
    folder = Folder(tmp_path / "session")
    assert not folder.served()
    with folder.claimed():
        assert folder.served()
        with pytest.raises(WindrowError, match="already being served"), Folder(tmp_path / "session").claimed():
            pass
    assert not folder.served()
    with folder.claimed():
        pass


def test_an_address_that_a_dead_server_left_is_not_used(tmp_path):
    folder = Folder(tmp_path)
    folder.publish("http://127.0.0.1:1")
    with pytest.raises(WindrowError, match="no server runs over"):
        folder.read_address()


# -- loopback ----------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("host", ["0.0.0.0", "::", "192.168.0.1", "example.org", ""])
def test_only_loopback_is_listened_on(host):
    with pytest.raises(WindrowError, match="is not a loopback address"):
        listening(host, 0)


@pytest.mark.parametrize("host", ["127.0.0.1", "localhost", "127.0.0.2"])
def test_loopback_has_many_names(host):
    with listening(host, 0) as listener:
        assert listener.getsockname()[0].startswith("127.")
        assert address_of(listener) == "http://{}:{}".format(*listener.getsockname())


@pytest.mark.skipif(not socket.has_ipv6, reason="needs IPv6")
def test_addresses_of_ipv6_are_in_brackets():
    class Listener:
        def getsockname(self):
            return "::1", 8765, 0, 0

    assert address_of(Listener()) == "http://[::1]:8765"


def test_a_port_in_use_is_an_error():
    with listening("127.0.0.1", 0) as taken, pytest.raises(WindrowError, match="choose another --port"):
        listening("127.0.0.1", taken.getsockname()[1])


# -- the end -----------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_signals_stop_it_cleanly(tmp_path, number):
    paths = os.pathsep.join([str(Path(__file__).parent), *filter(None, sys.path)])
    command = [sys.executable, "-c", PROGRAM, str(tmp_path / "session")]
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env={**os.environ, "PYTHONPATH": paths}
    ) as child:
        address = child.stdout.readline().strip()
        assert (tmp_path / "session" / "address").read_text().strip() == address
        child.send_signal(number)
        out, err = child.communicate()
    assert (child.returncode, out, err) == (0, "stopped\n", "")
    assert not (tmp_path / "session" / "address").exists()


def test_a_session_that_stops_by_itself_ends_the_server_with_its_reason(tmp_path):
    session, folder, seen = FakeSession(), Folder(tmp_path), []

    def ready(address):
        seen.append((address, session.running))
        session.reason = "the disk is full"

    with (
        pytest.raises(WindrowError, match="the session has stopped: the disk is full"),
        folder.claimed(),
        listening("localhost", 0) as listener,
    ):
        serve(session, folder, listener, ready)
    assert [running for _, running in seen] == [True]
    assert not session.running
    assert not (tmp_path / "address").exists()


def test_a_session_that_does_not_start_is_stopped(tmp_path):
    class Ill(FakeSession):
        def start(self):
            super().start()
            raise WindrowError("the checkpoint is damaged")

    session = Ill()
    with pytest.raises(WindrowError, match="damaged"), listening("localhost", 0) as listener:
        serve(session, Folder(tmp_path), listener, lambda address: pytest.fail("it is not ready"))
    assert not session.running
