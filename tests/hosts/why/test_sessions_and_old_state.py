"""Reports of sessions, which change while they run, and of checkpoints that have none yet."""

import polars as pl

import windrow as wr
from windrow import count
from windrow.hosts.report import Report
from windrow.hosts.reporting import merged
from windrow.hosts.spark.shard import REPORT
from windrow.hosts.why import why
from windrow.testing.simulated import Checkpoint, SimulatedSpark
from windrow.testing.simulated_session import SimulatedQueries

SCHEMA = {"t": pl.Int64, "k": pl.String}


def rows(*times):
    return pl.DataFrame({"t": times, "k": "a"}, schema=SCHEMA)


class Session:
    """Over two streams. A new one over the same folder and checkpoint goes on."""

    def __init__(self, folder, kept, nodes):
        spark = SimulatedSpark(2)
        self.sources = {name: spark.stream(SCHEMA) for name in ("a", "b")}
        self.streams = {n: wr.stream(s, "t", slack=1, name=n) for n, s in self.sources.items()}
        given = {} if nodes else {"shards": 2, "depth": 1}
        self.host = SimulatedQueries(spark, folder, self.sources, kept, **given)
        self.host.restore(lambda query: nodes[query.name](self.streams).node)
        self.host.start()

    def push(self, **given) -> Report:
        self.host.push({name: given.get(name, rows()) for name in self.sources})
        return merged(self.host._run.reports)


def tens(streams):
    return streams["a"].union(streams["b"]).window(10).agg(n=count())


def hundreds(streams):
    return streams["a"].window(100).group_by("k").agg(n=count())


def test_a_session_knows_what_all_its_queries_wait_for(tmp_path):
    kept = Checkpoint()
    session = Session(tmp_path, kept, {})
    session.host.add({"tens": (tens(session.streams).node, None)})
    session.push(a=rows(1, 12), b=rows(3))
    session.host.add({"hundreds": (hundreds(session.streams).node, None)})
    report = session.push(a=rows(33))
    assert sorted((held.promise, held.stage) for held in report.held) == [(10, 0), (100, 1)]
    assert [(source.name, source.read) for source in report.sources] == [("a", 3), ("b", 1)]
    session.host.record.release()
    again = Session(tmp_path, kept, {"tens": tens, "hundreds": hundreds})
    report = again.push(a=rows(40))
    assert [(source.name, source.read, source.seen.came) for source in report.sources] == [("a", 4, 2), ("b", 1, 0)]
    cause = why(report).cause
    assert (cause.name, cause.source, cause.needs) == ("idle source", "b", "10")
    again.host.drop(["tens"])
    report = again.push(a=rows(41))
    assert [(held.promise, held.stage) for held in report.held] == [(100, 1)]
    assert why(report).cause.source == "a"


def test_a_checkpoint_without_a_report_goes_on_and_has_one(tmp_path):
    spark = SimulatedSpark(2)
    a = wr.stream(spark.stream(SCHEMA), "t", slack=1, name="a")
    query, checkpoint = a.window(10).agg(n=count()), Checkpoint()
    before = spark.start(query, checkpoint).push({"a": rows(1, 2)})
    assert merged(before.reports).source("a:t").read == 2
    [store] = checkpoint.stores
    for chunks in store.maps.values():
        del chunks[(REPORT,)]  # as a version before reports left it
    spark = SimulatedSpark(2, seed=1)
    a = wr.stream(spark.stream(SCHEMA), "t", slack=1, name="a")
    after = spark.start(a.window(10).agg(n=count()), checkpoint).push({"a": rows(12)})
    assert after.results.rows() == [(0, 10, 2)]
    report = merged(after.reports)
    assert report.source("a:t").read == 1
    assert [held.promise for held in report.held] == [20]


def test_a_report_of_another_format_is_not_read():
    assert merged([{"format": 0, "whatever": 1}]).batch == -1
