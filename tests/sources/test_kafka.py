"""A topic of a real broker, read a micro-batch at a time: exactly the offsets of a step, gaps, losses, promises."""

import json
import time
from dataclasses import replace
from threading import Thread

import polars as pl
import pytest
from stepped import Stepped

import windrow as wr
from windrow.errors import CheckpointError, DataError, PlanError
from windrow.hosts.counters import Counter
from windrow.hosts.spark.exchange import Kind, decode
from windrow.sources.kafka import reading
from windrow.sources.kafka.client import Client
from windrow.sources.kafka.offsets import Offsets, Range
from windrow.sources.kafka.reading import Reader
from windrow.sources.kafka.topic import Topic

SCHEMA = "t BIGINT, k STRING"
PATIENCE = "5 seconds"


@pytest.fixture
def name(request):
    return request.node.name.replace("[", "-").replace("]", "")[:100]


def messages(times, k="a"):
    return [json.dumps({"t": t, "k": k}).encode() for t in times]


def stream(broker, topic, **options):
    given = {"schema": SCHEMA, "slack": 0, "name": "s", "patience": PATIENCE, **options}
    return wr.read_kafka(broker.brokers, topic, "t", **given)


def counting(broker, topic, **options):
    return stream(broker, topic, **options).window(10).agg(n=wr.count())


def there(broker, topic):
    return Client(Topic(broker.brokers, topic, patience=5)).there()


def read(broker, topic, columns=("offset", "value"), ranges=None, **options):
    """All that a finite reader gives: what a step over everything reads."""
    found = Topic(broker.brokers, topic, patience=5, **options)
    offsets = Offsets().after(Client(found).there(), found)
    frames = list(Reader(found, columns).frames(offsets.ranges if ranges is None else ranges, offsets.id))
    return pl.concat(frames).rows() if frames else []


def until(moment, seconds=60):
    """Poll the broker, which compacts and removes when it likes."""
    deadline = time.monotonic() + seconds
    while not (found := moment()):
        assert time.monotonic() < deadline
        time.sleep(0.02)
    return found


def ends(results):
    return results.sort("window_end").select("window_end", "n").rows()


# -- offsets -----------------------------------------------------------------------------------------------------------
def test_each_message_is_read_once_over_steps_and_restarts(broker, name):
    broker.make(name, 2)
    broker.put(name, messages(range(40)), 0)
    broker.put(name, messages(range(100)), 1)
    run = Stepped(counting(broker, name, max_rows=35))
    found = [run.step()]
    run.restart()
    found.append(run.all())
    broker.put(name, messages(range(40, 100)), 0)
    run.restart()
    found.append(run.all(most=0))
    assert run.counts[Counter.ROWS_IN] == 200
    assert ends(pl.concat(found)) == [(end, 20) for end in range(10, 100, 10)]
    assert run.step() is None


def test_a_step_that_runs_again_reads_the_same_whatever_has_come(broker, name):
    broker.make(name, 2)
    broker.put(name, messages(range(50)), 0)
    run = Stepped(counting(broker, name))
    start, end = run.planned()

    def data():
        found = [row for row in run.rows(start, end) if row.kind == Kind.DATA]
        return [(row.tag, sorted(decode(row.blob, "rows").rows())) for row in found]

    first = data()
    broker.put(name, messages(range(50, 90)), 0)
    broker.widen(name, 3)
    broker.put(name, messages(range(90)), 2)
    run.restart()
    assert data() == first
    assert run.run(start, end).height == 0
    assert run.counts[Counter.ROWS_IN] == 50


