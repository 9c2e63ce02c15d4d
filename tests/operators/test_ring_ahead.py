"""What a node does before, or after, it has to: rows that are read late, and written early, are the same rows."""

import numpy as np
import polars as pl

from windrow.operators import Ring
from windrow.operators.ring.joining import Joining
from windrow.operators.ring.layout import Wishes
from windrow.operators.ring.messages import Payload
from windrow.operators.ring.slices import Slice
from windrow.progress import Punctuation
from windrow.windows.multiway import Ranges


def test_rows_that_nobody_has_looked_at_are_read_when_somebody_does():
    seen, unseen = Slice(), Slice()
    for at in range(0, 60, 3):
        rows = pl.DataFrame({"@n": [at, at + 1, at + 2], "@t": [at, at, at + 2], "x": [f"{at}", None, "y"]})
        seen.append(rows)
        written = bytes(Payload(rows).packed(lambda data: (data, 0))[0])
        unseen.take(Payload(None, written), np.array([at, at + 1, at + 2]), np.array([at, at, at + 2]))
        if at % 15 == 0:
            for state in (seen, unseen):
                state.forget(at - 4)
    assert unseen.height == seen.height
    assert unseen.younger(50) == seen.younger(50) == 51
    assert unseen.frame.equals(seen.frame)
    assert unseen.between(43, 52).equals(seen.between(43, 52))


def test_what_is_written_ahead_of_time_is_what_leaves():
    found = []
    for ahead in (False, True):
        ring = Ring(Joining(Ranges((30, 30)), (("a",), ("b",))), Wishes(most=4, nodes=4))
        for node in ring.nodes.values():
            node.ahead = ahead
        rows = []
        for time in range(150):
            port = time * 7 % 3 % 2
            ring.on_batch(port, pl.DataFrame({"@t": [time], "ab"[port]: [time]}))
            for each in (0, 1):
                items = ring.on_punctuation(each, Punctuation(time + 1))
                rows += [row for item in items if isinstance(item, pl.DataFrame) for row in item.rows()]
        state = {name: frame.rows() for name, frame in ring.snapshot().items() if name != "node0"}
        found.append((sorted(rows), state))
        assert any(node._ready for node in ring.nodes.values()) == ahead
    assert found[0] == found[1]
    assert len(found[0][0]) > 500
