"""Test your own queries: transcripts that run on every host, and replays under random arrival against an oracle."""

from windrow.testing.accounting import accounted, accounted_join
from windrow.testing.crash import after_file, run_until
from windrow.testing.mismatch import Mismatch
from windrow.testing.oracle import oracle
from windrow.testing.replay import compare, replay
from windrow.testing.timeline import timeline
from windrow.testing.transcripts import Transcript, load, run_batch, run_local, run_spark

__all__ = [
    "Mismatch",
    "Transcript",
    "accounted",
    "accounted_join",
    "after_file",
    "compare",
    "load",
    "oracle",
    "replay",
    "run_batch",
    "run_local",
    "run_spark",
    "run_until",
    "timeline",
]
