"""Every transcript runs on every host: in process, as a batch, on a simulated Spark; one of each kind on a real one."""

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from windrow.testing import load, run_batch, run_local, run_spark
from windrow.testing.simulated_transcripts import run_simulated

FOLDER = Path(__file__).parents[2] / "transcripts"
TRANSCRIPTS = [t for path in sorted(FOLDER.glob("*.yaml")) for t in load(path)]
RUNNABLE = [t for t in TRANSCRIPTS if t.error is None]
AT_ONCE = 3
ON_SPARK = (  # what a real Spark takes part in: one of each, stopped half way and started again
    "a union waits for its slowest member",
    "a window over windows, in one query and one micro-batch",
    "the side output has the whole late row, its first window and how late it is",
    "a late row revises what was released, for as long as the query keeps it",
    "every second row by rank and every second row by arrival, with windows of its own for every key",
    "sessions end when the gap has passed, and rows in between join them",
    "a date progresses by days",
    "an as-of join waits for its right side, whatever came first",
    "an order without a payment is found when its time is over, not when a timer rings",
)
REAL = [t for t in RUNNABLE if t.name in ON_SPARK]
by_name = {"ids": lambda t: t.name}


@pytest.mark.parametrize("transcript", TRANSCRIPTS, **by_name)
def test_in_process(transcript):
    run_local(transcript)


@pytest.mark.parametrize("transcript", [t for t in RUNNABLE if t.batch is None], **by_name)
def test_as_a_batch_in_process(transcript):
    run_batch(transcript)


@pytest.mark.parametrize("transcript", RUNNABLE, **by_name)
def test_on_a_simulated_spark(transcript):
    run_simulated(transcript)


def test_those_that_run_on_a_real_spark_are_there():
    assert {t.name for t in REAL} == set(ON_SPARK)


@pytest.fixture(scope="module")
def streamed(spark, tmp_path_factory):
    """All streaming runs, some at the same time: a small micro-batch mostly waits for Spark."""
    with ThreadPoolExecutor(AT_ONCE) as pool:
        yield {t.name: pool.submit(run_spark, t, spark, tmp_path_factory.mktemp("stream")) for t in REAL}


@pytest.mark.spark
@pytest.mark.parametrize("transcript", REAL, **by_name)
def test_as_a_stream_on_spark(transcript, streamed):
    streamed[transcript.name].result()


@pytest.mark.spark
@pytest.mark.parametrize("transcript", [t for t in REAL if t.batch is None], **by_name)
def test_as_a_batch_on_spark(transcript, spark):
    run_batch(transcript, spark)
