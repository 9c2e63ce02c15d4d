"""Rows that kill the process that tries them are found out, whichever node dies of them, and others are not."""

import json

import numpy as np
import pytest

from windrow.hosts.ring.watch import Deaths, FileWatch

PAIRS = [(n, m) for n in range(4) for m in range(5)]  # of stream 0 and stream 1, in the order in which they are tried


class KilledError(Exception):
    """The process is gone: nothing of it runs any more."""


def die(watch, folder):
    """Leave what a process leaves that is killed."""
    note = (folder / "note").read_bytes()
    watch.close(survived=False)
    (folder / "note").write_bytes(note)


def attempt(folder, nodes, deadly):
    """All nodes begin, meet, and try their pairs at the same time. Returns whether all came to the end, and what was
    refused.
    """
    watches = [FileWatch(folder / str(node)) for node in range(nodes)]
    for watch in watches:
        watch.gather()
    refused, alive = set(), True
    for node, watch in enumerate(watches):
        try:
            refused |= tried(watch, PAIRS[node::nodes], deadly)
        except KilledError:
            alive = False
    for node, watch in enumerate(watches):
        if alive:
            watch.close(survived=True)
        else:
            die(watch, folder / str(node))
    return alive, refused


def tried(watch, pairs, deadly):
    left, refused = list(pairs), set()
    while left:
        numbers = [np.array([pair[stream] for pair in left]) for stream in (0, 1)]
        gone = watch.refused(0, numbers)
        if gone is not None:
            refused |= {pair for pair, each in zip(left, gone, strict=True) if each}
            left = [pair for pair, each in zip(left, gone, strict=True) if not each]
            continue
        count = watch.before(0, numbers)
        if any(deadly(pair) for pair in left[:count]):
            raise KilledError
        watch.after()
        left = left[count:]
    return refused


@pytest.mark.parametrize("nodes", [1, 2, 3])
def test_a_row_that_kills_is_set_aside_after_three_deaths_at_the_most(tmp_path, nodes):
    deaths = 0
    while not (result := attempt(tmp_path, nodes, lambda pair: pair[0] == 2))[0]:
        deaths += 1
    assert deaths == (3 if nodes == 1 else 2)  # two nodes die of it at the same time
    assert {row for row, _ in result[1]} == {2} or nodes == 1
    again, refused = attempt(tmp_path, nodes, lambda pair: pair[0] == 2)  # the next round, after a restart
    assert again
    assert refused == result[1]


def test_who_died_of_something_else_sets_nothing_aside(tmp_path):
    """The first call of the node is interrupted once, and goes well when its pairs are tried one by one."""
    alive, _ = attempt(tmp_path, 2, lambda pair: pair == (0, 0))
    assert not alive
    assert attempt(tmp_path, 2, lambda _pair: False) == (True, set())
    for node in "01":
        record = tmp_path / node / "deaths.json"
        assert not record.exists() or json.loads(record.read_text()) == {"calls": [], "aside": []}


def test_of_a_pair_that_row_is_meant_that_kills_with_others_too():
    deaths = Deaths([((0, 0), (3, 4)), ((2, 1), (2, 1)), ((2, 3), (2, 3))])
    assert deaths.found_out() == {(0, 2)}
    assert Deaths.read(deaths.written()) == deaths


def test_calls_are_whole_where_nothing_is_suspicious(tmp_path):
    watch = FileWatch(tmp_path / "0")
    watch.gather()
    numbers = [np.arange(10), np.arange(10)]
    assert watch.before(0, numbers) == 10
    die(watch, tmp_path / "0")
    watch = FileWatch(tmp_path / "0")
    watch.gather()
    assert watch.before(0, [np.arange(7, 20), np.arange(7, 20)]) == 1
    assert watch.before(0, [np.arange(5) + 20, np.arange(5)]) == 5
    watch.close(survived=True)