def test_large_ranges_are_spread_over_tasks_and_cut_at_the_same_messages(broker, name, monkeypatch):
    monkeypatch.setattr("windrow.sources.kafka.offsets.LEAST", 10)
    monkeypatch.setattr(reading, "AT_ONCE", 7)
    broker.make(name, 2)
    broker.put(name, messages(range(100)), 0)
    broker.put(name, messages(range(20)), 1)
    run = Stepped(counting(broker, name), tasks=3)
    tasks = run.reader.partitions(*run.planned())
    assert [sum(end - start for _, start, end in task.ranges) for task in tasks] == [40, 40, 40]
    frames = list(Reader(run.source.topic, ["offset"]).frames(tasks[1].ranges, tasks[1].id))
    assert [frame.height for frame in frames] == [7, 7, 7, 7, 7, 5]
    assert pl.concat(frames)["offset"].to_list() == list(range(40, 80))


def test_available_now_ends_with_what_was_there(broker, name):
    broker.make(name)
    broker.put(name, messages(range(30)))
    run = Stepped(counting(broker, name, max_rows=20))
    run.reader.prepareForTriggerAvailableNow()
    run.step()
    broker.put(name, messages(range(30, 60)))
    run.all()
    assert run.counts[Counter.ROWS_IN] == 30


def test_latest_begins_at_the_end_and_a_new_partition_at_its_beginning(broker, name):
    broker.make(name)
    broker.put(name, messages(range(30)))
    run = Stepped(counting(broker, name, starting="latest"))
    assert run.step().height == 0  # it is logged where the stream begins
    broker.widen(name, 2)
    broker.put(name, messages(range(30, 40)))
    broker.put(name, messages(range(40)), 1)
    assert ends(run.all()) == [(10, 10), (20, 10), (30, 10)]
    assert run.counts[Counter.ROWS_IN] == 50


def test_positions_of_others_are_refused(broker, name):
    broker.make(name)
    run = Stepped(counting(broker, name))
    for given, why in (
        ({"files": 3}, "not one of wr.read_kafka"),
        ({"kafka": 99}, "format 99"),
        ({**run.planned()[1], "topic": "other"}, "of topic other"),
    ):
        run.offset = given
        with pytest.raises(CheckpointError, match=why):
            run.planned()


# -- gaps --------------------------------------------------------------------------------------------------------------
def transaction(broker, topic, values, how):
    producer = broker.producer(transactional_id=f"{topic}-{values[0]}")
    producer.init_transactions(60)
    producer.begin_transaction()
    for value in values:
        producer.produce(topic, value, partition=0)
    producer.flush(60)
    if how is not None:
        ended(broker, topic, producer, how)
    return producer


def ended(broker, topic, producer, how):
    """The transaction has ended, and the partition knows it."""
    getattr(producer, how)(60)
    until(lambda: (now := there(broker, topic)).end == now.high)


def test_aborted_and_open_transactions_leave_gaps_and_hold_back(broker, name):
    broker.make(name)
    broker.put(name, messages([1]))
    transaction(broker, name, messages([2, 3]), "commit_transaction")
    transaction(broker, name, messages([90, 91]), "abort_transaction")
    run = Stepped(counting(broker, name))
    assert run.step().height == 0
    assert run.counts[Counter.ROWS_IN] == 3
    assert Offsets.from_json(run.offset, run.source.topic).parts[0].end == there(broker, name).end[0] == 7
    waiting = transaction(broker, name, messages([15]), None)
    broker.put(name, messages([25]))
    assert run.step() is None  # it is behind the open transaction
    now = there(broker, name)
    assert now.end[0] < now.high[0]
    ended(broker, name, waiting, "commit_transaction")
    assert ends(run.step()) == [(10, 3), (20, 1)]
    assert run.step() is None


def test_a_step_over_aborted_messages_alone_reads_nothing(broker, name):
    broker.make(name)
    transaction(broker, name, messages([1, 2]), "abort_transaction")
    run = Stepped(counting(broker, name))
    assert run.step().height == 0
    assert run.counts[Counter.ROWS_IN] == 0
    assert run.step() is None


