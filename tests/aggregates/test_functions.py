"""Every aggregate against recalc, whole and in parts, in Polars and in NumPy."""

import datetime as dt
import math
import struct
import sys
from functools import reduce

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from windrow.aggregates import FUNCTIONS, ROWS, Partials, make
from windrow.aggregates.functions import NUMERIC
from windrow.aggregates.parts import Moments
from windrow.errors import QueryError, ResultError
from windrow.testing.oracle.folds import recalc
from windrow.windows import Sliding

CHECK = settings(deadline=None, derandomize=True, max_examples=35)
INT64, FLOAT64 = pl.Int64(), pl.Float64()
INT_EDGES = [-(2**63), -(2**63) + 1, -(2**32), -1, 0, 1, 2**31, 2**32, 2**63 - 1]
FLOAT_EDGES = [math.nan, math.inf, -math.inf, 0.0, 1.5, -2.25, 1e100, -1e100, 1e-100]
GROUPS = st.sampled_from(["a", "b", None])
INTS = st.one_of(st.none(), st.integers(-9, 9), st.sampled_from(INT_EDGES))
FLOATS = st.one_of(st.none(), st.floats(-1e6, 1e6), st.sampled_from(FLOAT_EDGES))
# Without an argument, and one of every name that make() knows with one.
SPECS = [("rows counted", "count", None), *((name, name, "x") for name in NUMERIC)]


def rows_of(values, max_size=12):
    return st.lists(st.fixed_dictionaries({"t": st.just(0), "g": GROUPS, "x": values}), max_size=max_size)


def frame_of(rows, dtype):
    return pl.DataFrame(rows, schema={"t": pl.Int64, "g": pl.String, "x": dtype})


def partials(dtype, specs=SPECS):
    return Partials([make(function, name, arg, dtype) for name, function, arg in specs])


def by_group(result):
    return {row["g"]: row for row in result.rows(named=True)}


def oracle(rows, specs):
    """recalc over one window that holds everything; a variance of values that are not finite is NaN."""
    finite = all(r["x"] is None or math.isfinite(r["x"]) for r in rows)
    specs = [s for s in specs if finite or s[1] not in VARIANCES]
    found = recalc(rows, Sliding(1, 1), "t", ["g"], specs)
    return {key[0]: value for (_, key), value in found.items()}


VARIANCES = {name for name, cls in NUMERIC.items() if "Variance" in [c.__name__ for c in cls.__mro__]}
EXACT = {"count", "min", "max"}


def tolerance(values):
    """How far rounding may take a result: an input is rounded to a double, an addition to the sum of sizes."""
    finite = [abs(float(v)) for v in values if v is not None and math.isfinite(v)]
    unit = 4 * sys.float_info.epsilon * max(finite, default=0.0)
    return unit * len(finite), unit


def agree(function, got, want, values):
    if got is None or want is None or isinstance(want, int) or function in EXACT:
        return same_bits(got, want)
    if math.isnan(want) or math.isinf(want):
        return math.isnan(got) if math.isnan(want) else got == want
    added, unit = tolerance(values)
    if function not in VARIANCES:
        return math.isclose(got, want, rel_tol=1e-12, abs_tol=added)
    variance, spread = (want**2, want) if "stddev" in function else (want, math.sqrt(want))
    slack = 1e-9 * variance + 4 * unit * spread + 4 * unit**2
    return abs((got**2 if "stddev" in function else got) - variance) <= slack


def same_bits(got, want):
    """Equal, where NaN equals NaN."""
    return got == want or (isinstance(got, float) and isinstance(want, float) and math.isnan(got) and math.isnan(want))


def fits(rows):
    """Whether the exact sum of every group is a 64-bit integer."""
    sums = {}
    for row in rows:
        sums[row["g"]] = sums.get(row["g"], 0) + (row["x"] or 0)
    return all(-(2**63) <= total < 2**63 for total in sums.values())


def splits(frame, cuts):
    """The frame in consecutive pieces, some of them empty."""
    edges = [0, *sorted(min(c, frame.height) for c in cuts), frame.height]
    return [frame[a:b] for a, b in zip(edges, edges[1:], strict=False)]  # noqa: RUF007


CUTS = st.lists(st.integers(0, 12), max_size=4)


