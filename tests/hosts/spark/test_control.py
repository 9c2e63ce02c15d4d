"""Driver and head of a ring that runs without end: what one tells, the other knows."""

import threading
from multiprocessing import Pipe

import pytest

from windrow.errors import CheckpointError, LateError
from windrow.hosts.ring.epochs import Progress
from windrow.hosts.ring.links import LostError
from windrow.hosts.spark.control import DeskControl, Followed, raised


def listening(followed, here):
    def listen():
        with pytest.raises(EOFError):
            followed.listen(here)

    thread = threading.Thread(target=listen)
    thread.start()
    return thread


@pytest.fixture
def both():
    here, there = Pipe()
    followed, control = Followed(Progress(3, {"rows_in": 1})), DeskControl(there)
    thread = listening(followed, here)
    yield followed, control, here
    there.close()
    thread.join()
    here.close()


def test_epochs_are_known_when_they_are_told(both):
    followed, control, _ = both
    assert followed.progress.epoch == 3
    told = Progress(4, {"rows_in": 9}, 0.5)
    control.tell(told)
    followed.wait(lambda: followed.progress.epoch == 4, 10)
    assert followed.progress == told
    followed.wait(lambda: followed.progress.epoch == 5, 0.01)  # it has not come
    followed.end()
    followed.wait(lambda: False, None)


def test_a_run_that_is_to_end_does_not_pause(both):
    followed, control, _ = both
    control.tell(Progress(4))
    followed.wait(lambda: followed.progress.epoch == 4, 10)
    assert not control.stopping()
    followed.stop()
    control.pause(1000)
    assert control.stopping()
    control.pause(1000)


def test_the_next_attempt_is_told_to_end_too():
    followed = Followed(Progress())
    followed.stop()
    here, there = Pipe()
    there.close()
    with pytest.raises(BrokenPipeError):
        followed.listen(here)  # nobody is there any more
    here, there = Pipe()
    thread = listening(followed, here)
    control = DeskControl(there)
    control.pause(1000)
    assert control.stopping()
    there.close()
    thread.join()
    here.close()


def test_without_a_driver_it_ends():
    here, there = Pipe()
    control = DeskControl(there)
    here.close()
    for call in (control.stopping, lambda: control.tell(Progress(1)), lambda: control.pause(1000)):
        with pytest.raises(LostError, match="the driver has gone"):
            call()
    there.close()


def test_errors_of_ours_are_found_in_those_of_spark():
    java = "\n\n\tat org.apache.spark.api.python.BasePythonRunner$ReaderIterator.read(PythonRunner.scala:1)\n"
    found = raised(f"aborted\nTraceback\n  File\nwindrow.errors.CheckpointError: one\n  two{java}")
    assert isinstance(found, CheckpointError)
    assert str(found) == "one\n  two"
    assert isinstance(raised("windrow.errors.LateError: late"), LateError)
    assert raised(f"windrow.hosts.ring.links.LostError: node 1 has gone{java}") is None
    assert raised(f"Python worker exited unexpectedly (crashed){java}") is None
