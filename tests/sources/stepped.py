"""A query over a topic, a micro-batch at a time, without Spark: what Spark calls of the reader, and one shard."""

import json
import pickle

import polars as pl
from pyspark.sql.streaming.datasource import ReadAllAvailable, ReadMaxRows

from windrow.hosts.counters import Counter
from windrow.hosts.outline import outline_of
from windrow.hosts.spark.exchange import Kind, Row, decode
from windrow.hosts.spark.fragment import Fragment
from windrow.hosts.spark.kafka import MapTopic, TopicSource
from windrow.hosts.spark.map_side import MapSide
from windrow.hosts.spark.placed import placed_stages


class Stepped:
    """``offset`` is what Spark would have logged last. ``restart()`` forgets all else but the state of the shard."""

    def __init__(self, query, tasks=2, waiting=None):
        self.plan = query.plan()
        [(name, source)] = query.sources.items()
        [scan] = self.plan.scans()
        placed = placed_stages(self.plan, 1, True)
        [level] = placed.levels
        self.fragment = Fragment(tuple(hosted for _, hosted in level), placed.ids, outline=outline_of(self.plan))
        self.wired = self.fragment.wiring()
        map_side = MapSide(placed.reads[name], name=name)
        columns, stamps = tuple(self.plan.read_from(scan)), tuple(self.plan.stamps_of(scan))
        job = MapTopic(map_side, columns, stamps, waiting=waiting)
        self.source = type("Source", (TopicSource,), {"topic": source.data, "job": job, "tasks": tasks})({})
        self.restart()
        self.offset = self.reader.initialOffset()
        self.counts = dict.fromkeys(Counter, 0)

    def restart(self):
        self.reader = self.source.streamReader(None)
        self.reader.pause = 0.0

    def planned(self, most=None):
        """The next step: its start and its end, which are equal if there is nothing to do."""
        limit = self.reader.getDefaultReadLimit() if most is None else ReadMaxRows(most)
        limit = ReadAllAvailable() if most == 0 else limit
        return self.offset, json.loads(json.dumps(self.reader.latestOffset(self.offset, limit)))

    def rows(self, start, end):
        """The exchange rows of a step."""
        found = []
        for task in self.reader.partitions(start, end):
            for batch in self.reader.read(pickle.loads(pickle.dumps(task))):
                found += [Row(*row.values()) for row in batch.to_pylist()]
        return found

    def step(self, most=None):
        """Run a step; its results, or None if there was nothing to do."""
        start, end = self.planned(most)
        return None if start == end else self.run(start, end)

    def run(self, start, end):
        out = list(self.fragment.run(self.wired, 0, self.rows(start, end)))
        for row in out:
            if row.kind == Kind.COUNT:
                self.counts[list(Counter)[row.port]] += row.value
        self.offset = end
        found = [decode(row.blob, "a result") for row in out if row.kind == Kind.RESULT]
        return pl.concat(found) if found else pl.DataFrame(schema=self.plan.schema)

    def all(self, most=None):
        """All steps until there is nothing to do."""
        found = [pl.DataFrame(schema=self.plan.schema)]
        while (results := self.step(most)) is not None:
            found.append(results)
        return pl.concat(found)
