"""Rings in virtual time: results equal all combinations of rows, whoever is slow, late or dead; and what takes time."""

import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from test_ring import MOST_ROWS, NAMES, _holds, combinations, conditions, input_rows, rows, wishes

from windrow.hosts.ring.simulated import Simulation
from windrow.hosts.ring.simulated_machines import Machines
from windrow.hosts.ring.simulated_outcome import CAME, COUNTED, FOUND, NODE, Come, Death, exponential_deaths
from windrow.operators.ring.costs import Unit
from windrow.operators.ring.joining import Check, Joining
from windrow.operators.ring.layout import Wishes
from windrow.operators.ring.way import ATR, CTR, WAYS
from windrow.progress import END, Punctuation
from windrow.windows.multiway import Moment, Ranges

FREE = Unit(join=0, send=0, hop=0, insert=0, purge=0)


def no_copies(simulation):
    assert simulation.copies() == 0


@st.composite
def machines(draw, nodes):
    seconds = st.sampled_from([0.0, 1e-4, 3e-3])
    unit = Unit(*(draw(seconds) for _ in range(5)))
    slow = draw(st.dictionaries(st.integers(0, nodes - 1), st.sampled_from([0.5, 3.0, 20.0]), max_size=2))
    rates = st.sampled_from([1e3, 1e6, 125e6])
    return Machines(unit, byte=draw(seconds) / 1e3, bandwidth=draw(rates), jitter=draw(seconds), slow=slow)


@st.composite
def coming(draw, count):
    """What comes to the streams, in any order and at any time; and the rows that are not late."""
    waiting = []
    for _stream in range(count):
        listed = [(k, t, n) for n, (k, t) in enumerate(draw(input_rows)[: MOST_ROWS[count]])]
        waiting.append(draw(st.permutations(listed)))
    taken, come, promised, now = [[] for _ in range(count)], [], [-(10**9)] * count, 0.0
    while any(waiting):
        now += draw(st.sampled_from([0.0, 1e-3, 0.05]))
        port = draw(st.sampled_from([p for p, left in enumerate(waiting) if left]))
        size = draw(st.integers(1, len(waiting[port])))
        batch, waiting[port] = waiting[port][:size], waiting[port][size:]
        taken[port] += [row for row in batch if row[1] >= promised[port]]
        come.append(Come(now, port, rows(port, batch)))
        if draw(st.booleans()):
            least = min((t for _, t, _ in waiting[port]), default=50)
            promised[port] = max(promised[port], least + draw(st.sampled_from([0, 0, 0, 2])))
            come.append(Come(now, port, Punctuation(promised[port])))
    return taken, come + [Come(now, port, Punctuation(END)) for port in range(count)]


@settings(deadline=None, max_examples=1500)
@given(data=st.data())
def test_results_are_those_of_the_definition_whoever_is_slow_or_dies(data):
    draw = data.draw
    count = draw(st.sampled_from([2, 3, 3, 3, 4, 5, 6]))
    by_rows = tuple(draw(st.booleans()) and draw(st.booleans()) for _ in range(count))
    lengths = tuple(draw(st.sampled_from([1, 2, 3] if by else [1, 4, 15, 40])) for by in by_rows)
    ranges, keyed = Ranges(lengths, by_rows), draw(st.booleans())
    possible = conditions(count)
    names = draw(st.lists(st.sampled_from(sorted(possible)), max_size=3, unique=True))
    tests = tuple(possible[name][0] for name in names)
    moment = Moment(tuple(range(count)))
    joining = Joining(ranges, tuple((NAMES[i],) for i in range(count)), tests, ("k",) if keyed else (), moment)
    nodes, way = draw(st.integers(1, 8)), WAYS[draw(st.sampled_from(["ring", *sorted(WAYS)]))]
    wanted, flight = draw(wishes(nodes, count)), draw(st.sampled_from([1, 3, 64]))
    taken, come = draw(coming(count))
    times = draw(st.lists(st.floats(0, 2 * come[-1].at + 0.1), max_size=5))
    deaths = [Death(at, draw(st.integers(0, nodes - 1))) for at in times]
    arguments = joining, wanted, come, draw(machines(nodes)), way, flight, deaths
    outcome = Simulation(*arguments, recovery=0.01, watch=no_copies if way.name == "ring" else None, seed=1).run()

    true = [possible[name][1] for name in names]
    near = [*combinations(ranges, keyed, taken)]
    meant = [(*row.values(), moment.of(times)) for row, times in near if all(_holds(test, row) for test in true)]
    assert sorted(outcome.rows()) == sorted(meant)
    assert outcome.recoveries <= len(deaths)
    if meant:
        assert (outcome.found[CAME] <= outcome.found[FOUND]).all()
        assert (outcome.found[FOUND] <= outcome.found[COUNTED]).all()


