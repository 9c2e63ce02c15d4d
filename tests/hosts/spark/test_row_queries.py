"""Orders, distinct rows, Python functions, split ways, in-order plans: streaming over restarts, and batch."""

import os

import numpy as np
import polars as pl
import pytest

import windrow as wr
from windrow.errors import DataError
from windrow.sinks.parquet import read_committed
from windrow.testing import compare, oracle
from windrow.testing.disturbed import disturbed

LINKS = ("a", "b", "c")
FILES = 3


def frame(link, number):
    """200 rows of a link in 100 s; the second is 40 s behind, the third has a row now and then."""
    rng = np.random.default_rng([number, LINKS.index(link)])
    n = 4 if link == "c" else 200
    at = number * 100_000_000 + np.sort(rng.integers(0, 100, n)) * 1_000_000 - 40_000_000 * (link == "b")
    at[1::7] -= 2_000_000 * (rng.random(len(at[1::7])) < 0.5)  # a little out of order
    lengths = rng.integers(0, 30, n)
    lengths[::50] = -1
    stamps = pl.Series("ts", at).cast(pl.Datetime("us", "UTC"))
    return pl.DataFrame({"ts": stamps, "ip": rng.integers(0, 9, n), "len": lengths})


def put(folder, numbers):
    for link in LINKS:
        (folder / link).mkdir(parents=True, exist_ok=True)
        for number in numbers:
            frame(link, number).write_parquet(folder / link / f"{number}.parquet", row_group_size=60)
            os.utime(folder / link / f"{number}.parquet", (100 + number, 100 + number))


def united(source):
    """The union of the links; ``source`` gives the rows of one, the default none of them."""
    made = [wr.stream(source(link), "ts", name=link, slack="2 seconds") for link in LINKS]
    return made[0].union(*made[1:])


def nothing(link):
    return frame(link, 0).clear()


def queries(source):
    root = wr.udf(lambda x: 1 / (x + 1), "DOUBLE", "len")  # fails for -1: a bad row
    dear = wr.udf(lambda ip, length: (ip + length) % 3 == 0, "BOOLEAN", "ip", "len")
    later = wr.udf(lambda ts: ts.dt.offset_by("1m"), "TIMESTAMP", "ts", vectorized=True, monotone=True)
    ways = source.split("len > 20", lambda long: long.where("ip > 1"), lambda rest: rest.where(dear))
    moved = ways.apply(root=root, ts=later).select("ip", "root", m="date_trunc('minute', ts)")
    in_order = source.window("60 seconds", "20 seconds", using="iop").group_by("ip")
    return {
        "order": source.order_by("ts", "ip DESC", "len"),
        "distinct": source.select("ts", "ip").distinct(),
        "ways": moved.window("2 minutes").group_by("ip").agg(n=wr.count(), r=wr.max("root")),
        "results": in_order.agg(n=wr.count(), most=wr.max("len")).order_by("window_end", "ip"),
    }


def in_process(name):
    """The same micro-batches, one after the other; all parts of a batch before its promises, as in a shard."""
    run = queries(united(nothing))[name].run()
    parts = []
    for number in range(FILES):
        for link in LINKS:
            parts.append(run.push(link, frame(link, number)).results())
    return run, pl.concat(parts)


NAMES = tuple(queries(united(nothing)))


@pytest.mark.parametrize("name", NAMES)
def test_row_queries_stream_over_restarts_what_one_process_lets_out(name):
    batches = [{link: halves(frame(link, number)) for link in LINKS} for number in range(FILES)]
    out = disturbed(lambda spark: queries(united(lambda link: spark.stream(frame(link, 0).schema)))[name], batches)
    check(name, pl.concat([batch.results for batch in out]), [batch.counts for batch in out])


