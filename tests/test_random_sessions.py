"""Queries added, dropped, paused, resumed and failing at random: each gives what it gives alone over its own rows."""

import polars as pl
from hypothesis import given, settings
from hypothesis import strategies as st

import windrow as wr
from random_sessions import PYTHON, SCHEMA, SLACK, STREAMS, Arriving, live, meant, streams
from windrow.testing.simulated import Checkpoint, SimulatedSpark
from windrow.testing.simulated_session import SimulatedQueries

CHECK = settings(deadline=None, derandomize=True, max_examples=60)


class InProcess:
    """A session in this process; a restart is a snapshot and another session."""

    stamps = True

    def __init__(self):
        self.arriving = Arriving()
        self.session = wr.Session(clock=self.arriving.clock, **streams())
        self.given, self.found = {}, {}

    def push(self, rows):
        for name in STREAMS:
            self.session.push(name, rows[name])
        for name in self.session.queries():
            self.found[name].append(self.session.results(name))

    def die(self, rows):
        """A process that dies takes all with it: there is nothing to simulate."""

    def add(self, queries):
        self.given |= queries
        self.session.add(**{n: meant(q, self.session.streams) if q in PYTHON else q for n, q in queries.items()})
        for name in queries:
            self.found[name] = [self.session.results(name)]

    def drop(self, name):
        self.session.drop(name)

    def pause(self, names):
        self.session.pause(*names)

    def resume(self, names):
        self.session.resume(*names)

    def set_strategy(self, strategy, name):
        self.session.set_strategy(strategy, name)

    def restart(self):
        state = self.session.snapshot()
        self.session = wr.Session(clock=self.arriving.clock, **streams())
        again = {n: meant(q, self.session.streams) for n, q in self.given.items() if q in PYTHON}
        self.session.restore(state, **again)

    def together(self, name):
        local = self.session._local
        unit = local.units[local.registry.find(name).number]
        return [n for n in unit.group.queries if n in local.registry.names()]

    def status(self):
        return {name: info.status for name, info in self.session.queries().items()}

    def results(self, name):
        return pl.concat(self.found[name])

    def counts(self, name):
        info = self.session.queries()[name]
        return info.rows_late, info.rows_bad


class OnSpark:
    """The Spark host of a session, over the simulated Spark; a restart is another process over the same folder.

    It cannot tell of arrivals: tests/hosts/spark/test_sessions.py does.
    """

    stamps = False

    def __init__(self, folder, seed):
        self.arriving = Arriving()
        self.seed_of_first = seed
        self.folder, self.seed, self.kept, self.given = folder, seed, Checkpoint(), {}
        self.restart()

    def restart(self):
        if self.seed_of_first != self.seed:
            self.host.record.release()  # as the end of a process does
        self.seed += 1
        spark = SimulatedSpark(2, seed=self.seed)
        sources = {name: spark.stream(SCHEMA) for name in STREAMS}
        self.streams = {n: wr.stream(s, progress="ts", slack=SLACK, name=n) for n, s in sources.items()}
        given = {} if self.given else {"shards": 2, "depth": 1}  # a query of two levels makes it deeper
        self.host = SimulatedQueries(spark, self.folder, sources, self.kept, **given)
        self.host.restore(lambda query: self.node(self.given[query.name]))
        self.host.start()

    def node(self, query):
        return meant(query, self.streams).node

    def push(self, rows):
        self.host.push({name: rows[name] for name in STREAMS})

    def die(self, rows):
        """Another process, after a micro-batch whose results were written and which was not committed."""
        self.host.push({name: rows[name] for name in STREAMS}, commit=False)
        self.restart()

    def add(self, queries):
        self.given |= queries
        self.host.add({n: (self.node(q), None if q in PYTHON else q) for n, q in queries.items()})

    def drop(self, name):
        self.host.drop([name])

    def pause(self, names):
        self.host.pause(names)

    def resume(self, names):
        self.host.resume(names)

    def set_strategy(self, strategy, name):
        self.host.set_strategy(strategy, name)

    def together(self, name):
        [group] = [g for g in self.host.registry.groups if name in [q.name for q in g.queries]]
        [unit] = [u for u in self.host.plans[group.number].units() if name in u]
        return [n for n in unit if n in self.host.registry.names()]

    def status(self):
        return {query.name: query.status for query in self.host.registry}

    def results(self, name):
        query = self.host.registry.find(name)
        node = self.host.node_of(query)
        found = [frame for _, frame in self.host.results(name)]
        assert query.rows_out == sum(frame.height for frame in found)
        return pl.concat([pl.DataFrame(schema=dict(node.schema)), *found])

    def counts(self, name):
        """By the records, too: each bad row is one, and late rows of a group and a window are one together."""
        query = self.host.registry.find(name)
        assert query.rows_bad == sum(frame.height for _, frame in self.host.bad_rows(name))
        assert bool(query.rows_late) == bool(self.host.late_rows(name))
        return query.rows_late, query.rows_bad


@CHECK
@given(st.integers(0, 10**6))
def test_in_process(seed):
    live(InProcess(), seed)


@settings(CHECK, max_examples=30)
@given(st.integers(0, 10**6))
def test_as_spark_runs_it(tmp_path_factory, seed):
    live(OnSpark(tmp_path_factory.mktemp("session"), seed), seed, steps=25)