# -- what takes time ---------------------------------------------------------------------------------------------------
def joining(streams=2, window=1000, tests=()):
    return Joining(Ranges((window,) * streams), tuple((name,) for name in NAMES[:streams]), tests)


def row(at, port, time, number=0):
    return Come(at, port, pl.DataFrame({"@t": [time], NAMES[port]: [number]}))


def steady(streams, count, every=0.0):
    """A row of each stream in turn, each with a promise of all streams; the streams' own numbers are their times."""
    come = []
    for time in range(count):
        at = every * time
        come.append(row(at, time % streams, time, time))
        come += [Come(at, port, Punctuation(time + 1)) for port in range(streams)]
    return come


def run(nodes, come, unit=FREE, streams=2, tests=(), window=1000, way=WAYS["ring"], most=None, **more):
    given_machines = {name: more.pop(name) for name in ("slow", "bandwidth", "byte", "row_bytes") if name in more}
    wanted = {name: more.pop(name) for name in ("relocation", "smoothing", "segment", "copies") if name in more}
    wished = Wishes(most or nodes, nodes, **wanted)
    return Simulation(joining(streams, window, tests), wished, come, Machines(unit, **given_machines), way, **more)


@pytest.mark.parametrize("nodes", [2, 5, 100])
def test_a_row_goes_round_a_free_ring_in_as_many_hops_as_there_are_nodes(nodes):
    hop = 1e-3
    outcome = run(nodes, steady(2, 1), Unit(0, 0, hop, 0, 0), bandwidth=1e15).run()
    # The row, its END behind it, and then the reports, which start when the END is back.
    assert outcome.makespan == pytest.approx(2 * nodes * hop)


def test_a_row_waits_for_the_round_before_it():
    hop, come = 1e-3, steady(2, 2)
    second = [each._replace(at=1e-4) for each in come[3:]]
    outcome = run(4, come[:3] + second, Unit(0, 0, hop, 0, 0), bandwidth=1e15).run()
    assert [(each.began, each.rows) for each in outcome.rounds] == [(0, 1), (pytest.approx(8 * hop), 1)]
    assert outcome.latencies() == pytest.approx([8 * hop - 1e-4])


def test_a_pair_takes_its_time_where_it_is_tried_and_results_leave_when_they_are_found():
    come = [row(0.0, 0, time, time) for time in range(4)] + [row(0.0, 1, 4, 9)]
    come += [Come(0.0, port, Punctuation(9)) for port in (0, 1)]
    outcome = run(1, come, Unit(1.0, 0, 0, 0, 0)).run()
    assert (outcome.makespan, outcome.busy, outcome.work[0].pairs) == (4.0, [4.0], 4)
    two = run(2, come, Unit(1.0, 0, 0, 0, 0), bandwidth=1e15).run()
    assert two.busy == [2.0, 2.0]  # slices of as many rows
    assert two.makespan == pytest.approx(2.0)
    assert sorted(two.found[NODE].unique()) == [0, 1]


def test_conditions_have_times_of_their_own():
    tests = (Check(("a", "b"), pl.col("a") < pl.col("b")), Check(("a", "b"), pl.col("a") != 0))
    come = [row(0.0, 0, time, time) for time in range(4)] + [row(0.0, 1, 4, 2)]
    come += [Come(0.0, port, Punctuation(9)) for port in (0, 1)]
    simulated = Simulation(joining(tests=tests), Wishes(1, 1), come, Machines(FREE, tests=(1.0, 10.0)))
    assert simulated.run().makespan == 4 * 1.0 + 2 * 10.0


def test_a_slow_node_slows_the_ring():
    come = steady(2, 40)
    even = run(4, come, Unit(1e-2, 0, 0, 0, 0)).run()
    slow = run(4, come, Unit(1e-2, 0, 0, 0, 0), slow={2: 5.0}).run()
    assert slow.rows() != []
    assert sorted(slow.rows()) == sorted(even.rows())
    assert slow.busy[2] == pytest.approx(5 * even.busy[2])
    assert slow.makespan > 2 * even.makespan


def test_cables_of_little_bandwidth_take_time_and_order_is_kept():
    come = steady(2, 20)
    outcome = run(2, come, bandwidth=1e4, row_bytes=1000).run()
    sent = outcome.sent[0, 1]
    assert sent > 20 * 1000
    assert outcome.makespan > sent / 1e4
    assert sorted(outcome.rows()) == sorted(run(2, come).run().rows())


def test_both_ends_take_time_for_a_message():
    outcome = run(2, steady(2, 1), Unit(0, 1.0, 0, 0, 0), bandwidth=1e15).run()
    # There and back: the layout, the row and its END, and the report; the layout ends at the last node.
    assert outcome.busy == [0.5 * (1 + 2 + 1 + 1 + 1), 0.5 * (1 + 2 + 1 + 1 + 1)]


