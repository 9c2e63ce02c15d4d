"""Sessions whose queries come and go at random, on any host, and what each query gives alone over its own rows."""

import random
from datetime import UTC, datetime, timedelta

import polars as pl

import windrow as wr
from windrow.errors import WindrowError
from windrow.testing import compare

SCHEMA = {"ts": pl.Int64(), "k": pl.Int64(), "x": pl.Int64()}
STREAMS = ("a", "b")
START = datetime(2024, 1, 1, tzinfo=UTC)
SLACK = 6
SQL = [
    "SELECT k, count(*) AS n, max(x) AS m FROM a [RANGE 20, SLIDE 5, WA ts] GROUP BY k",
    "SELECT k, sum(x) AS s FROM a [RANGE 10, SLIDE 10, WA ts] GROUP BY k",
    "SELECT k, count(*) AS n FROM a [RANGE 30, SLIDE 10, WA ts] WHERE x > 3 GROUP BY k",
    "SELECT k, min(x) AS low FROM a [RANGE 10, SLIDE 5, WA ts] WHERE x > 3 GROUP BY k",
    "SELECT count(*) AS n, median(x) AS middle FROM b [RANGE 15, SLIDE 5, WA ts]",
    "SELECT k, count(*) AS n FROM b [SESSION 3, WA ts] GROUP BY k",
    "SELECT ts, k, x FROM a WHERE x > 3",
    "SELECT k, sum(x * 100000000000000000) AS huge FROM a [RANGE 20, SLIDE 10, WA ts] GROUP BY k",  # fails of poison
    "SELECT k, max(x) AS m FROM a [RANGE 20, SLIDE 10, WA ts, LATE ERROR] GROUP BY k",
    "SELECT k, min(x) AS m FROM a [RANGE 10, SLIDE 10, WA ts, LATE SIDE] GROUP BY k",
    "SELECT a.ts, a.x AS left_x, b.x AS right_x FROM a [RANGE 5] JOIN b [RANGE 5] ON a.k = b.k",
    "SELECT max(n) AS most FROM (SELECT k, count(*) AS n FROM a [RANGE 10, SLIDE 10, WA ts] GROUP BY k) "
    "[RANGE 20, SLIDE 10, WA window_end]",
    "SELECT a.ts, a.k, b.x AS before FROM a ASOF JOIN b MATCH_CONDITION (a.ts >= b.ts) ON a.k = b.k "
    "AND a.ts - b.ts <= 12",
]
# What only a host can tell that says when and as which rows arrived.
ARRIVAL = [
    "SELECT k, count(*) AS n, max(row_num) AS last FROM a [RANGE 6 ROWS, SLIDE 3 ROWS, WA row_num] GROUP BY k",
    "SELECT count(*) AS n, max(x) AS m FROM b [RANGE '10 seconds', SLIDE '5 seconds', WA arrival_ts]",
    "SELECT x, row_num, arrival_ts FROM b WHERE row_num > 3",
]
POISON = 99


def _raise(value):
    if value == POISON:
        raise ValueError("poison")
    return value


# One has bad rows, and goes on without them; the other fails where its windows are released.
EARLY = wr.aggregate("early", _raise, max, lambda s: s, state="BIGINT", result="BIGINT")
LATE = wr.aggregate("late", lambda v: v, max, _raise, state="BIGINT", result="BIGINT")
PYTHON = {
    "early": lambda s: s["a"].window(10).group_by("k").agg(m=EARLY("x")),
    "late": lambda s: s["a"].window(20, 10).agg(m=LATE("x")),
    "union": lambda s: s["a"].union(s["b"]).window(10).agg(n=wr.count()),
}