def test_compaction_leaves_gaps(broker, name):
    broker.make(name, cleanup_policy="compact", min_cleanable_dirty_ratio="0.0", segment_ms=1, max_compaction_lag_ms=1)
    for number in range(6):
        broker.put(name, messages([number]), key=b"k%d" % (number % 2))
    broker.put(name, messages([50]), key=b"other")
    kept = until(lambda: len(found := read(broker, name)) == 3 and found)
    assert [offset for _, offset in kept] == [4, 5, 6]
    assert [offset for _, offset in read(broker, name, ranges=[Range(0, 0, 5)])] == [4]
    assert read(broker, name, ranges=[Range(0, 1, 4)]) == []  # nothing is left of these
    run = Stepped(counting(broker, name))
    assert ends(run.step()) == [(10, 2)]


# -- losses ------------------------------------------------------------------------------------------------------------
def test_messages_removed_before_they_were_read_are_a_loss(broker, name):
    broker.make(name)
    broker.put(name, messages(range(20)))
    run, on = (Stepped(counting(broker, name, on_loss=how)) for how in ("error", "continue"))
    for each in (run, on):
        each.step()
    broker.put(name, messages(range(20, 40)))
    broker.forget(name, 0, 35)
    with pytest.raises(DataError, match=r"read up to offset 20, and now begins at 35.*on_loss='continue'"):
        run.step()
    assert ends(on.step()) == [(20, 10)]
    assert (on.counts[Counter.ROWS_LOST], on.counts[Counter.ROWS_IN]) == (15, 25)


def test_messages_removed_after_a_step_was_planned_are_a_loss_too(broker, name):
    broker.make(name)
    broker.put(name, messages(range(40)))
    run, on = (Stepped(counting(broker, name, on_loss=how)) for how in ("error", "continue"))
    steps = [each.planned() for each in (run, on)]
    broker.forget(name, 0, 30)
    with pytest.raises(DataError, match="read up to offset 0, and now begins at 30"):
        run.run(*steps[0])
    assert on.run(*steps[1]).height == 0
    assert (on.counts[Counter.ROWS_LOST], on.counts[Counter.ROWS_IN]) == (30, 10)


@pytest.mark.parametrize("planned", [False, True])
def test_a_topic_made_anew_is_another_topic(broker, name, planned):
    """``planned``: it happens between two steps, or between planning and running one."""
    broker.make(name, 2)
    broker.put(name, messages(range(20)))
    run, on = (Stepped(counting(broker, name, on_loss=how, max_rows=15)) for how in ("error", "continue"))
    steps = [each.planned() for each in (run, on)]
    if not planned:
        for each, step in zip((run, on), steps, strict=True):
            each.run(*step)
    broker.delete(name)
    until(lambda: name not in broker.admin.list_topics(timeout=5).topics)
    broker.make(name)
    broker.put(name, messages(range(20, 70)))
    with pytest.raises(DataError, match=r"was deleted and made anew: its id was .*on_loss='continue'"):
        run.run(*steps[0]) if planned else run.step()
    if planned:
        assert on.run(*steps[1]).height == 0
    assert ends(on.all(most=0))[-1] == (60, 10)
    assert on.counts[Counter.ROWS_IN] == 50 + (0 if planned else 15)
    assert on.counts[Counter.ROWS_LOST] == 5 + (15 if planned else 0)


def test_a_topic_that_is_not_there_is_named(broker, name):
    missing = replace(Topic(broker.brokers, name), patience=0.1)
    with pytest.raises(DataError, match=f"there is no topic {name} at"):
        Client(missing).there()


# -- the broker is away ------------------------------------------------------------------------------------------------
def test_a_broker_that_was_killed_comes_back_and_the_query_goes_on(broker, name):
    broker.make(name)
    broker.put(name, messages(range(30)))
    run = Stepped(counting(broker, name, patience="2 minutes"))
    step = run.planned()
    broker.kill()
    impatient = replace(run.source.topic, patience=0.1)
    with pytest.raises(DataError, match=r"have not answered for 0.1 s.*Nothing is lost"):
        Client(impatient).there()
    with pytest.raises(DataError, match=r"have not answered for 0.1 s|given no message of partition 0"):
        list(Reader(impatient, ["offset"]).frames([Range(0, 0, 30)], "any"))
    again = Thread(target=broker.start)  # while the query waits for it
    again.start()
    results = run.run(*step)
    again.join()
    assert ends(results) == [(10, 10), (20, 10)]
    broker.put(name, messages(range(30, 50)))
    assert ends(run.all()) == [(30, 10), (40, 10)]


