"""Nodes over TCP: what is sent arrives, nobody else is let in, and who has gone is named."""

import socket
import threading

import polars as pl
import pytest

from windrow.hosts.ring.greeting import HELLO, MAGIC
from windrow.hosts.ring.links import Address, Listener, LostError, TcpLinks
from windrow.operators.ring.joining import Joining
from windrow.operators.ring.layout import Wishes
from windrow.operators.ring.messages import Kind, Message, Payload
from windrow.operators.ring.ring import Ring
from windrow.progress import Punctuation
from windrow.windows.multiway import Ranges

SECRET = b"s" * 32


def ring(nodes, secrets=None, patience=5.0):
    listeners = [Listener() for _ in range(nodes)]
    addresses = [listener.address for listener in listeners]
    secrets = secrets or [SECRET] * nodes
    return [TcpLinks(n, listeners[n], addresses, secrets[n], patience) for n in range(nodes)]


@pytest.fixture
def two():
    links = ring(2)
    yield links
    for each in links:
        each.close()


def message(number, rows=3, text="x"):
    frame = pl.DataFrame({"n": [number] * rows, "text": [text] * rows, "b": [b"\x00\xff"] * rows})
    return Message(Kind.PARTIALS, number, 1, 2, True, {"0:0.1": Payload(frame)}, {"cuts": [[1, 2], [3]]})


def test_messages_arrive_as_they_are_in_order(two):
    sent = [message(n, rows=1 + n * 1000, text="ab" * n) for n in range(5)]
    for each in sent:
        two[0].send(1, each)
        two[0].send(0, each)
    for node in (1, 0):
        for each in sent:
            found = two[node].receive(wait=True)
            assert (found.kind, found.train, found.sender, found.level, found.end) == (
                Kind.PARTIALS,
                each.train,
                1,
                2,
                True,
            )
            assert found.values == {"cuts": [[1, 2], [3]]}
            assert found.frames["0:0.1"].frame.equals(each.frames["0:0.1"].frame)
    assert two[1].receive(wait=False) is None


def test_what_is_only_passed_on_is_not_unpacked(two):
    two[0]._connected(1).squeeze.network = 1.0  # so slow that all that is large is compressed
    large = message(7, rows=20_000)
    two[0].send(1, large)
    found = two[1].receive(wait=True)
    payload = found.frames["0:0.1"]
    assert payload._packed is not None
    two[1].send(0, found)
    assert payload._frame is None
    assert two[0].receive(wait=True).frames["0:0.1"].frame.equals(large.frames["0:0.1"].frame)


def test_more_than_there_is_room_for_makes_the_sender_wait(two):
    two[0].room = 1000
    done = threading.Event()

    def send():
        for n in range(300):
            two[0].send(1, message(n, rows=10_000))
        done.set()

    threading.Thread(target=send, daemon=True).start()
    assert two[1].receive(wait=True).train == 0
    assert not done.is_set()  # 100 MB, and the kernel holds a few of them
    assert [two[1].receive(wait=True).train for _ in range(299)] == list(range(1, 300))
    assert max(two[0].most, two[1].inbox.most) < 10_000_000
    done.wait()


def test_a_message_that_is_larger_than_the_room_passes(two):
    for each in two:
        each.room = 1000
    large = [message(n, rows=200_000 * (n + 1)) for n in range(2)]  # 6 and 12 MB
    sender = threading.Thread(target=lambda: [two[0].send(1, each) for each in large], daemon=True)
    sender.start()
    for each in large:
        assert two[1].receive(wait=True).frames["0:0.1"].frame.equals(each.frames["0:0.1"].frame)
    sender.join()


def test_who_waits_to_send_hears_that_a_node_has_gone(two):
    two[0].room = 1000
    two[0].send(1, message(0))
    assert two[1].receive(wait=True).train == 0
    failed = []

    def send():
        try:
            for n in range(100):
                two[0].send(1, message(n, rows=10_000))
        except LostError as error:
            failed.append(str(error))

    sender = threading.Thread(target=send, daemon=True)
    sender.start()
    two[1].close(goodbye=False)
    sender.join()
    [text] = failed
    assert text.startswith(f"node 1 at {two[0].addresses[1]} has gone")