# -- against the oracle ----------------------------------------------------------------------------------------------
@CHECK
@given(rows_of(INTS), CUTS)
def test_every_function_of_integers_equals_recalc_whole_and_from_parts(rows, cuts):
    specs = SPECS if fits(rows) else [s for s in SPECS if s[1] != "sum"]
    aggregates, frame = partials(INT64, specs), frame_of(rows, INT64)
    whole = aggregates.lift(frame, ["g"])
    parts = aggregates.combine(pl.concat([aggregates.lift(f, ["g"]) for f in splits(frame, cuts)]), ["g"])
    check(rows, specs, aggregates, whole, parts)


@settings(CHECK, max_examples=80)
@given(rows_of(FLOATS), CUTS)
def test_every_function_of_doubles_equals_recalc_whole_and_from_parts(rows, cuts):
    aggregates, frame = partials(FLOAT64), frame_of(rows, FLOAT64)
    whole = aggregates.lift(frame, ["g"])
    parts = aggregates.combine(pl.concat([aggregates.lift(f, ["g"]) for f in splits(frame, cuts)]), ["g"])
    check(rows, SPECS, aggregates, whole, parts)


def check(rows, specs, aggregates, *states):
    expected = {g: oracle([r for r in rows if r["g"] == g], specs)[g] for g in {r["g"] for r in rows}}
    for state in states:
        found = by_group(aggregates.lower(state, ["g"]))
        assert set(found) == set(expected)
        for group, wanted in expected.items():
            values = [r["x"] for r in rows if r["g"] == group]
            for name, function, _ in specs:
                got, want = found[group][name], wanted.get(name, spoiled(function, values))
                assert agree(function, got, want, values), (name, group, values, got, want)


def spoiled(function, values):
    """The variance of values that are not all finite: NaN where there are enough of them."""
    n = sum(v is not None for v in values)
    return math.nan if n > (0 if function.endswith("_pop") else 1) else None


@CHECK
@given(rows_of(INTS, max_size=10), st.randoms(use_true_random=False))
def test_integer_aggregates_are_the_same_bits_under_every_split_and_order(rows, random):
    exact = [s for s in SPECS if s[1] in ("count", "avg", "min", "max") or (s[1] == "sum" and fits(rows))]
    aggregates = partials(INT64, exact)
    expected = by_group(aggregates.lower(aggregates.lift(frame_of(rows, INT64), ["g"]), ["g"]))
    for _ in range(3):
        shuffled = frame_of(random.sample(rows, len(rows)), INT64)
        lifted = [aggregates.lift(f, ["g"]) for f in splits(shuffled, [random.randrange(11) for _ in range(3)])]
        while len(lifted) > 1:  # merged two by two, in any order
            a, b = (lifted.pop(random.randrange(len(lifted))) for _ in range(2))
            lifted.append(aggregates.combine(pl.concat([a, b]), ["g"]))
        assert by_group(aggregates.lower(lifted[0], ["g"])) == expected


def test_min_and_max_of_signed_zeros_are_the_same_bits_in_every_order():
    aggregates = partials(FLOAT64, [("min", "min", "x"), ("max", "max", "x")])
    seen = set()
    for values in ([0.0, -0.0], [-0.0, 0.0]):
        frame = pl.DataFrame({"g": ["a", "a"], "x": values})
        pieces = pl.concat([aggregates.lift(frame[:1], ["g"]), aggregates.lift(frame[1:], ["g"])])
        for state in (aggregates.lift(frame, ["g"]), aggregates.combine(pieces, ["g"])):
            (row,) = aggregates.lower(state, ["g"]).rows(named=True)
            seen.add(struct.pack("dd", row["min"], row["max"]))
    assert len(seen) == 1


# -- NumPy and Polars ------------------------------------------------------------------------------------------------
def states_of(rows, dtype, cuts):
    aggregates = partials(dtype)
    lifted = [aggregates.lift(f, ["g"]) for f in splits(frame_of(rows, dtype), cuts)]
    return aggregates, pl.concat([f.filter(pl.col("g") == "a") for f in lifted])


