"""The figures of a query among Spark's own metrics, so that its sinks show them: JMX, Prometheus, Graphite, CSV.

Spark registers sources of metrics in its driver: objects of a Java interface with a name and a registry. A Python
object can be one, through the same way back that tells Python of a query's progress.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from windrow.hosts.figures import Figures, families

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

PLAIN = re.compile(r"[^A-Za-z0-9_.-]+")


class Gauges:
    """A source of metrics named ``windrow.QUERY``. A gauge stands for each figure, under its name and its labels."""

    def __init__(self, spark: SparkSession, query: str) -> None:
        self.name = PLAIN.sub("_", f"windrow.{query}")
        self.jvm: Any = spark.sparkContext._jvm
        self.registry = self.jvm.com.codahale.metrics.MetricRegistry()
        self.gauges: dict[str, Any] = {}
        self.registered = False

    def show(self, found: Figures) -> None:
        """Set all gauges; those that are new appear in Spark's sinks from now on."""
        for name, _, _, samples in families(found):
            for of, value in samples:
                self._gauge(".".join([name.removeprefix("windrow_"), *of.values()])).setValue(float(value))
        if not self.registered:
            self._system().registerSource(self)
            self.registered = True

    def _gauge(self, name: str) -> Any:
        plain = PLAIN.sub("_", name)
        if plain not in self.gauges:
            self.gauges[plain] = self.registry.gauge(plain)
        return self.gauges[plain]

    def remove(self) -> None:
        """The query has ended."""
        if self.registered:
            self._system().removeSource(self)
            self.registered = False

    def _system(self) -> Any:
        return self.jvm.org.apache.spark.SparkEnv.get().metricsSystem()

    # -- what Spark asks -----------------------------------------------------------------------------------------
    def sourceName(self) -> str:  # noqa: N802 (Spark's name)
        return self.name

    def metricRegistry(self) -> Any:  # noqa: N802
        return self.registry

    class Java:
        implements = ("org.apache.spark.metrics.source.Source",)
