"""Matcher call by call in a whole query: what comes out with each promise is known, with a restart between any two."""

import polars as pl
from hypothesis import given, settings
from hypothesis import strategies as st

import windrow as wr
from windrow.hosts.local import LocalRun
from windrow.operators import Matcher
from windrow.testing import compare, oracle

SCHEMA = {"x": pl.Int64(), "t": pl.Int64(), "k": pl.Int64()}
ROWS = st.lists(st.tuples(st.integers(0, 2), st.integers(0, 12), st.sampled_from([1, 1, 2, None])), max_size=9)
KINDS = {"one": lambda s: s, "no": wr.no, "some": wr.some}


@st.composite
def queries(draw):
    """A sequence of two to four streams, the rows of each in any order, and the name of the time of its results."""
    kinds = [draw(st.sampled_from(["one", "one", "some"]))]
    kinds += draw(st.lists(st.sampled_from(["one", "one", "some", "no"]), min_size=1, max_size=3))
    frames = {"abcd"[i]: pl.DataFrame(draw(ROWS), schema=SCHEMA, orient="row") for i in range(len(kinds))}
    steps = {
        name: KINDS[kind](wr.stream(frames[name], "t", name=name)) for name, kind in zip(frames, kinds, strict=True)
    }
    names, waits = list(frames), kinds[-1] != "one"
    tests = [f"a.x <= {name}.x" for name in names[1:] if draw(st.integers(0, 4)) == 0]
    options = {
        "matching": draw(st.sampled_from(["recent", "chronicle"])),
        "skip": "to next row" if waits else draw(st.sampled_from(["to next row", "past last row"])),
        "where": " AND ".join(tests) or None,
        "within": draw(st.sampled_from([0, 2, 5, 20])),
    }
    last = max(i for i, kind in enumerate(kinds) if kind != "no")
    time = f"{names[last]}_last_t" if kinds[last] == "some" else f"{names[last]}_t"
    start = "a_first_t" if kinds[0] == "some" else "a_t"
    return wr.seq(steps, on="k", **options), frames, (start if waits else time), time


class Restarted:
    """A run that goes on from what a checkpoint holds."""

    def __init__(self, query):
        self.plan, self.disk = query.plan(), {}
        self.run = LocalRun(self.plan)

    def restart(self):
        for name, chunk in self.run.graph.changes().items():
            self.disk.pop(name) if chunk is None else self.disk.update({name: chunk})
        assert self.run.graph.changes() == {}
        counts, promised = self.run.counts, self.run.promised
        self.run = LocalRun(self.plan)
        self.run.graph.restore(dict(self.disk))
        self.run.counts, self.run.promised = counts, promised


@settings(deadline=None, max_examples=150)
@given(drawn=queries(), data=st.data())
def test_sequences_come_out_as_soon_as_they_are_certain_and_promises_are_true(drawn, data):
    query, frames, certain, time = drawn
    expected, distance = oracle(query), query.node.within if query.node.waits else 0
    going, promises, found = Restarted(query), dict.fromkeys(frames, -1), [pl.DataFrame(schema=query.schema)]
    waiting = {name: data.draw(st.permutations(frame.rows())) for name, frame in frames.items()}
    while min(promises.values()) < 100:
        name = data.draw(st.sampled_from([n for n, at in promises.items() if at < 100]))
        size = data.draw(st.integers(0, len(waiting[name])))
        batch, waiting[name] = waiting[name][:size], waiting[name][size:]
        going.run.push(name, pl.DataFrame(batch, schema=SCHEMA, orient="row"))
        if data.draw(st.booleans()):
            going.restart()
        before = going.run.promised
        if data.draw(st.booleans()) or not waiting[name]:
            promises[name] = max(promises[name], min((row[1] for row in waiting[name]), default=100))
            going.run.promise(name, promises[name])
        new = going.run.results()
        assert before is None or not new.height or new[time].min() >= before
        found.append(new)
        below = min(promises.values()) - distance
        compare(pl.concat(found), expected.filter(pl.col(certain) < below), f"at {promises}")
        if data.draw(st.booleans()):
            going.restart()
    (matcher,) = [node.operator for node in going.run.graph.nodes if isinstance(node.operator, Matcher)]
    assert matcher.waiting.height == 0
    assert going.run.end().results().height == 0
