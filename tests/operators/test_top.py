"""ORDER BY and LIMIT inside a window: the same rows in every order of arrival, and bounded state."""

import random

import polars as pl
from harness import first_wait
from hypothesis import given, settings
from hypothesis import strategies as st

from windrow.operators import Top
from windrow.progress import END, Punctuation

CHECK = settings(deadline=None, derandomize=True, max_examples=40)
ROWS = st.lists(st.tuples(st.integers(0, 3), st.sampled_from([None, 1, 2, 3]), st.sampled_from("abc")), max_size=20)


def frame(rows):
    data = [{"window_start": 10 * w, "window_end": 10 * w + 10, "n": n, "k": k, "@t": 10 * w + 10} for w, n, k in rows]
    return pl.DataFrame(
        data, schema={"window_start": pl.Int64, "window_end": pl.Int64, "n": pl.Int64, "k": pl.String, "@t": pl.Int64}
    )


def expected(rows, limit, down):
    found = []
    for w in {r[0] for r in rows}:

        def order(r):
            none_first = (r[1] is not None) if not down else (r[1] is None)
            return none_first, (-(r[1] or 0) if down else (r[1] or 0)), r[2]

        found += sorted((r for r in rows if r[0] == w), key=order)[:limit]
    return sorted(found, key=repr)


@CHECK
@given(ROWS, st.integers(1, 4), st.booleans(), st.randoms(use_true_random=False))
def test_the_first_rows_of_each_window_in_any_order_of_arrival(rows, limit, down, rng):
    shuffled = rng.sample(rows, len(rows))
    top = Top(["n"], [down], limit)
    for start in range(0, len(rows), 3):
        assert top.on_batch(0, frame(shuffled[start : start + 3])) == []
        state = top.snapshot()
        top = Top(["n"], [down], limit)
        top.restore(state)
    out = [item for item in top.on_punctuation(0, Punctuation(END)) if isinstance(item, pl.DataFrame)]
    got = [(ws // 10, n, k) for f in out for ws, n, k in f.select("window_start", "n", "k").rows()]
    assert sorted(got, key=repr) == expected(rows, limit, down)
    assert top.state_bytes() == 0


def test_a_window_is_out_when_the_promise_is_past_its_end_and_not_before():
    top = Top(["n"], [True], 1)
    top.on_batch(0, frame([(0, 1, "a"), (1, 2, "b")]))
    assert first_wait(top) == 11
    assert top.on_punctuation(0, Punctuation(10)) == [Punctuation(10)]
    rows, promise = top.on_punctuation(0, Punctuation(11))
    assert (rows["k"].to_list(), promise) == (["a"], Punctuation(11))
    assert top.on_punctuation(0, Punctuation(11)) == []
    assert first_wait(top) == 21


def test_state_is_bounded_by_the_limit():
    top, rng = Top(["n"], [True], 5), random.Random(1)
    for _ in range(100):
        top.on_batch(0, frame([(0, rng.randint(0, 1000), "x") for _ in range(50)]))
    assert sum(f.height for name, f in top.snapshot().items() if name != "promised") <= 5 * 4


def test_changes_add_up_to_the_snapshot():
    top, disk = Top(["n"], [True], 2), {}
    for step in (frame([(0, 1, "a")]), Punctuation(5), frame([(0, 3, "c"), (1, 1, "d")]), Punctuation(12)):
        _ = top.on_batch(0, step) if isinstance(step, pl.DataFrame) else top.on_punctuation(0, step)
        for name, chunk in top.changes().items():
            disk.pop(name, None) if chunk is None else disk.update({name: chunk})
        assert set(disk) | {"promised"} == set(top.snapshot())
    assert top.changes() == {}
