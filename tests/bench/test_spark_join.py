"""The parts of spark-join that decide: who runs when, what is compared with what, and when results agree."""

import json
from types import SimpleNamespace

import polars as pl
import pytest

from windrow.bench import spark_join
from windrow.bench.spark_join import (
    QUICK,
    VARIANTS,
    WHOLE,
    Measured,
    agree,
    alone,
    claims,
    earlier,
    figures_of,
    measured,
)
from windrow.bench.theta import HITS, Slow, slow, theta_side
from windrow.hosts.spark.exchange import METRICS

PAIRS = pl.DataFrame({"a": [1, 2], "b": [7, 8]})


def test_sides_agree_if_they_wrote_the_same_pairs_and_some_at_all():
    assert agree(PAIRS, PAIRS.reverse())
    assert not agree(PAIRS, PAIRS.head(1))
    assert not agree(PAIRS, PAIRS.with_columns(b=pl.lit(7)))
    for nothing in (pl.DataFrame(), PAIRS.clear()):
        assert not agree(nothing, PAIRS)
        assert not agree(PAIRS, nothing)


def progress(rows, ms=1000, state=None, operators=()):
    return SimpleNamespace(
        numInputRows=rows,
        durationMs={"triggerExecution": ms},
        observedMetrics={} if state is None else {METRICS: {"state_bytes": state}},
        stateOperators=[SimpleNamespace(memoryUsedBytes=size) for size in operators],
    )


def test_the_first_micro_batch_is_not_timed_and_the_greatest_state_counts():
    assert measured([progress(10, 9000, 50), progress(10, 500, 70), progress(10, 1500, 20)]) == Measured(10, 70)
    theirs = [progress(10, operators=(1, 2)), progress(10, operators=(30, 40)), progress(0, operators=(90, 1))]
    assert measured(theirs) == Measured(10, 91)  # a micro-batch without rows has state, too


def test_the_last_row_that_both_release_says_how_much_earlier(tmp_path):
    for batch, rows in enumerate([[(1, None), (2, 5)], [], [(4, None), (3, None)]]):
        frame = pl.DataFrame(rows, schema={"a": pl.Int64, "b": pl.Int64}, orient="row")
        folder = tmp_path / f"batch={batch:08d}"
        folder.mkdir()
        frame.write_parquet(folder / "0.parquet")
    ours = alone(tmp_path)
    assert sorted(ours.rows()) == [(1, 0), (3, 2), (4, 2)]
    theirs = pl.DataFrame({"a": [1, 3, 9], "batch": [1, 4, 9]})
    assert earlier(ours, theirs) == {"batches_earlier": 2, "batches_earlier_median": 1.5, "rows_alone": 2}
    assert earlier(ours, theirs.clear()) == {"batches_earlier": 0, "rows_alone": 0}


def test_the_faster_store_counts_and_the_best_run_of_each_side():
    runs = {
        "windrow": [Measured(80, 5), Measured(100, 4)],
        "spark_default": [Measured(10, 100), Measured(20, 90)],
        "spark_rocksdb": [Measured(12, 1000)],
    }
    figures = figures_of(runs)
    assert (figures["speedup"], figures["state_ratio"], figures["spark_default_counts"]) == (5, 0.05, 1)
    assert (figures["speedup_over_spark_rocksdb"], figures["state_ratio_spark_rocksdb"]) == (8.33, 0.005)
    assert figures["noise"] == 2


GOOD = {"speedup": 5, "state_ratio": 0.1, "batches_earlier": 1, "skew_over_uniform": 0.5, "theta_scaling_2": 1.7}


def test_claims_follow_from_the_figures():
    assert all(claims(GOOD, True).values())
    bad = {
        "speedup": 4.9,
        "state_ratio": 0.11,
        "batches_earlier": 0,
        "skew_over_uniform": 0.49,
        "theta_scaling_2": 1.69,
    }
    for name, value in bad.items():
        assert sum(claims({**GOOD, name: value}, True).values()) == 5
    assert sum(claims(GOOD, False).values()) == 5
    assert len(claims({k: v for k, v in GOOD.items() if k in ("speedup", "state_ratio", "batches_earlier")}, True)) == 4


class Recorded(spark_join._Bench):
    """Runs nothing: writes the same pairs for all, and remembers who ran."""

    ran: list[str]
    silent = ""

    def _run(self, variant, name, data="uniform"):
        self.ran.append(f"{variant}-{data}")
        out = self.folder / name / "batch=00000000"
        out.mkdir(parents=True)
        if variant != self.silent:
            PAIRS.write_parquet(out / "0.parquet")
        (out / "_SUCCESS").touch()
        return Measured({"spark_default": 200.0, "spark_rocksdb": 100.0}.get(variant, 1000.0), 10)

    def _outer(self, theirs):
        self.ran.append(f"outer-{theirs}")
        return {"batches_earlier": 1}

    def _theta(self):
        return {"theta_scaling_2": 2.0}


def done(tmp_path, scope, silent=""):
    bench = Recorded({}, tmp_path, scope, lambda text, share: None)
    bench.ran, bench.silent = [], silent
    outcome = bench.measure()
    return bench.ran[len(VARIANTS) :], outcome


def test_the_order_turns_round_and_the_faster_spark_joins_outer(tmp_path):
    ran, outcome = done(tmp_path, WHOLE)
    once = [f"{variant}-uniform" for variant in VARIANTS]
    assert ran[:10] == [*once, *once[::-1], *once, "outer-spark_default"]
    assert ran[10:14] == ["windrow-hot", "windrow-uniform", "windrow-uniform", "windrow-hot"]
    assert outcome.holds["all sides write the same pairs"]
    assert {"speedup", "state_ratio", "batches_earlier", "skew_over_uniform", "theta_scaling_2"} <= set(outcome.figures)


def test_the_quick_run_leaves_out_the_hot_key_and_the_theta_join(tmp_path):
    ran, outcome = done(tmp_path, QUICK)
    assert len(ran) == len(VARIANTS) + 1
    assert "skew_over_uniform" not in outcome.figures
    json.dumps(outcome.figures)


@pytest.mark.parametrize("silent", VARIANTS)
def test_a_side_that_writes_nothing_makes_the_claim_fail(tmp_path, silent):
    _, outcome = done(tmp_path, QUICK, silent)
    assert not outcome.holds["all sides write the same pairs"]


def test_files_are_as_many_as_micro_batches_need(tmp_path):
    spark_join.write(PAIRS, tmp_path / "l", 1)
    files = sorted((tmp_path / "l").iterdir())
    assert len(files) == spark_join.FILES
    assert pl.concat([pl.read_parquet(f) for f in files]).equals(PAIRS)
    assert files[0].stat().st_mtime < files[1].stat().st_mtime


def test_the_slow_condition_is_true_for_one_pair_in_a_hundred_whatever_it_costs():
    sides = [theta_side(i, 100_000) for i in (0, 1)]
    found = [Slow(rounds)(sides[0]["x"], sides[1]["y"]) for rounds in (0, 3)]
    assert found[0].equals(found[1])
    assert found[0].mean() == pytest.approx(HITS, rel=0.1)
    condition, nanos = slow()
    assert condition.function.columns == ("x", "y")
    assert nanos > 0
