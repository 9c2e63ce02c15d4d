"""Whatever the query: why never fails, and the promises that it asks for release or free something where it waits."""

import random

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from test_random_queries import queries
from windrow.progress import END

CHECK = settings(
    deadline=None,
    derandomize=True,
    max_examples=150,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)


def pushed(query, rng):
    """A run that has read all rows in some order, and has said why after each part of them."""
    run = query.run()
    parts = []
    for name, source in query.sources.items():
        rows = source.data.sample(fraction=1, shuffle=True, seed=rng.randrange(99))
        parts += [(name, rows[at : at + 4]) for at in range(0, rows.height, 4)]
    rng.shuffle(parts)
    for name, rows in parts:
        run.push(name, rows)
        assert run.why().text
    run.results()
    return run


def place(held):
    return held.stage, held.operator, held.port


@CHECK
@given(query=queries(), seed=st.integers(0, 99))
def test_what_is_asked_for_releases_something(query, seed):
    run = pushed(query, random.Random(seed))
    state, report = run.snapshot(), run.why().report
    for held in report.held:
        if not held.count:
            continue
        behind = {key: at for key, at in held.asks.items() if report.source(key).promised < at}
        assert behind, held
        again = query.run().restore(state)
        for key, at in behind.items():
            if at == END:
                again.end()
                break
            again.promise(report.source(key).name, at)
        after = {place(each): each for each in again.why().report.held}
        released = again.results().height
        now = after.get(place(held))
        assert released or now is None or (now.promise, now.count, now.bytes) != (held.promise, held.count, held.bytes)
        assert now is None or now.promise != held.promise or now.count < held.count, (held, now)