@pytest.mark.parametrize("dtype", [INT64, FLOAT64, pl.Float32(), pl.Int8(), pl.UInt64()])
@CHECK
@given(values=st.lists(st.one_of(st.none(), st.integers(0, 100)), min_size=1, max_size=10), cuts=CUTS)
def test_merge_and_accumulate_equal_combine(dtype, values, cuts):
    rows = [{"t": 0, "g": "a", "x": v} for v in values]
    aggregates, partial = states_of(rows, dtype, cuts)
    (combined,) = aggregates.combine(partial, ["g"]).rows(named=True)
    for part in aggregates.parts:
        columns = [partial[c].to_numpy() for c in part.columns]
        one_by_one = [[column[i : i + 1] for column in columns] for i in range(partial.height)]
        merged = reduce(part.merge, one_by_one)
        running = part.accumulate([column[:, None] for column in columns], axis=0)
        turned = part.accumulate([column[None, :] for column in columns], axis=1)
        for name, m, r, t in zip(part.columns, merged, running, turned, strict=True):
            assert m[0] == pytest.approx(combined[name], rel=1e-9, abs=1e-9)
            assert r[-1, 0] == m[0]
            assert t[0, -1] == m[0]
            assert m.dtype == partial[name].to_numpy().dtype


@CHECK
@given(rows_of(INTS, max_size=6))
def test_accumulate_is_the_running_merge(rows):
    aggregates, partial = states_of([{**r, "g": "a"} for r in rows], INT64, range(12))
    for part in aggregates.parts:
        columns = [partial[c].to_numpy() for c in part.columns]
        running = part.accumulate(columns, axis=0)
        for i in range(partial.height):
            expected = reduce(part.merge, [[c[j] for c in columns] for j in range(i + 1)])
            assert [r[i] for r in running] == expected


@pytest.mark.parametrize("dtype", [INT64, FLOAT64, pl.Int8(), pl.UInt64(), pl.Date()])
def test_merging_with_no_tuple_at_all_changes_nothing(dtype):
    specs = [s for s in SPECS if dtype.is_numeric() or s[1] in EXACT]
    aggregates = partials(dtype, specs)
    values = pl.Series("x", [3, 7, None]).cast(dtype)
    state = aggregates.lift(pl.DataFrame({"g": ["a"] * 3, "x": values}), ["g"])
    nothing = aggregates.lift(pl.DataFrame({"g": ["a"], "x": values[2:]}), ["g"])
    for part in aggregates.parts:
        assert part.dtypes == tuple(state[c].dtype for c in part.columns)
        mine = [state[c].to_numpy() for c in part.columns]
        empty = [np.full(1, e, m.dtype) for e, m in zip(part.identity, mine, strict=True)]
        assert part.merge(mine, empty) == part.merge(empty, mine) == mine
        if part.columns != (ROWS,):  # a row without a value is a row
            assert [nothing[c].to_numpy() for c in part.columns] == empty


# -- NULLs, empty groups, types --------------------------------------------------------------------------------------
def lowered(values, dtype, specs=SPECS):
    aggregates = partials(dtype, specs)
    frame = pl.DataFrame(
        {"g": ["a"] * len(values), "x": pl.Series("x", values, dtype)}, schema_overrides={"g": pl.String}
    )
    return aggregates.lower(aggregates.lift(frame, ["g"]), ["g"])


@pytest.mark.parametrize("dtype", [INT64, FLOAT64])
def test_a_group_of_nulls_counts_no_value_and_has_no_other_result(dtype):
    (row,) = lowered([None, None], dtype).rows(named=True)
    assert (row.pop("g"), row.pop("rows counted"), row.pop("count")) == ("a", 2, 0)
    assert set(row.values()) == {None}


def test_no_rows_give_no_groups_and_the_declared_types():
    result = lowered([], INT64)
    assert result.height == 0
    assert result.dtypes[1:] == [make(f, n, a, INT64).result for n, f, a in SPECS]


def test_a_single_value_has_a_population_variance_and_no_sample_variance():
    (row,) = lowered([5], INT64).rows(named=True)
    assert [row[f] for f in ("var_pop", "stddev_pop", "var_samp", "stddev_samp", "var", "variance", "stddev")] == [
        *(0.0, 0.0),
        *[None] * 5,
    ]


def test_nan_is_the_greatest_value():
    (row,) = lowered([math.nan, math.inf, 1.0], FLOAT64).rows(named=True)
    assert math.isnan(row["max"])
    assert row["min"] == 1.0
    assert math.isnan(lowered([math.nan, None], FLOAT64)["min"][0])


