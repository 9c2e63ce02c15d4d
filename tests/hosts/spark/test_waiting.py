"""When readers of sources move their offsets without rows: only if an answer helps. No Spark is started."""

import time
from types import SimpleNamespace

import polars as pl
import pytest

from windrow.hosts.spark.clock import ClockReader, Now
from windrow.hosts.spark.exchange import Kind
from windrow.hosts.spark.files import MapFiles, _StreamReader
from windrow.hosts.spark.map_side import MapSide
from windrow.hosts.spark.outbox import Route
from windrow.hosts.spark.waiting import SECOND, Waiting, answered, note
from windrow.sources.files import Files
from windrow.sources.position import Position


@pytest.fixture
def path(tmp_path):
    return str(tmp_path / "notes.json")


def test_a_query_that_begins_asks_nobody_and_one_that_goes_on_asks_once(path):
    assert not Waiting(path, 0).wants(100, 0)
    waiting = Waiting(path, 0)
    assert [waiting.wants(now, 50) for now in (100, 101)] == [True, False]


def test_a_source_is_asked_when_its_answer_helps(path):
    note(path, 0, {"0": 500, "2": 10}, [])
    waiting = Waiting(path, 0)
    assert [waiting.wants(now, 0) for now in (400, 500, 501)] == [False, True, False]
    assert not Waiting(path, 1).wants(900, 0)  # nobody waits for it
    note(path, 1, {"0": 600}, [])
    assert not waiting.wants(700, 500)  # the note is older than the answer
    note(path, 2, {"0": 600}, [500])
    assert waiting.wants(700, 500)


def test_what_does_not_help_is_tried_less_and_less_often(path):
    waiting, last, asked = Waiting(path, 0), 0, []
    for number in range(200 * 2):
        now = 10 * SECOND + number * SECOND // 2
        note(path, number, {"0": 5}, [last])
        if waiting.wants(now, last):
            asked.append((now - (last or now)) // SECOND)
            last = now
    assert asked == [0, 1, 2, 4, 8, 16, 32, 64, 64]
    note(path, 10**6, {"0": 6}, [last])
    assert waiting.wants(last + 1, last)  # something else is waited for


def test_the_answers_of_a_micro_batch_are_in_the_offsets_of_its_sources():
    offsets = ['{"asked": 7, "recent": ""}', "12", '"x"', None, "{", '{"t-0": {"0": 1}}', '{"asked": 9}']
    assert answered(SimpleNamespace(endOffset=offset) for offset in offsets) == [7, 9]


class Told:
    """Wants what it is told to."""

    def __init__(self, *wants):
        self.wanted = list(wants)
        self.given = []

    def wants(self, now, last):
        self.given.append((now, last))
        return self.wanted.pop(0)


class Clock(ClockReader):
    times = None

    def now(self):
        return next(self.times)


def test_the_clock_answers_for_the_round_before():
    reader = Clock([Route(3, 1, shards=(0, 5))], [Told(False, True, True)])
    reader.times = iter([1000, 2000, 3000, 4000, 5000])
    start = reader.initialOffset()
    found = [start := reader.latestOffset(start, None) for _ in range(4)]
    assert [offset["asked"] for offset in found] == [0, 0, 2000, 3000]
    assert reader.waiting[0].given == [(1000, 0), (2000, 0), (3000, 2000)]
    assert reader.partitions(start, start) == []
    [part] = reader.partitions({"asked": 2000}, {"asked": 3000})
    [batch] = reader.read(part)
    assert batch.column("shard").to_pylist() == [0, 5]
    assert batch.select(["stage", "port", "kind", "value"]).to_pylist()[0] == {
        "stage": 3,
        "port": 1,
        "kind": Kind.ASKED,
        "value": 0,
    }
    assert isinstance(part, Now)
    reader.prepareForTriggerAvailableNow()
    assert reader.latestOffset(start, None) == start  # nobody waits for what comes later


def reader(folder, waiting, limit=None):
    files = Files(str(folder), "parquet", (("t", pl.Int64()),), streaming=True, max_files=limit)
    job = MapFiles(MapSide([]), ("t",), waiting=waiting)
    return _StreamReader(SimpleNamespace(files=files, job=job, tasks=2))


def put(folder, name):
    pl.DataFrame({"t": [1]}).write_parquet(folder / name)


def test_files_answer_in_their_offsets(tmp_path):
    before = time.time_ns() // 1000
    put(tmp_path, "a.parquet")
    put(tmp_path, "b.parquet")
    told = Told(False, True)
    stream = reader(tmp_path, told, 1)
    found = [stream.initialOffset()]
    for _ in range(4):
        found.append(stream.latestOffset(found[-1], stream.getDefaultReadLimit()))
    first, second, third, fourth = map(Position.from_json, found[1:])
    assert (len(first.batch), first.all) == (1, False)  # one is left
    assert (len(second.batch), second.all) == (1, True)
    assert third == second  # it does not help
    assert (fourth.batch, fourth.all) == ((), True)
    assert before <= first.asked < second.asked < fourth.asked
    assert [last for _, last in told.given] == [second.asked] * 2
    [task] = stream.partitions(found[3], found[4])
    assert [(a.part, a.asked, a.all, a.heard) for a in task.answers] == [(None, fourth.asked, True, False)]
    assert [a.heard for t in stream.partitions(found[1], found[2]) for a in t.answers] == [True]
    assert Position.from_json(fourth.to_json()) == fourth


def test_with_the_trigger_available_now_files_answer_for_when_it_began(tmp_path):
    put(tmp_path, "a.parquet")
    stream = reader(tmp_path, Told())
    stream.prepareForTriggerAvailableNow()
    began = time.time_ns() // 1000
    put(tmp_path, "b.parquet")
    end = stream.latestOffset(stream.initialOffset(), stream.getDefaultReadLimit())
    position = Position.from_json(end)
    assert (len(position.batch), position.all) == (1, True)
    assert position.asked <= began
    assert stream.latestOffset(end, stream.getDefaultReadLimit()) == end


def test_a_source_that_is_not_asked_says_nothing(tmp_path):
    put(tmp_path, "a.parquet")
    stream = reader(tmp_path, None)
    end = stream.latestOffset(stream.initialOffset(), stream.getDefaultReadLimit())
    assert "asked" not in end
    assert [task.answers for task in stream.partitions(stream.initialOffset(), end)] == [()]
