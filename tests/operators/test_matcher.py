"""Matcher call by call in a whole query: what comes out with each promise is known, with a restart between any two."""

import random

import polars as pl
import pytest

import windrow as wr
from how_many import EXAMPLES
from windrow.hosts.local import LocalRun
from windrow.operators import Matcher
from windrow.testing import accounted_join, compare, oracle

SCHEMA = {"x": pl.Int64(), "t": pl.Int64(), "k": pl.Int64()}
KINDS = {"one": lambda s: s, "no": wr.no, "some": wr.some}
FAR = 100  # beyond all rows


def drawn(rng):
    """A sequence of two to four streams, the rows of each in any order; which column says when a result is certain, and
    which is its time."""
    kinds = rng.choices(["one", "some"], [2, 1]) + rng.choices(["one", "some", "no"], [2, 1, 1], k=rng.randint(1, 3))
    frames = {"abcd"[i]: rows(rng) for i in range(len(kinds))}
    names, waits = list(frames), kinds[-1] != "one"
    sources = [wr.stream(frame, "t", name=name) for name, frame in frames.items()]
    steps = {name: KINDS[kind](s) for name, kind, s in zip(names, kinds, sources, strict=True)}
    query = wr.seq(
        steps,
        on="k",
        matching=rng.choice(["recent", "chronicle"]),
        skip="to next row" if waits else rng.choice(["to next row", "past last row"]),
        where=" AND ".join(f"a.x <= {name}.x" for name in names[1:] if rng.random() < 0.2) or None,
        within=rng.choice([1, 4, 8, 20]),
    )
    last = max(i for i, kind in enumerate(kinds) if kind != "no")
    time = f"{names[last]}_last_t" if kinds[last] == "some" else f"{names[last]}_t"
    start = "a_first_t" if kinds[0] == "some" else "a_t"
    return query, frames, (start if waits else time), time


def rows(rng):
    data = [(rng.randrange(3), rng.randrange(12), rng.choice([1, 1, 2, None])) for _ in range(rng.randint(0, 9))]
    return pl.DataFrame(data, schema=SCHEMA, orient="row")


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


@pytest.mark.parametrize("seed", range(int(24 * max(1, EXAMPLES))))
def test_sequences_come_out_as_soon_as_they_are_certain_and_promises_are_true(seed):
    """A result is certain when all streams have promised beyond its last row; if more can come, beyond its time."""
    rng = random.Random(seed)
    query, frames, certain, time = drawn(rng)
    expected, distance = oracle(query), query.node.within if query.node.waits else 0
    going, promises, found = Restarted(query), dict.fromkeys(frames, -1), [pl.DataFrame(schema=query.schema)]
    waiting = {name: frame.sample(fraction=1, shuffle=True, seed=seed).rows() for name, frame in frames.items()}
    while min(promises.values()) < FAR:
        name = rng.choice([n for n, at in promises.items() if at < FAR])
        size = rng.randint(0, min(3, len(waiting[name])))
        batch, waiting[name] = waiting[name][:size], waiting[name][size:]
        going.run.push(name, pl.DataFrame(batch, schema=SCHEMA, orient="row"))
        if rng.random() < 0.5:
            going.restart()
        before = going.run.promised
        if rng.random() < 0.5 or not waiting[name]:  # the strongest promise that is true
            promises[name] = min((row[1] for row in waiting[name]), default=FAR)
            going.run.promise(name, promises[name])
        new = going.run.results()
        assert before is None or not new.height or new[time].min() >= before
        found.append(new)
        below = min(promises.values()) - distance
        compare(pl.concat(found), expected.filter(pl.col(certain) < below), f"at {promises}")
        if rng.random() < 0.5:
            going.restart()
    (matcher,) = [node.operator for node in going.run.graph.nodes if isinstance(node.operator, Matcher)]
    assert matcher.waiting.height == matcher.open.height == 0
    assert going.run.end().results().height == 0
    accounted_join(going.run.counts)