# -- messages ----------------------------------------------------------------------------------------------------------
def test_messages_of_ten_megabytes(broker, name):
    broker.make(name, max_message_bytes=15_000_000)
    filler = "x" * 10_000_000
    broker.put(name, [json.dumps({"t": t, "k": filler}).encode() for t in (1, 2)] + messages([30]))
    sizes = stream(broker, name).select("t", size="length(k)").window(10).agg(n=wr.count(), most=wr.max("size"))
    assert Stepped(sizes).step().rows() == [(0, 10, 2, 10_000_000)]


def test_bad_messages_are_counted_and_shown_and_spoil_no_others(broker, name):
    broker.make(name, 2)
    bad = [b"oops", None, b'{"t": "soon"}', b"\xff", b'{"t": null}']
    broker.put(name, [each for pair in zip(messages(range(5)), bad, strict=True) for each in pair], 1, key=b"key")
    query = counting(broker, name, streaming=False)
    assert query.collect()["n"].to_list() == [5]
    shown = query.bad_rows().sort("offset")
    assert shown["offset"].to_list() == [1, 3, 5, 7, 9]
    assert shown["partition"].to_list() == [1] * 5
    assert shown["value"].to_list()[:4] == bad[:4]
    for reason, what in zip(
        shown["reason"].to_list(),
        ("is not JSON", "tombstone", "of type string, not number", "is not", "the progress value is NULL"),
        strict=True,
    ):
        assert what in reason
    run = Stepped(counting(broker, name))
    run.all()
    assert (run.counts[Counter.ROWS_IN], run.counts[Counter.ROWS_BAD]) == (10, 5)


def test_attributes_are_those_of_sparks_connector(broker, name):
    broker.make(name)
    broker.put(name, messages([5]), key=b"key", headers=[("h", b"1"), ("h", None)], timestamp=1_700_000_000_123)
    wanted = ("key", "topic", "timestamp", "timestampType", "headers")
    rows = stream(broker, name, attributes=wanted, prefix="kafka_", streaming=False, slack=None).collect()
    [row] = rows.drop("t", "k").to_dicts()
    stamp = row.pop("kafka_timestamp")
    assert row == {
        "kafka_key": b"key",
        "kafka_topic": name,
        "kafka_partition": 0,
        "kafka_offset": 0,
        "kafka_timestampType": 0,
        "kafka_headers": [{"key": "h", "value": b"1"}, {"key": "h", "value": None}],
    }
    assert stamp.timestamp() == 1_700_000_000.123
    by_time = wr.read_kafka(broker.brokers, name, "timestamp", schema=SCHEMA, streaming=False).window("1 minute")
    assert by_time.agg(n=wr.count()).collect()["n"].to_list() == [1]


def test_rows_are_numbered_by_partition_and_offset(broker, name):
    broker.make(name, 2)
    broker.put(name, messages(range(3), "a"), 0)
    broker.put(name, messages(range(10, 13), "b"), 1)
    last = stream(broker, name).rows(2, 1, partition_by="k").without_partial().agg(low=wr.min("t"))
    assert Stepped(last).step().sort("k", "low").select("k", "low").rows() == [("a", 0), ("a", 1), ("b", 10), ("b", 11)]


# -- promises ----------------------------------------------------------------------------------------------------------
def test_the_slowest_partition_says_how_far_the_stream_is(broker, name):
    broker.make(name, 2)
    broker.put(name, messages(range(100)), 0)
    run = Stepped(counting(broker, name))
    assert run.step().height == 0  # nothing is known of the other partition
    broker.put(name, messages([25]), 1)
    assert ends(run.step()) == [(10, 10), (20, 10)]
    broker.put(name, messages([24, 60]), 1)  # late by 1: its windows are released to 25
    assert [end for end, _ in ends(run.step())] == [30, 40, 50, 60]


