"""Every transcript runs on every host: in process, as a batch in process and on Spark, as a stream on Spark."""

from pathlib import Path

import pytest

from windrow.testing import load, run_batch, run_local, run_spark

FOLDER = Path(__file__).parents[2] / "transcripts"
TRANSCRIPTS = [t for path in sorted(FOLDER.glob("*.yaml")) for t in load(path)]
PLAIN = {t.name for t in load(FOLDER / "sliding.yaml")}
RUNNABLE = [t for t in TRANSCRIPTS if t.error is None]
by_name = {"ids": lambda t: t.name}


@pytest.mark.parametrize("transcript", TRANSCRIPTS, **by_name)
def test_in_process(transcript):
    run_local(transcript)


@pytest.mark.parametrize("transcript", [t for t in RUNNABLE if t.batch is None], **by_name)
def test_as_a_batch_in_process(transcript):
    run_batch(transcript)


@pytest.mark.spark
@pytest.mark.parametrize("transcript", RUNNABLE, **by_name)
def test_as_a_stream_on_spark(transcript, spark, tmp_path):
    # Plain sliding windows are killed in test_restart.py; every other type is stopped half way here.
    run_spark(transcript, spark, tmp_path, restart=transcript.name not in PLAIN)


@pytest.mark.spark
@pytest.mark.parametrize("transcript", [t for t in RUNNABLE if t.batch is None], **by_name)
def test_as_a_batch_on_spark(transcript, spark):
    run_batch(transcript, spark)
