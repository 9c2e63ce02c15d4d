"""Groups by a float: NaN is one key, -0.0 and 0.0 are one key, also where a whole batch or state is a single row of it.

Issue 11: Polars joins a frame of one row with another by value, and NaN did not find itself.
"""

import ast
import math
from pathlib import Path

import polars as pl
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from replays import EVERY, NUMBERS, ROW, check_replay, feed, query

import windrow as wr
from windrow.operators.state.keyed import matched
from windrow.planner import ALGORITHMS
from windrow.testing import compare, oracle
from windrow.testing.replay import latest

CHECK = settings(deadline=None, derandomize=True, max_examples=4)
KEYS = [math.nan, None, 0.0, -0.0]
# A few keys, and mostly one and the same, so that frames of one row meet frames of one row.
ROWS = st.lists(st.sampled_from(KEYS), min_size=1, max_size=2).flatmap(
    lambda keys: st.lists(st.builds(lambda row, z: {**row, "z": z}, ROW, st.sampled_from(keys)), max_size=10)
)


def shapes():
    """Every window type, by every algorithm, and whatever options have state of their own."""
    found = {using: lambda s, u=using: s.window(9, 4, using=u) for using in ALGORITHMS}
    found |= {f"by tuple, {u}": lambda s, u=u: s.each_row(6, 2, using=u) for u in ("blocks", "bins", "buffering")}
    found |= {
        f"by tuple of parts, {u}": lambda s, u=u: s.each_row(6, 2, partition_by="z", using=u)
        for u in ("blocks", "bins", "buffering")
    }
    return found | {
        "tumbling": lambda s: s.window(7),
        "landmark": lambda s: s.landmark(6),
        "session": lambda s: s.session(4),
        "rows": lambda s: s.rows(4, 2),
        "rows of parts": lambda s: s.rows(3, 2, partition_by="z"),
        "all rows of parts": lambda s: s.rows(1, partition_by="z"),
        "early": lambda s: s.window(9, 4).emit_early(3),
        "empty": lambda s: s.window(9, 4).with_empty(),
        "in order": lambda s: s.window(9, 4, using="iop"),
    }


ONE = {"t": 1, "k": "a", "q": 1, "x": 1, "f": 1.5, "w": "u", "d": 125, "z": math.nan}


@pytest.mark.parametrize("name", shapes())
@CHECK
@example(rows=[ONE], seed=0, slack=0)
@example(rows=[{**ONE, "t": t} for t in (1, 3, 9, 9, 15)], seed=3, slack=0)
@given(rows=ROWS, seed=st.integers(0, 9), slack=st.sampled_from([0, 7]))
def test_every_window_and_every_aggregate(name, rows, seed, slack):
    wanted = NUMBERS if name == "two-level" else EVERY
    check_replay(shapes()[name], rows, ("z",), seed, slack, wanted)


@settings(CHECK, max_examples=15)
@given(rows=ROWS, cuts=st.lists(st.integers(0, 10), max_size=9), early=st.booleans())
def test_revisions(rows, cuts, early):
    def shape(s):
        revised = s.window(9, 4).late("revise", keep=1000)
        return revised.emit_early(3) if early else revised

    built = query(shape, rows, ("z",))
    found = pl.concat([run.results() for run in feed(built, rows, cuts)])
    compare(latest(found, built), oracle(built), "revised")


@pytest.mark.parametrize("how", ["inner", "left", "semi", "anti"])
@pytest.mark.parametrize("more", [[], ["w"]])
@pytest.mark.parametrize("heights", [(1, 1), (1, 2), (2, 1)])
@pytest.mark.parametrize("key", KEYS)
def test_keys_match_in_frames_of_any_height(how, more, heights, key):
    left = pl.DataFrame({"z": [key, 7.5], "w": [1, 1], "a": [0, 1]}, schema_overrides={"z": pl.Float64})[: heights[0]]
    other = -key if key == 0 else key
    right = pl.DataFrame({"z": [other, 8.5], "w": [1, 1], "b": [5, 6]}, schema_overrides={"z": pl.Float64})
    right = right.drop([] if more else ["w"])[: heights[1]]
    found = matched(left, right, ["z", *more], how)
    others = list(range(1, heights[0]))
    assert found["a"].to_list() == {"left": [0, *others], "anti": others}.get(how, [0])
    if how in ("inner", "left"):
        assert found["b"].to_list() == [5, *(None for _ in others if how == "left")]
        assert found.columns == ["z", "w", "a", "b"]
    lazily = matched(left.lazy(), right.lazy(), ["z", *more], how).collect()
    assert lazily.equals(found, null_equal=True)


def test_no_operator_joins_on_keys_by_itself():
    folder = Path(wr.__file__).parent / "operators"
    found = []
    for path in sorted(folder.rglob("*.py")):
        calls = [n for n in ast.walk(ast.parse(path.read_text())) if isinstance(n, ast.Call)]
        joins = [c for c in calls if isinstance(c.func, ast.Attribute) and c.func.attr == "join"]
        found += [f"{path.name}:{c.lineno}" for c in joins if any(k.arg and k.arg.endswith("on") for k in c.keywords)]
    assert {place.split(":")[0] for place in found} == {"keyed.py"}, f"joins on keys go by keyed.matched: {found}"
