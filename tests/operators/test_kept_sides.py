"""The ways to keep a side of a join, against a list of its rows: same pairs, same marks, same rows that leave."""

from dataclasses import dataclass, field

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from windrow.operators.joins.window_join import side_of
from windrow.operators.state.indexed_side import IndexedSide, with_hashes
from windrow.operators.state.join_side import MARKS, hashed
from windrow.progress import START

WAYS = ("runs", "hash", "loops", "lazy hash", "lazy loops")
NAN = float("nan")
SCHEMA = {"k": pl.Float64(), "@t": pl.Int64(), "n": pl.Int64()}


def same(a, b):
    return a is not None and b is not None and (a == b or (a != a and b != b))


@dataclass
class Listed:
    """What a side holds, as a list of (key, time, number), and which of them have a partner."""

    rows: list = field(default_factory=list)
    matched: set = field(default_factory=set)

    def free(self, limit):
        gone = [row for row in self.rows if row[1] < limit]
        self.rows = [row for row in self.rows if row[1] >= limit]
        return sorted(row[2] for row in gone if row[2] not in self.matched)

    def partners(self, rows, keyed, before, after):
        near = [(mine, own) for mine in rows for own in self.rows if -before <= own[1] - mine[1] <= after]
        return [(mine, own) for mine, own in near if not keyed or same(mine[0], own[0])]

    def of_key(self, key, keyed, below):
        return [row for row in self.rows if row[1] < below and (not keyed or same(key, row[0]))]


@dataclass
class Held:
    """A side that can change its way, and its checkpoint."""

    keyed: bool
    way: str
    stored: dict = field(default_factory=dict)
    limit: int = START

    def __post_init__(self):
        self.side = self.fresh(self.way)

    @property
    def keys(self):
        return ["k"] if self.keyed else []

    def fresh(self, way):
        return side_of(self.keys, way)

    def rows(self, given_rows):
        frame = pl.DataFrame(given_rows, schema=SCHEMA, orient="row")
        return hashed(frame, self.keys) if self.way == "runs" else with_hashes(frame, self.keys)

    def push(self, given_rows):
        rows = self.rows(given_rows)
        self.side.push(rows, np.zeros(rows.height, np.bool_))

    def partners(self, given_rows, before, after):
        frame = pl.DataFrame(given_rows, schema=SCHEMA, orient="row")
        rows = hashed(frame, self.keys)
        times, found = rows["@t"].to_numpy(), []
        for number, mine, places in self.side.partners(rows, times - before, times + after):
            run = self.side.runs[number]
            found += zip(rows[pl.Series(mine)]["n"], run.frame[pl.Series(places)]["n"], strict=True)
        return found

    def match(self, given_rows, before, after):
        """The numbers of rows that find their first partner among those given."""
        rows = hashed(pl.DataFrame(given_rows, schema=SCHEMA, orient="row"), self.keys)
        times, news = rows["@t"].to_numpy(), []
        for number, _, places in self.side.partners(rows, times - before, times + after):
            new = self.side.match(number, places)
            news += self.side.runs[number].frame[pl.Series(new)]["n"].to_list()
        return sorted(news)

    def leave(self, row, below):
        found = []
        for number, places in self.side.of_key(self.rows([row]).drop("@hash"), below):
            found += self.side.runs[number].frame[pl.Series(places)]["n"].to_list()
            self.side.leave(number, places)
        self.side.shrink()
        return sorted(found)

    def free(self, limit):
        self.limit = max(limit, self.limit)
        gone = self.side.free(limit)
        return [] if gone is None else sorted(gone["n"])

    def store(self):
        self.stored = {k: v for k, v in {**self.stored, **self.side.changes()}.items() if v is not None}
        snapshot = self.side.snapshot()
        assert self.stored.keys() == snapshot.keys()
        assert all(frame.equals(self.stored[name]) for name, frame in snapshot.items())

    def restart(self, way):
        self.store()
        self.way, self.side = way, self.fresh(way)
        self.side.restore(self.stored, self.limit)

    def change(self, way):
        new = self.fresh(way)
        new.take_over(self.side)
        self.way, self.side = way, new


def batch(numbers):
    row = st.tuples(st.sampled_from([0.0, -0.0, 1.0, NAN, None]), st.integers(0, 30))
    rows = st.lists(row, max_size=8) | st.lists(row, min_size=300, max_size=300)
    return rows.map(lambda found: [(k, t, numbers.pop()) for k, t in found])


STEPS = ("push", "push", "probe", "match", "leave", "free", "store", "restart", "change")