def halves(rows):
    return [rows[: rows.height // 2], rows[rows.height // 2 :]]


def check(name, found, counts):
    run, expected = in_process(name)
    assert expected.height > 5
    assert run.counts["rows_late"] == 0
    compare(found, expected, name)
    for counter in ("rows_in", "rows_late", "rows_bad"):
        assert sum(m[counter] for m in counts) == run.counts[counter], counter
    assert name != "ways" or sum(m["rows_bad"] for m in counts) > 5


@pytest.mark.spark
def test_functions_and_orders_on_spark_too_over_a_restart(spark, tmp_path):
    """Python functions travel to its workers; a query without windows has state, too."""
    counts = {"ways": [], "order": []}
    for numbers in (range(2), range(2, FILES)):
        put(tmp_path / "in", numbers)
        running = {name: started(spark, tmp_path, name) for name in counts}
        for name, each in running.items():
            each.awaitTermination()
            counts[name] += [p.observedMetrics["windrow"] for p in each.recentProgress]
    for name in counts:
        check(name, read_committed(tmp_path / name), counts[name])


def started(spark, folder, name):
    def source(link):
        files = spark.readStream.schema("ts TIMESTAMP, ip BIGINT, len BIGINT").option("maxFilesPerTrigger", 1)
        return files.parquet(str(folder / "in" / link))

    writer = queries(united(source))[name].to_spark().writeStream.format("parquet").option("path", str(folder / name))
    return writer.option("checkpointLocation", str(folder / f"{name}-state")).trigger(availableNow=True).start()


@pytest.mark.spark
def test_row_queries_as_a_batch_give_what_they_mean_and_orders_hold(spark, tmp_path):
    put(tmp_path / "in", range(FILES))
    frames = {link: pl.concat([frame(link, number) for number in range(FILES)]) for link in LINKS}
    for name, query in queries(united(lambda link: spark.read.parquet(str(tmp_path / "in" / link)))).items():
        result = pl.DataFrame(query.to_spark(shards=2).toArrow()).cast(query.plan().schema)
        expected = oracle(query, frames)
        if name in ("order", "results"):
            assert result.equals(expected), name
        compare(result, expected, name)
        if name == "ways":
            bad = query.bad_rows().collect()
            assert {row["reason"] for row in bad} == {
                "queries.<locals>.<lambda> failed: ZeroDivisionError: division by zero"
            }
            assert {row["len"] for row in bad} == {-1}


@pytest.mark.spark
def test_a_stream_joined_with_a_spark_dataframe_streaming_and_batch(spark, tmp_path):
    """The table is collected once, as Spark gives it: types, NULL keys, and rows that the limit allows."""
    put(tmp_path, range(FILES))
    rows = [(ip, f"host {ip}", pl.Series([ip]).cast(pl.Date).item()) for ip in (*range(0, 9, 2), 4)] + [
        (None, "none", None)
    ]
    data = spark.createDataFrame(rows, "ip BIGINT, name STRING, since DATE").repartition(3)

    def query(source, table):
        named = source.join(wr.table(table, name="hosts"), on="ip", how="left", where="len > 3")
        return named.window("60 seconds").group_by("name", "since").agg(n=wr.count(), s=wr.sum("len"))

    whole = pl.DataFrame(rows, schema={"ip": pl.Int64, "name": pl.String, "since": pl.Date}, orient="row")
    expected = oracle(query(united(lambda link: pl.concat(frame(link, n) for n in range(FILES))), whole))
    batch = query(united(lambda link: spark.read.parquet(str(tmp_path / link))), data)
    compare(batch.collect(), expected, "batch")
    with pytest.raises(DataError, match="more than 20 bytes, too many to send to every worker"):
        united(lambda link: spark.read.parquet(str(tmp_path / link))).join(
            wr.table(data, name="hosts", limit=20), on="ip"
        ).to_spark()
    schema = spark.read.parquet(str(tmp_path / "a")).schema
    source = spark.readStream.schema(schema).option("maxFilesPerTrigger", 1)
    out = query(united(lambda link: source.parquet(str(tmp_path / link))), data).to_spark()
    writer = out.writeStream.format("parquet").option("path", str(tmp_path / "out"))
    writer.option("checkpointLocation", str(tmp_path / "state")).trigger(availableNow=True).start().awaitTermination()
    found = pl.read_parquet(tmp_path / "out" / "*.parquet")
    closed = expected.filter(pl.col("window_end") <= found["window_end"].max())
    assert found.height > 20
    compare(found, closed, "stream")