@pytest.mark.parametrize("relocation", ["passive", "aggressive"])
def test_nodes_join_and_leave(relocation):
    """While rows come: with each number of nodes a simulation of its own, from the state of the one before."""
    come, meant = steady(3, 90), run(1, steady(3, 90), streams=3, window=36).run()
    before, found, spread = None, [], []
    for nodes, part in ((2, come[:120]), (6, come[120:240]), (3, come[240:])):
        each = run(nodes, part, streams=3, window=36, most=6, relocation=relocation, watch=no_copies)
        if before is not None:
            each.restore(before)
        outcome = each.run()
        before, found = each.snapshot(), found + outcome.rows()
        spread.append([sum(s.live for s in node.slices) for node in each.nodes])
    assert sorted(found) == sorted(meant.rows())
    assert [sum(rows > 0 for rows in each) for each in spread] == [2, 6, 3]


def test_state_moves_at_once_to_nodes_that_join_and_from_nodes_that_leave_only_if_it_is_asked_for():
    come = steady(2, 110)
    rows = {}
    for relocation in ("passive", "aggressive"):
        for before, after in ((1, 4), (4, 1)):
            first = run(before, come[:300], window=100, most=4, relocation=relocation)
            first.run()
            second = run(after, come[300:], window=100, most=4, relocation=relocation)
            second.restore(first.snapshot())
            second.run()
            rows[relocation, after] = [sum(state.live for state in node.slices) for node in second.nodes]
    assert rows["aggressive", 1] == [100, 0, 0, 0]
    assert rows["passive", 1][0] < 50  # what the others hold leaves as it grows old
    # A node that joins gets what is too old for the shorter slices before it, and that is all of it.
    assert max(rows["aggressive", 4]) < 30
    assert max(rows["passive", 4]) < 30


# -- deaths ------------------------------------------------------------------------------------------------------------
def test_a_round_that_dies_runs_again_and_its_results_count_once():
    come, unit = steady(2, 6, every=1.0), Unit(0.1, 0, 0, 0, 0)
    quiet = run(3, come, unit).run()
    at = quiet.rounds[4].began + 0.01  # in the fifth round
    outcome = run(3, come, unit, deaths=[Death(at, 2)], recovery=10.0).run()
    assert outcome.recoveries == 1
    assert sorted(outcome.rows()) == sorted(quiet.rows())
    assert outcome.rounds[:4] == quiet.rounds[:4]
    assert outcome.rounds[4].began == at + 10.0  # with all that has come meanwhile
    assert [each.rows for each in outcome.rounds[4:]] == [2]


def test_many_deaths():
    come = steady(3, 60, every=0.05)
    quiet = run(4, come, Unit(1e-3, 1e-3, 1e-3, 0, 0), streams=3, window=20).run()
    deaths = exponential_deaths(0.5, 20.0, 4, seed=3)
    outcome = run(4, come, Unit(1e-3, 1e-3, 1e-3, 0, 0), streams=3, window=20, deaths=deaths, recovery=0.1).run()
    assert outcome.recoveries > 3
    assert sorted(outcome.rows()) == sorted(quiet.rows())
    assert outcome.latencies().mean() > quiet.latencies().mean()


# -- state -------------------------------------------------------------------------------------------------------------
def test_the_state_of_a_ring_does_not_grow_with_its_nodes_and_that_of_the_other_ways_does():
    come, most = steady(2, 300), {}
    for way, nodes in ((WAYS["ring"], 1), (WAYS["ring"], 8), (ATR, 8), (CTR, 8)):
        seen = []
        outcome = run(
            nodes,
            come,
            window=100,
            way=way,
            segment=10,
            copies=3,
            flight=1,
            watch=lambda s, seen=seen: seen.append(s.copies()),
        ).run()
        most[way.name, nodes] = outcome.most_rows, max(seen)
    assert most["ring", 1] == (100, 0)
    assert most["ring", 8][1] == 0
    assert most["ring", 8][0] <= 110
    assert most["atr", 8][1] > 20
    assert most["ctr", 8][1] > 150


def test_the_same_seed_gives_the_same_run():
    come = steady(2, 30)
    outcomes = [Simulation(joining(), Wishes(3, 3), come, Machines(jitter=0.01), seed=seed).run() for seed in (1, 1, 2)]
    assert outcomes[0].found.equals(outcomes[1].found)
    assert outcomes[0].makespan == outcomes[1].makespan != outcomes[2].makespan


def test_a_thousand_nodes():
    outcome = run(1000, steady(2, 8), Unit(1e-3, 3e-5, 6e-5, 2e-6, 2e-6)).run()
    assert len(outcome.rows()) == 16
    assert len(outcome.busy) == 1000
