"""The side output on Spark: the rows of every source that cannot take part, and why."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import reduce
from typing import TYPE_CHECKING

import polars as pl
import pyarrow as pa

from windrow.graph import Graph
from windrow.hosts.spark.exchange import COUNTERS, METRICS
from windrow.hosts.spark.map_side import together
from windrow.logical.nodes import Scan
from windrow.operators.admit import REASON
from windrow.operators.operator import Side
from windrow.planner import Pipeline, Plan, Step, add_steps

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


def bad_rows(plan: Plan, sources: Mapping[str, DataFrame]) -> DataFrame:
    """All bad rows as they came, with the source's name and the reason. Stateless: it needs no promises."""
    from pyspark.sql import functions as f

    rows = reduce(
        lambda a, b: a.unionByName(b, allowMissingColumns=True),
        [_of_leaf(leaf, sources) for leaf in plan.leaves()],
    )
    bad = {"rows_bad": f.count("*"), "rows_out": f.count("*")}
    return rows.observe(METRICS, *(bad.get(name, f.sum(f.lit(0))).alias(name) for name in COUNTERS))


def _of_leaf(leaf: Pipeline, sources: Mapping[str, DataFrame]) -> DataFrame:
    from pyspark.sql.pandas.types import to_arrow_schema
    from pyspark.sql.types import StringType, StructType

    assert isinstance(leaf.source, Scan)
    frame = sources[leaf.source.name]
    schema = StructType([*frame.schema.fields]).add(REASON, StringType()).add("source", StringType())
    names = [step.name for step in leaf.steps]
    steps = leaf.steps[: names.index("lift") + 1] if "lift" in names else leaf.steps[: 1 + names.index("admit")]
    return frame.mapInArrow(_BadRows(steps, leaf.source.name, to_arrow_schema(schema, timezone="UTC")), schema)


class _BadRows:
    """The steps of a pipeline as far as rows can be found bad."""

    def __init__(self, steps: tuple[Step, ...], name: str, schema: pa.Schema) -> None:
        self.steps = steps
        self.name = name
        self.schema = schema

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        graph = Graph()
        add_steps(graph, self.steps, None)
        for frame in together(batches):
            for item in graph.on_batch(0, frame):
                if isinstance(item, Side) and item.kind == "bad":
                    rows = item.rows.with_columns(pl.lit(self.name).alias("source"))
                    missing = [f.name for f in self.schema if f.name not in rows.columns]
                    rows = rows.with_columns(pl.lit(None).alias(c) for c in missing)
                    yield from rows.select(self.schema.names).to_arrow().cast(self.schema).to_batches()
        yield pa.RecordBatch.from_pylist([], schema=self.schema)