def test_a_partition_that_comes_later_holds_the_stream_back_until_it_has_rows(broker, name):
    broker.make(name)
    broker.put(name, messages(range(20)))
    run = Stepped(counting(broker, name))
    assert [end for end, _ in ends(run.step())] == [10]
    broker.widen(name, 2)
    broker.put(name, messages(range(20, 60)))
    assert run.step().height == 0
    broker.put(name, messages([35, 80]), 1)
    assert [end for end, _ in ends(run.step())] == [20, 30, 40, 50]


def test_groups_of_a_partition_close_as_it_progresses(broker, name):
    broker.make(name, 2)
    broker.put(name, messages([1, 12], "quiet"), 0)
    run = Stepped(stream(broker, name).window(10).group_by("partition", "k").agg(n=wr.count()))
    assert run.step().rows() == [(0, "quiet", 0, 10, 1)]


def test_slack_is_of_each_partition(broker, name):
    broker.make(name, 2)
    broker.put(name, messages([50, 45, 60]), 0)
    broker.put(name, messages([5, 1, 20]), 1)
    run = Stepped(counting(broker, name, slack=5))
    assert ends(run.step()) == [(10, 2)]
    assert run.counts[Counter.ROWS_LATE] == 0


class Wants:
    """A query that always wants to know how far its source is."""

    def wants(self, now, last):
        return last > 0


def test_an_empty_partition_does_not_stall_a_source_that_is_asked(broker, name):
    """It has given all it had at some time, so what comes later is from then on, less the delay."""
    broker.make(name, 2)
    stamps = [json.dumps({"t": f"2024-01-01T00:00:{second:02}Z", "k": "a"}).encode() for second in range(60)]
    broker.put(name, stamps)
    options = {"schema": "t TIMESTAMP, k STRING", "slack": "0 seconds", "delay": "1 hour"}
    query = stream(broker, name, **options).window("10 seconds").agg(n=wr.count())
    run = Stepped(query, waiting=Wants())
    assert run.step()["n"].to_list() == [10] * 6
    asked = Offsets.from_json(run.offset, run.source.topic)
    assert all(at.reached for at in asked.parts.values())
    assert run.step().height == 0  # it is asked again, and that is in the offset
    assert Offsets.from_json(run.offset, run.source.topic).asked > asked.asked


def test_a_partition_that_was_not_read_to_its_end_promises_nothing_for_now(broker, name):
    broker.make(name, 2)
    stamps = [json.dumps({"t": f"2024-01-01T00:00:{second:02}Z", "k": "a"}).encode() for second in range(60)]
    broker.put(name, stamps)
    options = {"schema": "t TIMESTAMP, k STRING", "slack": "0 seconds", "delay": "1 hour"}
    run = Stepped(stream(broker, name, **options).window("10 seconds").agg(n=wr.count()), waiting=Wants())
    assert run.step(most=30).height == 2  # the empty one does not hold it back, and this one is at 29 s
    waiting = transaction(broker, name, stamps[:1], None)
    run.step(most=0)
    assert not Offsets.from_json(run.offset, run.source.topic).parts[0].reached  # there is more, in a transaction
    waiting.abort_transaction(60)


def test_explain_says_who_reads_and_can_run_over_what_is_there(broker, name):
    broker.make(name)
    broker.put(name, messages(range(100)))
    assert "inside the reader of the topic" in counting(broker, name).explain()
    finite = counting(broker, name, streaming=False)
    found = {line.name: line.rows_in for line in finite.analysis(limit=60).lines}
    assert found["source s"] == 60
    with pytest.raises(PlanError, match="has no end, so it cannot be run to be analyzed"):
        counting(broker, name).explain(analyze=True)
