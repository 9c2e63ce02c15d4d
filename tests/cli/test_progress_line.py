"""The line that shows how a streaming query is doing."""

from types import SimpleNamespace

from windrow.cli.progress import COUNTS, Totals


def query(**counts):
    """A Spark query with one finished micro-batch."""
    metrics = {"state_bytes": 2048, **dict.fromkeys(COUNTS, 0), **counts}
    batch = SimpleNamespace(batchId=0, observedMetrics={"windrow": metrics}, durationMs={"triggerExecution": 500})
    return SimpleNamespace(recentProgress=[batch])


def test_what_a_join_sheds_is_shown_with_its_recall():
    totals = Totals()
    limited = query(rows_in=100, rows_shed=60, pairs_near=1000, pairs_missed=840)
    assert totals.update(limited)
    assert not totals.update(limited)  # a micro-batch counts once
    assert totals.line().endswith("2 KiB of state, 0.0% of the traffic promises, 60 shed, recall about 16%")


def test_without_limits_nothing_is_said_of_them():
    totals = Totals()
    totals.update(query(rows_in=100, files_bad=2))
    assert totals.line().endswith("promises, 2 bad files")
    assert "100 rows in (200/s)" in totals.line()
