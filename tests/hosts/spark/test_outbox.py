"""What leaves a task: to which shards, on which ports, and what is counted."""

import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from windrow.hosts.counters import Counter
from windrow.hosts.described import described
from windrow.hosts.spark.exchange import OUT, Kind, decode
from windrow.hosts.spark.outbox import Outbox, Outboxes, Route, Sender
from windrow.operators import Side
from windrow.operators.progress.meld import group_of
from windrow.planner import ByKeys
from windrow.progress import END, START, Punctuation

IDS = (0, 3, 5, 9)
NAMED = (("k", pl.String()), ("n", pl.Int64()))
OWNED = Route(7, 2, ByKeys(("k", "n")), IDS, NAMED)
ANYWHERE = Route(7, 2, ByKeys(("k", "n")), IDS)


def kinds(rows, kind):
    return [row for row in rows if row.kind == kind]


def rows_of(names):
    return pl.DataFrame({"k": [k for k, _ in names], "n": [n for _, n in names]}, schema=dict(NAMED))


groups = st.tuples(st.sampled_from([None, "", "a", "b", "long " * 5]), st.none() | st.integers(-5, 5))


@settings(deadline=None, max_examples=80)
@given(st.lists(groups, min_size=1, max_size=12))
def test_a_promise_about_a_group_goes_to_the_shard_that_has_its_rows(names):
    box, sender = Outbox(OWNED), Sender(0)
    data = list(box.data(rows_of(names), sender))
    place = {row: sent.shard for sent in data for row in decode(sent.blob, "rows").rows()}
    for value, name in enumerate(names):
        box.note(Punctuation(value, name))
    found = {}
    for row in kinds(box.last(sender), Kind.PROMISE):
        if row.blob is not None:
            found.setdefault(group_of(row.blob.decode()), []).append((row.shard, row.value))
    strongest = {name: max(v for v, n in enumerate(names) if n == name) for name in names}
    assert found == {name: [(place[name], value)] for name, value in strongest.items()}


def test_without_names_a_promise_about_a_group_goes_to_all_shards():
    box, sender = Outbox(ANYWHERE), Sender(0)
    box.note(Punctuation(4, ("a", 1)))
    about = [row for row in box.last(sender) if row.blob is not None]
    assert [(row.shard, row.port, row.value) for row in about] == [(shard, 2, 4) for shard in IDS]
    assert sender.counts[Counter.PROMISES_SENT] == 4


def test_who_has_all_rows_of_a_group_speaks_for_every_shard():
    """The next stage has a port for each shard; the others have nothing to say about the group."""
    box = Outbox(OWNED, ports=(2, 3, 4, 5))
    box.note(Punctuation(4, ("a", 1)))
    about = [row for row in box.last(Sender(0)) if row.blob is not None]
    assert [row.port for row in about] == [2, 3, 4, 5]
    assert len({row.shard for row in about}) == 1


def test_promises_about_everyone_go_to_all_shards_even_if_they_say_nothing():
    box, sender = Outbox(ANYWHERE), Sender(0)
    silent = list(box.last(sender))
    assert [(row.shard, row.kind, row.value) for row in silent] == [(shard, Kind.PROMISE, START) for shard in IDS]
    assert sender.counts[Counter.PROMISES_SENT] == 0
    for value in (5, 9, 7):
        box.note(Punctuation(value))
    assert [row.value for row in box.last(sender)] == [9] * len(IDS)
    assert sender.counts[Counter.PROMISES_SENT] == len(IDS)


def test_an_end_is_sent_with_how_far_the_stream_came():
    box, sender = Outbox(ANYWHERE), Sender(0)
    box.note(Punctuation(5))
    box.note(Punctuation(END, reached=12))
    mine = [(row.kind, row.value) for row in box.last(sender) if row.shard == IDS[0]]
    assert mine == [(Kind.PROMISE, 5), (Kind.PROMISE, END), (Kind.REACHED, 12)]
    assert sender.counts[Counter.PROMISES_SENT] == 2 * len(IDS)


def test_evidence_goes_to_all_shards_and_marks_to_one():
    box, frame = Outbox(ANYWHERE), pl.DataFrame({"e": [1]})
    evidence = list(box.evidence(frame, Sender(0)))
    assert [(row.shard, row.stage, row.port, row.kind) for row in evidence] == [(s, 7, 2, Kind.EVIDENCE) for s in IDS]
    assert all(decode(row.blob, "evidence").equals(frame) for row in evidence)
    [marks] = box.marks(frame, Sender(0))
    assert (marks.shard, marks.kind) == (IDS[0], Kind.MARKS)


