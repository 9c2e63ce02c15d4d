"""The time of arrival on Spark: that of the micro-batch, and the same when it runs again."""

import json
import os
from datetime import UTC, datetime

import polars as pl
import pytest

import windrow as wr
from windrow.testing import compare

pytestmark = pytest.mark.spark
NOON = 1_700_000_000


def put(folder, number):
    folder.mkdir(exist_ok=True)
    file = folder / f"{number}.parquet"
    pl.DataFrame({"x": [number, number + 10]}).write_parquet(file)
    os.utime(file, (NOON + number, NOON + number))  # Spark takes the oldest first, and any of the same millisecond


def started(query, state, found):
    """All that is there, one file a micro-batch; ``found`` gets the rows of each by its number."""

    def take(rows, number):
        found[number] = sorted(tuple(row) for row in rows.collect())

    writer = query.to_spark().writeStream.foreachBatch(take).option("checkpointLocation", str(state))
    return writer.trigger(availableNow=True).start()


def logged(state, number):
    """When Spark says that a micro-batch began."""
    stamp = json.loads((state / "offsets" / str(number)).read_text().splitlines()[1])["batchTimestampMs"]
    return datetime.fromtimestamp(stamp / 1000, UTC)


def uncommitted(state, number):
    """As if Spark had died just before the end of a micro-batch."""
    for name in (str(number), f".{number}.crc"):
        (state / "commits" / name).unlink(missing_ok=True)


def utc(found):
    """The timestamps of collected rows, which are in the zone of this machine."""
    return {number: [(at.astimezone(UTC), *rest) for at, *rest in rows] for number, rows in found.items()}


def test_a_micro_batch_that_runs_again_has_the_same_stamps(spark, tmp_path):
    folder, states = tmp_path / "in", [tmp_path / "of-dataframe", tmp_path / "of-files"]
    put(folder, 0)
    put(folder, 1)

    def queries():
        rows = spark.readStream.schema("x BIGINT").option("maxFilesPerTrigger", 1).parquet(str(folder))
        files = wr.read_parquet(folder, progress="arrival_ts", streaming=True, max_files=1, name="files")
        grouped = "SELECT arrival_ts, count(*) AS n, min(x) AS least FROM s GROUP BY arrival_ts"
        numbered = wr.sql("SELECT arrival_ts, x, row_num FROM files", files=files)
        return wr.sql(grouped, s=wr.stream(rows, progress="arrival_ts")), numbered

    def ran():
        found = [{}, {}]
        running = [started(*each) for each in zip(queries(), states, found, strict=True)]
        for each in running:
            each.awaitTermination()
        return [utc(each) for each in found]

    first = ran()
    for state in states:
        uncommitted(state, 1)
    put(folder, 2)
    second = ran()
    for before, after in zip(first, second, strict=True):
        assert (set(before), set(after)) == ({0, 1}, {1, 2})
        assert after[1] == before[1]
    # A group is complete when a later micro-batch has come: that of the one that ran twice has its first time.
    assert first[0][0] == []
    assert second[0][1] == [(logged(states[0], 0), 2, 0)]
    assert second[0][2] == [(logged(states[0], 1), 2, 1)]
    stamps = [{at for at, *_ in rows} for rows in (first[1][0], first[1][1], second[1][2])]
    assert [len(each) for each in stamps] == [1, 1, 1]
    assert sorted(map(max, stamps)) == list(map(max, stamps))
    numbers = [[row[1:] for row in rows] for rows in (first[1][0], second[1][1], second[1][2])]
    assert numbers == [[(0, 0), (10, 1)], [(1, 2), (11, 3)], [(2, 4), (12, 5)]]


def test_finite_data_arrives_when_the_query_runs(spark, tmp_path):
    put(tmp_path, 0)
    put(tmp_path, 1)
    before = datetime.now(UTC)
    frame = wr.stream(spark.read.parquet(str(tmp_path)), progress="arrival_ts", name="s")
    files = wr.read_parquet(tmp_path, progress="arrival_ts", name="s")
    times = {"at": wr.min("arrival_ts"), "last": wr.max("arrival_ts")}
    windows = [s.window("1 day").agg(n=wr.count(), **times) for s in (frame, files)]
    found = [windows[0].collect(), pl.DataFrame(windows[1].to_spark().toArrow())]
    assert files.window("1 day").agg(n=wr.count()).collect()["n"].to_list() == [4]
    for each in found:
        [(_, _, n, at, last)] = each.rows()
        assert (n, at) == (4, last)
        assert before.replace(microsecond=0) <= at <= datetime.now(UTC)
    assert wr.sql("SELECT x FROM s WHERE arrival_ts IS NULL", s=frame).bad_rows().count() == 0
    rows = files.rows(3, 1).agg(first=wr.min("row_num"), total=wr.sum("x"))
    found = pl.DataFrame(rows.to_spark().toArrow())
    assert found.height == 6
    compare(found, rows.collect().cast(found.schema), "finite files")