@pytest.mark.parametrize(
    ("dtype", "values"),
    [
        (pl.Int8(), [-128, 127]),
        (pl.Int16(), [-(2**15), 2**15 - 1]),
        (pl.Int32(), [-(2**31), 2**31 - 1]),
        (pl.UInt8(), [0, 255]),
        (pl.UInt32(), [0, 2**32 - 1]),
        (pl.UInt64(), [0, 2**62 - 1]),
        (pl.Float32(), [-1.5, 2.5]),
    ],
)
def test_small_and_unsigned_types_sum_in_full_width_and_keep_their_type_in_min_and_max(dtype, values):
    result = lowered([*values, *values, None], dtype, [("s", "sum", "x"), ("lo", "min", "x"), ("hi", "max", "x")])
    assert result.rows() == [("a", 2 * sum(values), values[0], values[1])]
    assert result.schema["lo"] == result.schema["hi"] == dtype


def test_unsigned_values_beyond_63_bits_do_not_fit_into_a_sum():
    assert lowered([2**63 - 1, 0], pl.UInt64(), [("s", "sum", "x")])["s"].to_list() == [2**63 - 1]
    with pytest.raises(ResultError):
        lowered([2**63], pl.UInt64(), [("s", "sum", "x")])


@pytest.mark.parametrize(
    "values",
    [
        [dt.date(1969, 12, 31), dt.date(2020, 2, 29)],
        [dt.datetime(1900, 1, 1), dt.datetime(2100, 1, 1, 0, 0, 0, 1)],
        [dt.datetime(2020, 1, 1, tzinfo=dt.UTC), dt.datetime(2020, 1, 2, tzinfo=dt.UTC)],
    ],
)
def test_min_and_max_of_dates_and_timestamps(values):
    series = pl.Series("x", [values[1], None, values[0]])
    result = lowered(series, series.dtype, [("lo", "min", "x"), ("hi", "max", "x")])
    assert result.rows() == [("a", *values)]
    assert result.schema["lo"] == series.dtype
    assert lowered([None], series.dtype, [("lo", "min", "x")]).rows() == [("a", None)]


# -- integer sums ----------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("values", [[2**63 - 1, 1], [-(2**63), -1], [2**62, 2**62], [2**63 - 1] * 5])
def test_a_sum_beyond_64_bits_is_an_error_that_names_the_column_and_the_place(values):
    with pytest.raises(ResultError, match=r"sum 'total' .*64 bits .*'g': 'a'") as error:
        lowered(values, INT64, [("total", "sum", "x")])
    assert "DOUBLE" in str(error.value)


@pytest.mark.parametrize(
    "values",
    [[2**63 - 1, 1, -1], [2**63 - 1, -(2**63)], [-(2**63)], [2**62, 2**62, -1], [2**63 - 1] * 9 + [-(2**63) + 1] * 8],
)
def test_a_sum_that_fits_is_exact_whatever_is_passed_on_the_way(values):
    assert lowered(values, INT64, [("s", "sum", "x")])["s"].to_list() == [sum(values)]


def test_only_the_overflowing_group_is_blamed():
    aggregates = partials(INT64, [("s", "sum", "x")])
    frame = pl.DataFrame({"g": ["fine", "bad", "bad"], "x": [1, 2**63 - 1, 2**63 - 1]})
    with pytest.raises(ResultError, match="'g': 'bad'"):
        aggregates.lower(aggregates.lift(frame, ["g"]), ["g"])


def test_the_average_of_integers_has_no_overflow_and_no_rounding_on_the_way():
    big = 2**63 - 1
    assert lowered([big] * 7, INT64, [("a", "avg", "x")])["a"].to_list() == [float(big)]
    assert lowered([2**53 + 1, -(2**53), 0, 0], INT64, [("a", "avg", "x")])["a"].to_list() == [0.25]


# -- variance --------------------------------------------------------------------------------------------------------
@CHECK
@given(st.lists(st.integers(0, 1000), min_size=3, max_size=12), CUTS)
def test_a_tiny_spread_around_a_huge_mean_is_measured_accurately(steps, cuts):
    # Exact in a double. A sum of squares would be off by about 1e9**2 * 1e-16 = 100; the variances are below 1.
    rows = [{"t": 0, "g": "a", "x": 1e9 + s / 1024} for s in steps]
    aggregates = partials(FLOAT64, [("v", "var_samp", "x")])
    pieces = [aggregates.lift(f, ["g"]) for f in splits(frame_of(rows, FLOAT64), cuts)]
    want = oracle(rows, [("v", "var_samp", "x")])["a"]["v"]
    combined = aggregates.combine(pl.concat(pieces), ["g"])
    assert aggregates.lower(combined, ["g"])["v"][0] == pytest.approx(want, rel=1e-3, abs=1e-12)
    states = [[f[c].to_numpy() for c in Moments("x").columns] for f in pieces if f.height]
    n, _, m2 = reduce(Moments("x").merge, states)
    assert m2[0] / (n[0] - 1) == pytest.approx(want, rel=1e-3, abs=1e-12)