def test_without_a_stage_rows_are_results_and_there_is_nobody_to_promise_to():
    box, sender = Outbox(Route()), Sender(0, home=5)
    [row] = box.data(pl.DataFrame({"x": [1, 2]}), sender)
    assert (row.shard, row.stage, row.kind, row.value) == (5, OUT, Kind.RESULT, 2)
    box.note(Punctuation(4))
    box.note(Punctuation(4, ("a", 1)))
    frame = pl.DataFrame({"x": [1]})
    assert [*box.last(sender), *box.evidence(frame, sender), *box.marks(frame, sender)] == []
    assert sender.counts[Counter.ROWS_OUT] == 2
    assert sender.counts[Counter.PROMISES_SENT] == 0


def test_tags_tell_the_rows_of_tasks_apart_and_order_those_of_one():
    senders = [Sender(part) for part in range(3)]
    tags = [[sender.tag() for _ in range(5)] for sender in senders]
    assert all(found == sorted(set(found)) for found in tags)
    assert len({tag for found in tags for tag in found}) == 15


def test_counts_go_out_and_one_is_always_there():
    sender = Sender(0)
    assert [(row.port, row.value) for row in sender.counted()] == [(Counter.ROWS_IN.number, 0)]
    sender.counts[Counter.ROWS_LATE] += 3
    assert {(row.port, row.value, row.kind, row.stage) for row in sender.counted()} == {
        (Counter.ROWS_IN.number, 0, Kind.COUNT, OUT),
        (Counter.ROWS_LATE.number, 3, Kind.COUNT, OUT),
    }


# -- several outboxes --------------------------------------------------------------------------------------------------
def test_items_go_to_every_outbox_behind_their_node():
    boxes = [Outbox(ANYWHERE), Outbox(Route()), Outbox(Route(8, 0, ByKeys(), IDS))]
    out = Outboxes(Sender(0), boxes, {4: [0, 2], 5: [1]})
    rows = list(out.rows([(4, rows_of([("a", 1)])), (4, Punctuation(6)), (5, rows_of([]))]))
    assert sorted(row.stage for row in rows) == [7, 8]
    assert [box.promised for box in boxes] == [6, START, 6]


def test_evidence_goes_to_all_who_judge_a_source_and_its_marks_to_the_first():
    boxes = [Outbox(ANYWHERE), Outbox(Route(8, 1, ByKeys(), IDS[:2]))]
    out = Outboxes(Sender(0), boxes, {}, evidence={1: [0, 1]})
    frame = pl.DataFrame({"e": [1]})
    rows = list(out.rows([(1, Side("evidence", 0, frame)), (1, Side("marks", 0, frame)), (1, Side("marks", 0, frame))]))
    assert [(row.stage, row.shard) for row in rows] == [(7, s) for s in IDS] + [(8, s) for s in IDS[:2]]
    [marks] = kinds(out.last(), Kind.MARKS)
    assert (marks.stage, marks.shard, decode(marks.blob, "marks").height) == (7, IDS[0], 2)


@pytest.mark.parametrize(("node", "counted"), [(1, 2), (2, 0)])
def test_silent_nodes_say_what_another_one_says_and_are_not_counted(node, counted):
    late = pl.DataFrame({"x": [1, 2]})
    out = Outboxes(Sender(0), [], {}, silent=frozenset({2}))
    rows = list(out.rows([(node, Side("late", 2, late))]))
    assert out.sender.counts[Counter.ROWS_LATE] == counted
    assert [(row.kind, row.stage) for row in rows] == ([(Kind.LATE, OUT)] if counted else [])


def test_bad_rows_of_a_shard_go_out_and_those_of_a_source_are_only_counted():
    bad = pl.DataFrame({"x": [1], "@t": [2], "reason": ["why"]})
    out = Outboxes(Sender(0), [], {}, stage_of={3: 12})
    assert list(out.rows([(1, Side("bad", 1, bad))])) == []
    [row] = out.rows([(3, Side("bad", 1, bad))])
    assert decode(row.blob, "bad rows").rows() == [("stage 12", "why", '{"x":1}')]
    assert out.sender.counts[Counter.ROWS_BAD] == 2


def test_bad_rows_without_columns_are_described_too():
    assert described(pl.DataFrame({"reason": ["why"], "@t": [1]}), "stage 3").rows() == [("stage 3", "why", "{}")]
