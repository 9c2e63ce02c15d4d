"""Promises that go back, as Spark drives them: as many are counted as in process, and the same windows are released."""

import numpy as np
import polars as pl
import pytest

import windrow as wr
from windrow.testing import accounted, compare
from windrow.testing.disturbed import disturbed

FILES = 5


def frame(number):
    """Rows of four groups; every tenth is a marker about everyone or one group, and every third of these goes back."""
    rng = np.random.default_rng(number)
    n = 300
    at = number * n + np.arange(n)
    back = (np.arange(n) % 30 == 20) * rng.integers(100, 900, n)
    marker = np.arange(n) % 10 == 0
    group = pl.Series("k", [f"g{i}" for i in rng.integers(0, 4, n)])
    about = pl.Series(np.arange(n) % 20 == 0)
    return pl.DataFrame({"t": at + 40, "m": at - back, "x": marker}).select(
        pl.when(~pl.col("x")).then("t"),
        pl.when(pl.lit(about)).then(None).otherwise(pl.lit(group)).alias("k"),
        pl.when("x").then("m"),
    )


WAYS = {
    "markers": ("PUNCTUATED BY markers(m, by => k)", wr.promise.markers("m", by="k")),
    "function": ("PUNCTUATED BY latest()", wr.promise.function(lambda seen: seen.greatest % 700, name="latest")),
}


def in_sql(source, way):
    text = f"SELECT k, count(*) AS n FROM s {WAYS[way][0]} [RANGE 50, WA t] WHERE t >= 0 GROUP BY k"
    return wr.sql(text, WAYS["function"][1], s=wr.stream(source, "t"))


def in_python(way):
    s = wr.stream(frame(0).clear(), "t", punctuation=WAYS[way][1], name="s")
    return s.where("t >= 0").window(50).group_by("k").agg(n=wr.count())


@pytest.mark.parametrize("way", WAYS)
def test_as_many_are_counted_as_in_process_also_over_restarts(way):
    batches = [{"s": frame(number)} for number in range(FILES)]
    out = disturbed(lambda spark: in_sql(spark.stream(frame(0).schema), way), batches)
    run, ignored, released = in_python(way).run(), [], []
    for number in range(FILES):
        released.append(run.push("s", frame(number)).results())
        ignored.append(run.counts["promises_ignored"])
    assert list(np.cumsum([batch.counts["promises_ignored"] for batch in out])) == ignored
    assert ignored[-1] > (10 if way == "markers" else 0)
    found = pl.concat([batch.results for batch in out])
    compare(found, pl.concat(released), way)
    counts = {name: sum(batch.counts[name] for batch in out) for name in ("rows_in", "rows_late", "rows_bad")}
    assert counts == {name: run.counts[name] for name in counts}
    markers = 30 * FILES if way == "markers" else 0
    accounted(counts, pl.concat([found, run.end().results()]), markers=markers, where=way)
