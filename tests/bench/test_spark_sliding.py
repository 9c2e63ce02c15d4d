"""The parts of spark-sliding that decide: who runs when, what is compared with what, and when results agree."""

import json
from datetime import UTC, datetime

import polars as pl
import pytest

from windrow.bench import spark_sliding
from windrow.bench.experiment import AFTERWARDS
from windrow.bench.spark_sliding import QUICK, VARIANTS, WHOLE, Scope, agree, faster, figures_of

END = datetime(2024, 1, 1, tzinfo=UTC)
RESULT = pl.DataFrame(
    {
        "src_ip": ["a", "b"],
        "window_start": [END, END],
        "window_end": [END, END],
        "n": [1, 2],
        "longest": [3, 4],
    },
    schema_overrides={"window_start": pl.Datetime("us", "UTC"), "window_end": pl.Datetime("us", "UTC")},
)
LATER = RESULT.with_columns(pl.col("window_end") + pl.duration(minutes=1))


def test_sides_agree_on_the_windows_that_both_have_released():
    assert agree(RESULT, RESULT.reverse())
    assert agree(pl.concat([RESULT, LATER]), RESULT)
    assert not agree(RESULT, pl.concat([RESULT, LATER]))
    assert not agree(RESULT.with_columns(pl.lit(9).alias("n")), RESULT)
    assert not agree(RESULT.head(1), RESULT)


def test_what_spark_writes_by_default_has_no_time_zone():
    assert agree(RESULT, RESULT.with_columns(pl.selectors.datetime().dt.replace_time_zone(None)))


@pytest.mark.parametrize("nothing", [pl.DataFrame(), RESULT.clear()])
def test_a_side_that_wrote_nothing_agrees_with_nobody(nothing):
    """Issue 11: it counted as agreement when Spark had written nothing."""
    assert not agree(nothing, RESULT)
    assert not agree(RESULT, nothing)
    assert not agree(nothing, nothing)


class Recorded(spark_sliding._Bench):
    """Runs nothing: writes the same results for all, and remembers who ran."""

    ran: list[str]
    silent = ""

    def _rate(self, way, ratio, name, files=spark_sliding.FILES_PER_BATCH):
        self.ran.append(f"{way}-{ratio}")
        out = self.folder / name / "batch=00000000"
        out.mkdir(parents=True)
        (self.folder / f"{name}-state").mkdir()
        if way != self.silent:
            RESULT.write_parquet(out / "0.parquet")
        (out / "_SUCCESS").touch()
        return {"spark_default": 200.0, "spark_rocksdb": 100.0}.get(way, 1000.0 / len(self.ran))


def measured(tmp_path, scope, silent=""):
    bench = Recorded({}, tmp_path, scope, lambda text, done: None)
    bench.ran, bench.silent = [], silent
    outcome = bench.measure()
    return bench.ran[len(VARIANTS) :], outcome


def test_the_order_turns_round_from_one_round_to_the_next(tmp_path):
    ran, outcome = measured(tmp_path, Scope(2, {1: 3, 60: 1}, both=(1, 60), foreign=(60,)))
    one = ["windrow-1", "spark_default-1", "spark_rocksdb-1"]
    assert ran[:9] == [*one, *one[::-1], *one]
    assert ran[9:] == ["source-60", "foreign-60", "spark_rocksdb-60", "spark_default-60", "windrow-60"]
    assert outcome.holds["all sides write results, and the same windows"]


@pytest.mark.parametrize("silent", VARIANTS)
def test_a_side_that_writes_nothing_makes_the_claim_fail(tmp_path, silent):
    _, outcome = measured(tmp_path, Scope(2, {1: 1, 60: 1}, both=(1, 60), foreign=(60,)), silent)
    assert not outcome.holds["all sides write results, and the same windows"]


def test_the_quick_run_leaves_out_the_slower_store_at_60_and_the_curves(tmp_path):
    ran, outcome = measured(tmp_path, QUICK)
    assert [name for name in ran if name.endswith("-60")] == [
        "windrow-60",
        "spark_default-60",
        "foreign-60",
        "source-60",
    ]
    assert "speedup_240" not in outcome.figures
    assert outcome.curves == {}
    json.dumps(outcome.figures)


def test_the_whole_run_has_every_figure_and_a_curve_by_the_size_of_a_batch(tmp_path):
    ran, outcome = measured(tmp_path, WHOLE)
    for ratio in (1, 10, 60, 240):
        assert {f"{way}-{ratio}" for way in ("windrow", "spark_default", "spark_rocksdb", "foreign")} <= set(ran)
        for name in ("rows_per_s_windrow", "rows_per_s_spark", "rows_per_s_foreign", "speedup"):
            assert f"{name}_{ratio}" in outcome.figures
    assert {"speedup_60_source", "speedup_60_foreign", "growth", "noise"} <= set(outcome.figures)
    assert len(outcome.curves) == 2
    for claim, curve in outcome.curves.items():
        assert AFTERWARDS in claim
        assert claim in outcome.holds
        assert list(curve) == [f"micro-batches of {rows} rows" for rows in ("500,000", "2,000,000", "1,000,000")]


def test_the_faster_store_counts_and_the_best_run_of_each_side():
    rates = {
        ("windrow", 1): [80.0, 100.0],
        ("spark_default", 1): [150.0, 120.0],
        ("spark_rocksdb", 1): [160.0, 40.0],
        ("windrow", 60): [50.0],
        ("spark_default", 60): [25.0],
        ("source", 60): [100.0],
    }
    figures = figures_of(rates, (1, 60))
    assert faster(rates, 1) == "spark_rocksdb"
    assert figures["rows_per_s_spark_1"] == 160
    assert figures["speedup_1"] == round(100 / 160, 2)
    assert figures["speedup_1_over_spark_default"] == round(100 / 150, 2)
    assert (figures["speedup_60"], figures["speedup_60_source"]) == (2, 4)
    assert (figures["growth"], figures["noise"]) == (2, 4)
