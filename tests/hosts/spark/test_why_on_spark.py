"""Why, on a real Spark: while a query runs, from what it leaves behind, and from the state of its checkpoint alone."""

import json
import time
from datetime import datetime, timedelta

import polars as pl
import pytest
from typer.testing import CliRunner

import windrow as wr
from windrow.cli import app
from windrow.hosts.spark.gauges import metrics_system
from windrow.hosts.spark.reports import FILE, checkpoint_report

pytestmark = pytest.mark.spark
NOON = datetime(2024, 1, 1, 12)


def put(folder, number, *minutes):
    folder.mkdir(exist_ok=True)
    rows = pl.DataFrame({"ts": [NOON + timedelta(minutes=m) for m in minutes], "k": "a"})
    rows.write_parquet(folder / f"{number}.parquet")


def query_over(tmp_path):
    read = {"progress": "ts", "slack": "1 minute", "streaming": True, "max_files": 1}
    data, control, other = (wr.read_parquet(str(tmp_path / n), name=n, **read) for n in ("data", "control", "filtered"))
    united = data.union(control, other.where("k = 'b'"))
    return united.window("5 minutes").group_by("k").agg(rows=wr.count())


def gauges(spark):
    """All of Windrow's gauges that Spark knows, by the end of their names."""
    system = metrics_system(spark)
    [field] = [f for f in system.getClass().getDeclaredFields() if f.getName().endswith("registry")]
    field.setAccessible(True)
    found = {e.getKey(): e.getValue() for e in field.get(system).getGauges().entrySet()}
    return {name.split(".windrow.", 1)[1]: g.getValue() for name, g in found.items() if ".windrow." in name}


def soon(what, patience=60):
    """What a listener that Spark calls later has brought about."""
    until = time.monotonic() + patience
    while not (found := what()):
        assert time.monotonic() < until
        time.sleep(0.05)
    return found


def test_an_idle_source_of_a_query_that_runs_and_of_one_that_was_stopped(spark, tmp_path):
    for number in range(4):
        put(tmp_path / "data", number, *range(10 * number, 10 * number + 10))
        put(tmp_path / "filtered", number, 10 * number + 9)
    put(tmp_path / "control", 0, 5)
    query, checkpoint = query_over(tmp_path), tmp_path / "state"
    frame = query.to_spark(2, checkpoint=checkpoint)
    writer = frame.writeStream.format("noop").queryName("why").option("checkpointLocation", str(checkpoint))
    running = writer.start()
    try:
        running.processAllAvailable()
        soon(lambda: (checkpoint / FILE).exists() and json.loads((checkpoint / FILE).read_text())["batch"] == 3)
        told = [query.why(running), query.why(checkpoint=checkpoint)]
        shown = soon(lambda: found if (found := gauges(spark)).get("why.rows_total.data.ts") == 40 else None)
    finally:
        running.stop()
    assert shown["why.promise.control.ts"] == (NOON - datetime(1970, 1, 1)).total_seconds() + 240
    assert shown["why.rows_total.control.ts"] == 1
    left = json.loads((checkpoint / FILE).read_text())
    (checkpoint / FILE).write_text(json.dumps({**left, "batch": 2}))  # as if it had been killed before it was written
    told.append(query.why(checkpoint=checkpoint))
    for answer in told:
        cause = answer.cause
        assert (cause.name, cause.source, cause.needs) == ("idle source", "control", "2024-01-01 12:05:00")
        assert "Waiting for source `control`: last promise 2024-01-01 12:04:00" in cause.sentence
        assert "7 windows up to 2024-01-01 12:35:00 are ready but for it" in cause.sentence
        assert [(s.name, s.read, s.seen.came) for s in answer.report.sources] == [
            ("data", 40, 3),
            ("control", 1, 0),
            ("filtered", 4, 3),
        ]
    [selected] = [part for part in told[-1].report.parts if part.source == "filtered" and "select" in part.name]
    assert (selected.rows_in, selected.rows_out) == (4, 0)
    assert told[1].cause.since.startswith("micro-batch 0 (20")  # the wall clock is in the offsets
    found = CliRunner().invoke(app, ["why", str(checkpoint), "--check"])
    assert (found.exit_code, found.output.splitlines()[0]) == (3, told[-1].cause.sentence)
    put(tmp_path / "control", 1, 60)
    put(tmp_path / "filtered", 4, 60)
    again = query.to_spark(2, checkpoint=checkpoint).writeStream.format("noop")
    again = again.option("checkpointLocation", str(checkpoint)).trigger(availableNow=True).start()
    again.awaitTermination()
    report = query.why(again).report
    assert [source.read for source in report.sources] == [40, 2, 5]  # what was known goes on
    assert checkpoint_report(checkpoint).results == report.results > 0
