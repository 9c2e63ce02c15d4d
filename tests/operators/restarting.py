"""An operator that goes on from what a checkpoint holds, between any two calls."""

from windrow.progress import Punctuation


class Restarting:
    """Applies ``changes`` to a disk, as Spark's state store does, and goes on in a new operator from there."""

    def __init__(self, make):
        self.make, self.operator, self.disk = make, make(), {}

    def restart(self):
        for name, frame in self.operator.changes().items():
            if frame is None:
                del self.disk[name]  # a deletion of what was never stored would be a KeyError
            else:
                self.disk[name] = frame
        assert self.operator.changes() == {}
        before = self.operator.snapshot()
        self.operator = self.make()
        self.operator.restore(dict(self.disk))
        now = self.operator.snapshot()
        assert set(now) == set(before)
        assert all(frame.equals(before[name]) for name, frame in now.items())

    def on_batch(self, port, batch):
        return self.operator.on_batch(port, batch)

    def promise(self, port, value, group=None):
        return self.operator.on_punctuation(port, Punctuation(value, group))
