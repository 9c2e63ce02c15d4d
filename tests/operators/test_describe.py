"""Describe: of all promises, those that close a window, each once."""

import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from restarting import Restarting

import windrow as wr
from windrow.operators import Describe
from windrow.progress import END, START, Promises, Punctuation

CHECK = settings(deadline=None, derandomize=True, max_examples=100)
STEPS = st.lists(
    st.tuples(st.integers(-40, 60), st.sampled_from([None, None, ("a",), ("b",)]), st.booleans()), max_size=20
)


@CHECK
@given(STEPS, st.integers(1, 12), st.integers(-5, 5))
def test_promises_are_rolled_down_to_a_window_end_and_none_comes_twice(steps, step, origin):
    describe, known = Restarting(lambda: Describe(step, origin)), Promises()
    for value, group, restart in [*steps, (END, None, True)]:
        if restart:
            describe.restart()
        out = describe.promise(0, value, group)
        ends = [e for e in range(origin - 60 * step, 70, step) if e <= value]
        rolled = END if value == END else max(ends)
        assert out == ([Punctuation(rolled, group)] if known.give(Punctuation(rolled, group)) else [])
    assert describe.operator.promises.groups == {}, "the end of the stream frees what groups were told"


def test_rows_pass():
    frame = pl.DataFrame({"@t": [1]})
    assert Describe(5).on_batch(0, frame) == [frame]


@pytest.mark.parametrize(
    ("make", "described"),
    [
        (lambda s: s.window(10, 4), (4, 0)),
        (lambda s: s.window(10, 4, origin=3), (4, 3)),
        (lambda s: s.landmark(6), (6, 0)),
        (lambda s: s.session(6), None),
        (lambda s: s.each_row(6), None),
        (lambda s: s.window(10).emit_early(2), None),
        (lambda s: s.window(10).late("side"), None),
    ],
)
def test_each_window_says_which_promises_it_needs(make, described):
    """Where results come again, or late rows say by how much, every promise counts."""
    stage = make(wr.stream([{"t": 1}], "t")).agg(n=wr.count()).plan().stages()[0]
    found = [step.make() for step in stage.inputs[0].steps if step.name == "describe"]
    assert [(d.step, d.origin) for d in found] == ([] if described is None else [described])


def test_nothing_is_promised_before_anything_is():
    assert Describe(5).promises.low == START