def test_nodes_that_all_send_more_than_there_is_room_for_go_on():
    links = ring(3)
    for each in links:
        each.room = 1000
    got = [[] for _ in links]

    def run(n):
        for i in range(100):
            links[n].send((n + 1) % 3, message(i, rows=10_000))
        got[n] = [links[n].receive(wait=True).train for _ in range(100)]

    threads = [threading.Thread(target=run, args=(n,)) for n in range(3)]
    for each in threads:
        each.start()
    for each in threads:
        each.join()
    assert got == [list(range(100))] * 3
    for each in links:
        each.close()


def test_a_node_that_goes_without_goodbye_is_named(two):
    two[0].send(1, message(1))
    assert two[1].receive(wait=True).train == 1
    two[0]._out[1].socket.close()
    with pytest.raises(LostError, match=f"node 0 at {two[0].listener.address} has gone"):
        two[1].receive(wait=True)


def test_who_waits_for_nothing_can_ask_whether_all_are_there(two):
    two[0].send(1, message(1))
    assert two[1].next_kind() == Kind.PARTIALS
    assert two[1].next_kind() == Kind.PARTIALS  # it is still there
    two[0]._out[1].socket.close()
    assert two[1].receive(wait=True).train == 1
    with pytest.raises(LostError, match="has gone"):
        two[1].next_kind()
    with pytest.raises(LostError, match="has gone"):
        two[1].check()
    two[0].check()


def test_a_goodbye_is_no_loss(two):
    two[0].send(1, message(1))
    two[0].close()
    assert two[1].receive(wait=True).train == 1
    two[1].send(1, message(2))
    assert two[1].receive(wait=True).train == 2


def test_who_only_sends_to_a_node_hears_that_it_has_gone(two):
    two[0].send(1, message(1))
    assert two[1].receive(wait=True).train == 1
    two[1].close(goodbye=False)
    with pytest.raises(LostError, match=f"node 1 at {two[0].addresses[1]} has gone"):
        two[0].receive(wait=True)


def test_who_only_sends_to_a_node_can_do_without_it_after_its_goodbye(two):
    two[0].send(1, message(1))
    assert two[1].receive(wait=True).train == 1
    two[1].close()
    two[0].send(0, message(2))
    assert two[0].receive(wait=True).train == 2
    two[0].inbox.read(wait=True)
    assert two[0].receive(wait=False) is None


def test_the_nodes_of_a_ring_name_the_one_that_dies():
    links = ring(3)
    joining = Joining(Ranges((5, 5)), (("a",), ("b",)))
    said = {}

    def run(node):
        mine = Ring(joining, Wishes(3, 3))
        mine.connect(links[node])
        for port in (0, 1):
            mine.on_batch(port, pl.DataFrame({"@t": range(100), "ab"[port]: range(100)}))
            mine.on_punctuation(port, Punctuation(100))
        try:
            mine.on_flush()
        except LostError as error:
            said[node] = str(error)
            links[node].close(goodbye=False)

    threads = [threading.Thread(target=run, args=(node,), daemon=True) for node in (0, 1)]
    for each in threads:
        each.start()
    assert links[2].receive(wait=True).kind == Kind.SETUP
    links[2].close(goodbye=False)
    for each in threads:
        each.join()
    assert said[1].startswith(f"node 2 at {links[0].addresses[2]} has gone")
    assert said[0].startswith(f"node 1 at {links[0].addresses[1]} has gone")


def test_a_node_that_does_not_listen_is_named_with_its_address():
    listener = Listener()
    nobody = socket.create_server(("127.0.0.1", 0))
    address = Address("127.0.0.1", nobody.getsockname()[1])
    nobody.close()
    links = TcpLinks(0, listener, [listener.address, address], SECRET, patience=0.2)
    with pytest.raises(LostError, match=f"has not reached node 1 at {address} within 0.2 s"):
        links.send(1, message(1))
    links.close()


def test_who_does_not_know_the_secret_is_not_let_in():
    links = ring(2, [SECRET, b"other" * 7], patience=0.3)
    with pytest.raises(LostError, match="has not reached node 1"):
        links[0].send(1, message(1))
    with socket.create_connection((links[1].listener.address.host, links[1].listener.address.port)) as stranger:
        stranger.sendall(HELLO.pack(MAGIC, 0, bytes(16)) + bytes(32))
        stranger.settimeout(5)
        data = b""
        while more := stranger.recv(1000):
            data += more
    assert len(data) == HELLO.size  # a challenge, and no answer
    assert links[1].receive(wait=False) is None
    for each in links:
        each.close()
