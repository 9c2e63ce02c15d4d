"""Every transcript runs on every host: in process, as a batch in process and on Spark, as a stream on Spark."""

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from windrow.testing import load, run_batch, run_local, run_spark

FOLDER = Path(__file__).parents[2] / "transcripts"
TRANSCRIPTS = [t for path in sorted(FOLDER.glob("*.yaml")) for t in load(path)]
PLAIN = {t.name for t in load(FOLDER / "sliding.yaml")}
RUNNABLE = [t for t in TRANSCRIPTS if t.error is None]
AT_ONCE = 3
by_name = {"ids": lambda t: t.name}


@pytest.mark.parametrize("transcript", TRANSCRIPTS, **by_name)
def test_in_process(transcript):
    run_local(transcript)


@pytest.mark.parametrize("transcript", [t for t in RUNNABLE if t.batch is None], **by_name)
def test_as_a_batch_in_process(transcript):
    run_batch(transcript)


@pytest.fixture(scope="module")
def streamed(spark, tmp_path_factory):
    """All streaming runs, some at the same time: a small micro-batch mostly waits for Spark."""
    with ThreadPoolExecutor(AT_ONCE) as pool:
        # Plain sliding windows are killed in test_restart.py; every other type is stopped half way here.
        yield {
            t.name: pool.submit(run_spark, t, spark, tmp_path_factory.mktemp("stream"), restart=t.name not in PLAIN)
            for t in RUNNABLE
        }


@pytest.mark.spark
@pytest.mark.parametrize("transcript", RUNNABLE, **by_name)
def test_as_a_stream_on_spark(transcript, streamed):
    streamed[transcript.name].result()


@pytest.mark.spark
@pytest.mark.parametrize("transcript", [t for t in RUNNABLE if t.batch is None], **by_name)
def test_as_a_batch_on_spark(transcript, spark):
    run_batch(transcript, spark)