@settings(deadline=None, max_examples=150)
@given(keyed=st.booleans(), first=st.sampled_from(WAYS), data=st.data())
def test_every_way_keeps_what_a_list_keeps(keyed, first, data):
    numbers = list(range(100_000, 0, -1))
    held, model = Held(keyed, first), Listed()
    for _ in range(data.draw(st.integers(1, 12))):
        step = data.draw(st.sampled_from(STEPS))
        if step == "push":
            rows = [row for row in data.draw(batch(numbers)) if row[1] >= held.limit]
            held.push(rows)
            model.rows += rows
        elif step in ("probe", "match"):
            rows, before, after = data.draw(batch(numbers)), data.draw(st.integers(0, 9)), data.draw(st.integers(0, 9))
            rows = [row for row in rows[:20] if row[1] - before >= held.limit] or [
                (None, max(held.limit, 0) + before, 0)
            ]
            pairs = model.partners(rows, keyed, before, after)
            if step == "probe":
                assert sorted(held.partners(rows, before, after)) == sorted((a[2], b[2]) for a, b in pairs)
            else:
                news = {own[2] for _, own in pairs} - model.matched
                assert held.match(rows, before, after) == sorted(news)
                model.matched |= news
        elif step == "leave":
            key, below = data.draw(st.sampled_from([0.0, 1.0, NAN])), data.draw(st.integers(0, 30))
            leaving = model.of_key(key, keyed, below)
            assert held.leave((key, 0, 0), below) == sorted(row[2] for row in leaving)
            model.rows = [row for row in model.rows if row not in leaving]
        elif step == "free":
            limit = data.draw(st.integers(0, 35))
            assert held.free(limit) == (model.free(limit) if limit > START else [])
        elif step == "store":
            held.store()
        else:
            getattr(held, step)(data.draw(st.sampled_from(WAYS)))
        assert held.side.count == held.side.height == len(model.rows)
        assert held.side.first() == min((row[1] for row in model.rows), default=None)
    assert held.free(1000) == model.free(1000)
    assert held.side.state_bytes() == 0


@pytest.mark.parametrize("way", WAYS)
def test_many_rows_of_a_key_and_many_keys(way):
    """Tables grow, pairs come in several pieces, and rows that have gone are taken out."""
    rng = np.random.default_rng(1)
    held, model = Held(True, way), Listed()
    for number in range(12):
        rows = [
            (float(k), 10 * number + int(t), 0)
            for k, t in zip(rng.integers(0, 40, 500), rng.integers(0, 20, 500), strict=True)
        ]
        rows = [(k, t, 1000 * number + i) for i, (k, t, _) in enumerate(rows) if t >= held.limit]
        held.push(rows)
        model.rows += rows
        probes = rows[:60]
        pairs = sorted((a[2], b[2]) for a, b in model.partners(probes, True, 30, 30))
        assert sorted(held.partners(probes, 30, 30)) == pairs
        assert held.free(10 * number - 25) == model.free(10 * number - 25)
    assert held.side.count == len(model.rows)
    assert sum(run.frame.height for run in held.side.runs.values()) <= 2 * held.side.count


def touched(lazy, probes):
    side = IndexedSide(["k"], "hash", lazy)
    frame = pl.DataFrame({"k": [1.0] * 60 + [2.0] * 100, "@t": list(range(160)), "n": list(range(160))}, schema=SCHEMA)
    side.push(with_hashes(frame, ["k"]), np.zeros(160, np.bool_))
    side.free(50)
    wanted = with_hashes(
        pl.DataFrame({"k": [1.0] * probes, "@t": [60] * probes, "n": [0] * probes}, schema=SCHEMA), ["k"]
    )
    times = wanted["@t"].to_numpy()
    assert sum(len(mine) for _, mine, _ in side.partners(wanted, times - 10, times)) == 10 * probes
    return side.touched


def test_lazy_invalidation_is_paid_by_the_first_probe_of_a_bucket():
    assert touched(lazy=False, probes=1) == 10
    assert touched(lazy=True, probes=1) == 60
    assert touched(lazy=True, probes=5) == 60 + 4 * 10


@pytest.mark.parametrize("lazy", [False, True])
def test_a_scan_begins_behind_what_has_expired(lazy):
    side = IndexedSide([], "loops", lazy)
    frame = pl.DataFrame({"@t": list(range(100)), "n": list(range(100))})
    side.push(with_hashes(frame, []), np.zeros(100, np.bool_))
    side.free(40)
    wanted = with_hashes(pl.DataFrame({"@t": [50, 51]}), [])
    assert sum(len(mine) for _, mine, _ in side.partners(wanted, np.array([45, 45]), np.array([50, 51]))) == 6 + 7
    assert side.touched == 2 * 60


def test_runs_that_were_stored_in_the_order_of_arrival_are_sorted_and_stored_anew():
    """Their marks are by place."""
    side = IndexedSide(["k"], "hash")
    frame = pl.DataFrame({"k": [3.0, 1.0, 2.0], "@t": [5, 4, 3], "n": [0, 1, 2]}, schema=SCHEMA)
    side.push(with_hashes(frame, ["k"]), np.array([True, False, False]))
    stored = side.changes()
    other = side_of(["k"], "runs")
    other.restore(stored, START)
    changes = other.changes()
    assert set(changes) == {"0", f"0.{MARKS}"}
    marks = dict(zip(changes["0"]["n"], changes[f"0.{MARKS}"]["matched"], strict=True))
    assert marks == {0: True, 1: False, 2: False}