@pytest.mark.parametrize("value", [1e200, -1e300])
def test_merging_a_huge_value_with_no_tuple_keeps_its_variance_of_zero(value):
    state, empty = ([np.array([v]) for v in s] for s in ((1.0, value, 0.0), (0.0, 0.0, 0.0)))
    for merged in (Moments("x").merge(state, empty), Moments("x").merge(empty, state)):
        assert [float(m[0]) for m in merged] == [1.0, value, 0.0]


@pytest.mark.parametrize("other", [1.0, math.inf, -math.inf, math.nan])
def test_merging_an_infinite_value_makes_the_variance_nan_without_a_warning(other):
    spoiled_state, finite = (
        [
            partials(FLOAT64).lift(frame_of([{"t": 0, "g": "a", "x": v}], FLOAT64), ["g"])[c].to_numpy()
            for c in Moments("x").columns
        ]
        for v in (math.inf, other)
    )
    for merged in (Moments("x").merge(spoiled_state, finite), Moments("x").merge(finite, spoiled_state)):
        assert merged[0][0] == 2.0
        assert math.isnan(merged[2][0])


# -- what make refuses -----------------------------------------------------------------------------------------------
@pytest.mark.parametrize(
    ("function", "dtype", "said"),
    [
        ("sum", pl.String(), r"sum\(\) needs a number, .*String"),
        ("avg", pl.Boolean(), r"avg\(\) needs a number, .*Boolean"),
        ("sum", pl.Date(), r"sum\(\) needs a number, .*Date"),
        ("var_pop", pl.Datetime("us"), r"var_pop\(\) needs a number, .*Datetime"),
        ("stddev", pl.String(), r"stddev\(\) needs a number"),
        ("max", pl.List(pl.Int64()), r"max\(\) needs a number, text, timestamp, date or boolean, .*List"),
    ],
)
def test_an_argument_of_the_wrong_type_is_a_query_error(function, dtype, said):
    with pytest.raises(QueryError, match=said):
        make(function, "r", "x", dtype)


@pytest.mark.parametrize("dtype", [pl.String(), pl.Boolean(), pl.List(pl.Int64()), pl.Date()])
def test_anything_can_be_counted(dtype):
    assert lowered([None, None], dtype, [("n", "count", "x")])["n"].to_list() == [0]


def test_an_unknown_function_is_a_query_error_that_lists_what_there_is():
    with pytest.raises(QueryError, match=r"unknown aggregate 'nope'; available: approx_count_distinct,"):
        make("nope", "m", "x", INT64)


@pytest.mark.parametrize("function", sorted(set(FUNCTIONS) - {"count"}))
def test_only_count_goes_without_an_argument(function):
    with pytest.raises(QueryError, match=f"{function} needs an argument"):
        make(function, "r", None, INT64)


# -- sharing ---------------------------------------------------------------------------------------------------------
def test_aggregates_of_the_same_argument_share_their_state():
    aggregates = partials(INT64)
    assert len(aggregates.columns) == len(set(aggregates.columns))
    assert sorted(aggregates.columns) == sorted(
        [ROWS, "n:x", "high:x", "low:x", "min:x", "max:x", "w:x", "mean:x", "m2:x"]
    )


def test_every_partial_counts_its_rows_even_if_nobody_asked():
    aggregates = Partials([])
    assert aggregates.lift(pl.DataFrame({"g": ["a", "a"]}), ["g"]).rows(named=True) == [{"g": "a", ROWS: 2}]


def test_a_group_key_may_be_called_rows():
    """``rows`` is also the name of a state column."""
    aggregates = Partials([make("count", "n", None, INT64)])
    frame = pl.DataFrame({"rows": [7, 7, 8]})
    lifted = aggregates.combine(aggregates.lift(frame, ["rows"]), ["rows"])
    assert sorted(aggregates.lower(lifted, ["rows"]).rows()) == [(7, 2), (8, 1)]
