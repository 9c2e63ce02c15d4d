"""A query that is run to see what it costs: what is beside the estimates, and what cannot be analyzed."""

import json

import numpy as np
import polars as pl
import pytest

import windrow as wr
from windrow.hosts.analysis import analyzed
from windrow.testing.simulated import SimulatedSpark

COUNT = 25_000


def rows(seed=0, count=COUNT):
    rng = np.random.default_rng(seed)
    return pl.DataFrame({"t": np.sort(rng.integers(0, 50_000, count)), "k": rng.integers(0, 20, count), "x": 1})


def counted(s):
    return s.where("x > 0").window(1000, 500).group_by("k").agg(n=wr.count())


def source(**options):
    return wr.stream(rows(), "t", **{"slack": 0, "name": "s", **options})


def parts(found):
    return {line.name: line for line in found.lines if line.estimated_micros is not None}


def test_every_part_is_measured_and_its_operators_are_below_it():
    query = counted(source())
    found = query.analysis()
    assert [line.name for line in found.lines] == [
        "source s",
        "  admit",
        "  punctuate",
        "stage 0",
        "  select+prepare+panes",
        "  meld",
        "  paned",
        "result",
        "  progress",
        "  columns",
        "the plan",
    ]
    mine = parts(found)
    assert mine["the plan"].rows_in == COUNT
    assert mine["the plan"].rows_out == query.collect().height
    for name in ("source s", "stage 0", "result"):
        at = [line.name for line in found.lines].index(name)
        below = []
        for line in found.lines[at + 1 :]:
            if not line.name.startswith("  "):
                break
            below.append(line)
        assert mine[name].micros == pytest.approx(sum(line.micros for line in below))
        assert mine[name].bytes == sum(line.bytes for line in below)
    whole = sum(line.micros for name, line in mine.items() if name != "the plan")
    assert whole > 0
    assert mine["the plan"].micros == pytest.approx(whole)
    assert found.length == pytest.approx(50_000, rel=0.01)


def test_what_explain_shows_is_aligned_and_says_what_was_run():
    query = counted(source())
    text = query.explain(analyze=True)
    assert text.startswith(f"{query.explain()}\n\nAnalysis\n")
    table = text.split("\n\nAnalysis\n")[1].split("\n")
    header, columns, *lines = table[:-2]
    assert header.split() == ["rows", "in", "rows", "out", "us", "state", "bytes"]
    assert columns.split().count("ratio") == 2
    assert len({len(line.rstrip()) for line in lines if "stage" in line or "plan" in line}) == 1
    assert "25,000 rows of s, at most 10,000 of each at a time" in text
    assert "estimates (measured) are for the" in text


def test_only_the_first_rows_are_run_where_there_is_a_limit():
    found = counted(source()).analysis(3000)
    assert found.rows == {"s": 3000}
    assert found.limited == ("s",)
    assert "3,000 rows of s, which are the first ones of s" in found.text()
    assert found.lines[-1].rows_in == 3000
    assert counted(source()).analysis(COUNT).limited == ()


def test_all_sources_come_in_step_and_progress_is_told():
    few = wr.stream(rows(1, 500), "t", slack=0, name="few")
    told = []
    found = source().join(few, on="k", within=(0, 100)).analysis(each=told.append)
    assert told == [pytest.approx(each) for each in (1 / 3, 2 / 3, 1)]
    assert found.rows == {"s": COUNT, "few": 500}
    assert found.late == 0


def test_rows_that_are_late_in_such_batches_are_counted():
    early = pl.concat([rows().tail(20_000), rows().head(5000)])
    found = counted(wr.stream(early, "t", slack=10, name="s")).analysis()
    assert found.late > 4000
    assert f"{found.late:,} rows were late" in found.text()


def test_an_analysis_for_programs_has_no_infinity():
    endless = counted(wr.stream(rows(), "t", name="s"))  # no promises: all is kept until the end
    found = endless.analysis()
    whole = json.loads(json.dumps(found.as_json(), allow_nan=False))
    assert [part["name"] for part in whole["parts"]] == [line.name for line in found.lines]
    stage = next(part for part in whole["parts"] if part["name"] == "stage 0")
    assert stage["estimated_bytes"] is None
    assert stage["bytes"] > 0
    assert (whole["rows"], whole["late"], whole["unit"]) == ({"s": COUNT}, 0, "unit")
    assert " all " in found.text()


def test_no_rows_and_bad_rows_are_no_error():
    empty = counted(wr.stream(rows().clear(), "t", slack=0, name="s")).analysis()
    assert empty.length == 0
    assert empty.lines[-1].rows_in == 0
    bad = rows(count=2000).with_columns(t=pl.when(pl.int_range(pl.len()) % 2 == 0).then("t"))
    found = counted(wr.stream(bad, "t", slack=0, name="s")).analysis()
    assert parts(found)["source s"].rows_in == 2000
    assert parts(found)["source s"].rows_out == 1000


def test_files_are_read_up_to_the_limit_and_damaged_ones_are_left_out(tmp_path):
    rows(count=4000).write_parquet(tmp_path / "0.parquet")
    (tmp_path / "1.parquet").write_text("torn")
    rows(1, 4000).with_columns(pl.col("t") + 50_000).write_parquet(tmp_path / "2.parquet")
    query = counted(wr.read_parquet(tmp_path, progress="t", slack=0, name="s"))
    assert query.analysis().rows == {"s": 8000}
    assert query.analysis(5000).limited == ("s",)
    joined = query.join(counted(source(name="other")), on="k", within=(0, 0)).analysis(5000)
    assert joined.rows == {"s": 5000, "other": 5000}


def test_user_functions_and_arrival_times_are_run(tmp_path):
    doubled = source().apply(y=wr.udf(lambda x: 2 * x, "BIGINT", "x")).window(1000).agg(total=wr.sum("y"))
    assert doubled.analysis(2000).lines[-1].rows_out > 0
    by_arrival = wr.stream(rows(), progress="arrival_ts", name="s").window("1 hour").agg(n=wr.count())
    assert by_arrival.analysis(2000).lines[-1].rows_in == 2000


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"analyze": True, "shards": 2}, "shards and checkpoint do not apply"),
        ({"analyze": True, "checkpoint": "state"}, "shards and checkpoint do not apply"),
        ({"analyze": True, "limit": 0}, "limit=0 must be at least 1"),
        ({"analyze": True, "limit": 1.5}, "limit"),
        ({"limit": 5}, "limit= is for analyze=True"),
    ],
)
def test_options_without_an_effect_are_refused(options, message):
    with pytest.raises(wr.QueryError, match=message):
        counted(source()).explain(**options)


def test_endless_sources_and_those_on_spark_are_refused_with_what_is_possible(tmp_path):
    rows(count=10).write_parquet(tmp_path / "0.parquet")
    endless = counted(wr.read_parquet(tmp_path, progress="t", slack=0, streaming=True))
    with pytest.raises(wr.PlanError, match=r"has no end.*streaming=False"):
        endless.explain(analyze=True)
    spark = SimulatedSpark()
    for frame in (spark.stream(rows().schema), spark.frame([rows()])):
        with pytest.raises(wr.PlanError, match=r"is a Spark DataFrame.*toPandas"):
            counted(wr.stream(frame, "t", slack=0, name="s")).analysis()


def test_a_plan_can_be_analyzed_over_frames_of_ones_own():
    query = counted(source())
    found = analyzed(query.plan(), {"s": rows(5, 1200)})
    assert found.estimates.basis == "assumed"  # no sample was given
    assert found.rows == {"s": 1200}
