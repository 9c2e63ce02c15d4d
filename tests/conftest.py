"""One Spark session for all tests that need one, and how many examples random tests draw (see tests/README.md)."""

import os
import sys
from pathlib import Path

import pytest
from hypothesis import settings

import ready_workers
from how_many import EXAMPLES

# Tests run each piece of Spark a few times: compiling it well costs more than it saves, and so does collecting garbage
# beside the program, or verifying classes that others have tested. Programs they start inherit it.
QUICK_JAVA = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC -XX:+UnlockDiagnosticVMOptions -XX:-BytecodeVerificationRemote"
os.environ.setdefault("JDK_JAVA_OPTIONS", QUICK_JAVA)
# Frames here have a few rows: handing them between threads takes a quarter of all time. Spark's workers have one, too.
os.environ.setdefault("POLARS_MAX_THREADS", "1")
os.environ.setdefault("WINDROW_CALIBRATION", "none")  # plans are those of the reference machine
sys.path.append(str(Path(__file__).parent / "operators"))  # harness and replays, for whoever wants them
FEWEST = 2
# They have Numba compile the kernels. They come first, so that the processes of ``make test`` do not all compile them.
KERNELS = ("test_table.py", "test_matcher.py", "test_as_of_join.py")


def pytest_itemcollected(item):
    """Scale the examples of a random test."""
    test = getattr(item, "obj", None)
    declared = getattr(test, "_hypothesis_internal_use_settings", None)
    if declared is not None and getattr(test, "is_hypothesis_test", False):
        count = max(round(declared.max_examples * EXAMPLES), min(declared.max_examples, FEWEST))
        # However busy the machine is: no deadline.
        drawn = settings(declared, max_examples=count, derandomize=EXAMPLES <= 1, deadline=None)
        getattr(test, "__func__", test)._hypothesis_internal_use_settings = drawn


def pytest_collection_modifyitems(items):
    items.sort(key=lambda item: item.path.name not in KERNELS)


@pytest.fixture(scope="session")
def broker():
    """A Kafka broker for all tests of this process; each test makes its own topics."""
    from windrow.testing.broker import Broker

    with Broker() as running:
        yield running


@pytest.fixture(scope="session")
def spark(tmp_path_factory):
    from pyspark.sql.streaming import DataStreamWriter

    import windrow as wr
    from windrow.hosts.spark.start import Restarted

    folder = tmp_path_factory.mktemp("spark")
    if sys.platform == "linux":
        os.environ.setdefault("PYSPARK_PYTHON", str(ready_workers.start(folder / "python")))
    session = wr.session(
        "windrow-tests",
        log=folder / "spark.log",
        **{
            "spark.sql.warehouse.dir": folder / "warehouse",
            "spark.sql.shuffle.partitions": 2,
            "spark.sql.session.timeZone": "America/New_York",  # nothing may depend on it
        },
    )
    start = DataStreamWriter.start
    with pytest.MonkeyPatch.context() as patched:
        # Whatever a test starts is started again if the machine is too busy for Spark's 10 s, as ``wr.start`` does.
        patched.setattr(DataStreamWriter, "start", lambda *args, **named: Restarted(lambda: start(*args, **named)))
        yield session
    session.stop()