class Drawn:
    """A session's life: a list of steps, each with what it changes, and the rows of each micro-batch."""

    def __init__(self, seed, steps):
        self.random = random.Random(seed)
        # Smaller batches make earlier promises in process, and then more of what is behind the slack is late.
        self.late = self.random.random() < 0.6
        self.strategies = ["DFS", "BFS", "RR"] if self.late else ["DFS", "BFS", "RR", "DFS-3"]
        self.time = 0
        self.steps = [self._step() for _ in range(steps)]

    def _step(self):
        kinds = {"push": 8, "add": 4, "drop": 2, "pause": 1, "resume": 2, "restart": 1, "die": 1, "strategy": 1}
        kind = self.random.choices(list(kinds), list(kinds.values()))[0]
        return kind, self.rows() if kind in ("push", "die") else self.random.random()

    def rows(self):
        """Rows of each stream, out of order within the slack; now and then none."""
        self.time += self.random.randrange(12)
        poison = self.random.random() < 0.08
        return {name: self._rows(poison, name) for name in STREAMS}

    def _rows(self, poison, name):
        if self.random.random() < 0.15:
            return pl.DataFrame(schema=SCHEMA)
        values = [9, POISON] if poison else range(10)
        rows = [
            (self.time + self._offset(name), self.random.randrange(3), self.random.choice(values))
            for _ in range(self.random.randrange(1, 12))
        ]
        return pl.DataFrame(rows, schema=SCHEMA, orient="row")

    def _offset(self, name):
        """Within the slack, or now and then late, in the stream that is pushed first: whether a row of the other one is
        late depends on whether the promises of this one are made before it.
        """
        late = self.late and name == STREAMS[0] and self.random.random() < 0.06
        return self.random.randrange(SLACK) - (40 if late else 0)


class Arriving:
    """When rows arrive, and how many have: a query that begins later sees the numbers that its rows have."""

    def __init__(self):
        self.seconds, self.counts = 0, dict.fromkeys(STREAMS, 0)

    def clock(self):
        return START + timedelta(seconds=self.seconds)

    def passed(self, rows):
        self.counts = {name: count + rows[name].height for name, count in self.counts.items()}
        self.seconds += 3


class Alone:
    """A query by itself, over the rows from its start to its end."""

    def __init__(self, query, arriving):
        self.run, self.sources = query.run(clock=arriving.clock), list(query.sources)
        self.arriving = arriving
        self.found = [pl.DataFrame(schema=query.schema)]
        self.failed = self.paused = False
        self.counts = self._counts()

    def _counts(self):
        return self.run.counts["rows_late"], self.run.counts["rows_bad"]

    def push(self, rows):
        if self.failed or self.paused:
            return
        self.run.arrivals.counts = dict(self.arriving.counts)
        try:
            for name in self.sources:
                self.run.push(name, rows[name])
        except WindrowError:  # nothing of this micro-batch counts
            self.failed = True
        else:
            self.found.append(self.run.results())
            self.counts = self._counts()

    def results(self):
        return pl.concat(self.found)


def live(host, seed, steps=40):
    """Drive a host through a drawn life, and compare each query with itself alone.

    ``host``: see tests/test_random_sessions.py.
    """
    drawn = Drawn(seed, steps)
    rng = drawn.random
    arriving = host.arriving
    texts = [*SQL, *PYTHON, *(ARRIVAL if host.stamps else ())]
    alone, count = {}, 0
    for kind, given in drawn.steps:
        if kind in ("push", "die"):
            if kind == "die":
                host.die(given)
            host.push(given)
            for query in alone.values():
                query.push(given)
            arriving.passed(given)
        elif kind == "add":
            new = {}
            for _ in range(rng.choice([1, 1, 2, 3])):
                new[f"q{count}"] = rng.choice(texts)
                count += 1
            host.add(new)
            alone |= {name: Alone(meant(query), arriving) for name, query in new.items()}
        elif kind == "strategy":
            name = rng.choice([None, *alone])
            host.set_strategy(rng.choice(drawn.strategies), name)
        elif kind == "restart":
            host.restart()
        else:
            change(host, kind, alone, rng)
        check(host, alone)
    return alone


def change(host, kind, alone, rng):
    able = {
        "drop": list(alone),
        "pause": [n for n, q in alone.items() if not q.paused and not q.failed],
        "resume": [n for n, q in alone.items() if q.paused],
    }[kind]
    if not able:
        return
    name = rng.choice(able)
    if kind == "drop":
        host.drop(name)
        del alone[name]
        return
    names = [n for n in host.together(name) if n in able]
    getattr(host, kind)(names)
    for each in names:
        alone[each].paused = kind == "pause"


def check(host, alone):
    assert sorted(host.status()) == sorted(alone)
    for name, query in alone.items():
        status = "failed" if query.failed else "paused" if query.paused else "running"
        assert host.status()[name] == status, name
        compare(host.results(name), query.results(), name)
        assert host.counts(name) == query.counts, name


def streams():
    return {n: wr.stream(pl.DataFrame(schema=SCHEMA), progress="ts", slack=SLACK, name=n) for n in STREAMS}


def meant(query, over=None):
    """A query as a stream: SQL text, or the name of one in Python."""
    over = over or streams()
    return PYTHON[query](over) if query in PYTHON else wr.sql(query, **over)
