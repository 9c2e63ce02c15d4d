"""A ring that runs without end on Spark: it reads, ends, continues, and says why it cannot run or go on."""

import os

import polars as pl
import pytest

import windrow as wr
from windrow.errors import LateError, PlanError

pytestmark = pytest.mark.spark
TIMEOUT = 120


def query(folder, nodes=2, late="drop", streaming=True):
    files = {"schema": "t BIGINT, n BIGINT", "progress": "t", "slack": 0, "streaming": streaming}
    streams = [wr.read_parquet(folder / name, name=name, **files) for name in "ab"]
    test = wr.udf(lambda x, y: x < y, "BOOLEAN", "n", "n_b")
    found = wr.multi_join(*streams, within=20, where=test, nodes=nodes, late=late)
    return found.select("t", "n", "t_b", "n_b")


def put(folder, number, a, b):
    for name, rows in (("a", a), ("b", b)):
        draft = folder / name / f".{number}"
        draft.parent.mkdir(exist_ok=True)
        pl.DataFrame(rows, schema={"t": pl.Int64, "n": pl.Int64}, orient="row").write_parquet(draft)
        os.utime(draft, (number, number))
        draft.rename(folder / name / f"{number}.parquet")


def started(folder, asked, spark):
    where = {"sink": folder / "sink", "checkpoint": folder / "state"}
    return asked.run_continuously(**where, epoch="10 ms", spark=spark)


def shown(folder):
    return pl.read_parquet(folder / "sink" / "*.parquet").sort("t", "n", "t_b", "n_b")


def test_it_runs_ends_and_continues(tmp_path, spark):
    put(tmp_path, 1, [(1, 1), (5, 7)], [(3, 4)])
    put(tmp_path, 2, [(30, 3)], [(31, 2)])
    run = started(tmp_path, query(tmp_path), spark)
    assert repr(run).startswith("ContinuousRun(running, nodes=2, epoch=")
    first = run.await_epoch(1, TIMEOUT)
    assert first.latency > 0
    assert shown(tmp_path).rows() == [(1, 1, 3, 4)]
    with pytest.raises(TimeoutError, match="epoch 2 has not come: the last one is 1"):
        run.await_epoch(2, 0.05)
    put(tmp_path, 3, [(40, 1)], [(41, 9)])
    run.await_epoch(2, TIMEOUT)
    put(tmp_path, 4, [(90, 1)], [(91, 9)])
    run.stop()
    assert run.wait(0)
    assert run.error is None
    again = started(tmp_path, query(tmp_path), spark)
    put(tmp_path, 5, [(200, 1)], [(200, 9)])
    while again.progress().counts["rows_in"] < 11:
        again.await_epoch(again.progress().epoch + 1, TIMEOUT)
    again.stop()
    meant = query(tmp_path, streaming=False).collect().filter(pl.col("t") < 200)
    assert shown(tmp_path).equals(meant.sort(meant.columns))
    assert repr(again) == f"ContinuousRun(ended, nodes=2, epoch={again.progress().epoch}, rows_out={meant.height})"


def test_what_comes_again_with_the_same_rows_ends_it(tmp_path, spark):
    put(tmp_path, 1, [(50, 1)], [(50, 1)])
    run = started(tmp_path, query(tmp_path, late="error"), spark)
    run.await_epoch(1, TIMEOUT)
    put(tmp_path, 2, [(3, 1)], [(60, 1)])
    with pytest.raises(LateError):
        run.wait(TIMEOUT)
    assert isinstance(run.error, LateError)
    assert repr(run).startswith("ContinuousRun(failed")
    with pytest.raises(LateError):
        run.await_epoch(2, TIMEOUT)


def test_more_nodes_than_slots_are_refused(tmp_path, spark):
    put(tmp_path, 1, [(1, 1)], [(1, 1)])
    with pytest.raises(PlanError, match="nodes=99 needs 99 tasks at the same time, and this Spark has"):
        started(tmp_path, query(tmp_path, nodes=99), spark)
