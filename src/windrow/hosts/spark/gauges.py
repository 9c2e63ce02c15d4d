"""The figures of a query among Spark's own metrics, so that its sinks show them: JMX, Prometheus, Graphite, CSV.

Spark registers sources of metrics in its driver: objects of a Java interface with a name and a registry. A Python
object can be one, through the same way back that tells Python of a query's progress. The object that they are
registered with is a field of Spark's environment; its method cannot be called from Python, because looking for it loads
classes that Spark does not ship.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from windrow.hosts.figures import Figures, families

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

PLAIN = re.compile(r"[^A-Za-z0-9_-]+")


class Gauges:
    """A source of metrics named ``windrow.QUERY``. A gauge stands for each figure, under its name and its labels."""

    def __init__(self, spark: SparkSession, query: str) -> None:
        self.spark, self.name = spark, f"windrow.{PLAIN.sub('_', query)}"
        self.jvm: Any = spark.sparkContext._jvm
        self.registry = self.jvm.com.codahale.metrics.MetricRegistry()
        self.gauges: dict[str, Any] = {}
        self.registered = False

    def show(self, found: Figures) -> None:
        """Set all gauges; those that are new appear in Spark's sinks from now on."""
        if not self.registered:
            self.registered = True
            metrics_system(self.spark).registerSource(self)
        for name, _, _, samples in families(found):
            for of, value in samples:
                labels = (PLAIN.sub("_", label) for label in of.values())
                self._gauge(".".join([name.removeprefix("windrow_"), *labels])).setValue(float(value))

    def _gauge(self, name: str) -> Any:
        if name not in self.gauges:
            self.gauges[name] = self.jvm.com.codahale.metrics.DefaultSettableGauge(0.0)
            self.registry.register(name, self.gauges[name])
        return self.gauges[name]

    def remove(self) -> None:
        """The query has ended: its gauges leave Spark's metrics."""
        for name in self.gauges:
            self.registry.remove(name)
        self.gauges.clear()

    # -- what Spark asks -----------------------------------------------------------------------------------------
    def sourceName(self) -> str:  # noqa: N802 (Spark's name)
        return self.name

    def metricRegistry(self) -> Any:  # noqa: N802
        return self.registry

    class Java:
        implements = ("org.apache.spark.metrics.source.Source",)


def metrics_system(spark: SparkSession) -> Any:
    """What Spark's driver registers its metrics with."""
    jvm: Any = spark.sparkContext._jvm
    field = jvm.java.lang.Class.forName("org.apache.spark.SparkEnv").getDeclaredField("metricsSystem")
    field.setAccessible(True)
    return field.get(spark.sparkContext._jsc.sc().env())
