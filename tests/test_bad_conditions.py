"""What is wrong with a condition of a join is said in words, in a bad row or before anything runs."""

import sys

import numpy as np
import polars as pl
import pytest

import windrow as wr
from windrow.errors import QueryError
from windrow.testing import oracle

ROWS = {"a": [{"t": t, "x": t} for t in range(1, 5)], "b": [{"t": t, "y": t} for t in range(1, 5)]}


def joined(where, within=10, **given):
    streams = [wr.stream(rows, "t", slack=0, name=name) for name, rows in ROWS.items()]
    return wr.multi_join(*streams, within=within, where=where, **{"nodes": 2, **given})


def reasons(query):
    run = query.run()
    for name, rows in ROWS.items():
        run.push(name, rows)
    found = run.end().results()
    bad = run.bad_rows()
    assert found.height == oracle(query).height
    assert found.height + bad.height <= 16
    return found.height, bad["reason"].unique().to_list() if bad.height else []


def vectorized(call):
    return wr.udf(call, "BOOLEAN", "x", "y", vectorized=True)


async def later(a, b):
    return a.x == b.y


EACH = "not a series or an array with a value for each row"
WRONG = {
    "a string": (lambda a, b: "yes", "TypeError: gave 'yes', not a value of type Boolean"),
    "a similarity": (lambda a, b: a.x / 10, None),
    "a list": (lambda a, b: [True], "TypeError: gave [True], not a value of type Boolean"),
    "an array": (lambda a, b: np.ones(2, bool), "TypeError: gave array([ True,  True]), not a value of type Boolean"),
    "an object": (lambda a, b: object(), "TypeError: gave an object of type object, not a value of type Boolean"),
    "a long text": (lambda a, b: "x" * 99, f"TypeError: gave '{'x' * 59}.., not a value of type Boolean"),
    "no such column": (lambda a, b: a.z, "AttributeError: the stream has no column 'z'; available: t, x"),
    "one value for all": (vectorized(lambda x, y: True), f"TypeError: gave True, {EACH}"),
    "one number for all": (vectorized(lambda x, y: np.float64(0.5)), f"TypeError: gave np.float64(0.5), {EACH}"),
    "an array of no dimension": (vectorized(lambda x, y: np.array(True)), f"TypeError: gave array(True), {EACH}"),
    "nothing for all": (vectorized(lambda x, y: None), f"TypeError: gave None, {EACH}"),
    "a text for all": (vectorized(lambda x, y: "yes"), f"TypeError: gave 'yes', {EACH}"),
    "an expression": (vectorized(lambda x, y: pl.lit(True)), f"TypeError: gave an object of type Expr, {EACH}"),
    "too few values": (vectorized(lambda x, y: [True] * (len(x) - 1)), "ValueError: gave 0 values for 1 rows"),
    "too many values": (vectorized(lambda x, y: [True] * (len(x) + 1)), "ValueError: gave 2 values for 1 rows"),
    "similarities": (vectorized(lambda x, y: x / y), "TypeError: gave values of type Float64, not of type Boolean"),
    "numbers": (vectorized(lambda x, y: x - y), "TypeError: gave values of type Int64, not of type Boolean"),
    "texts": (vectorized(lambda x, y: ["yes"] * len(x)), "TypeError: gave values of type String, not of type Boolean"),
    "too few parameters": (wr.udf(lambda x: True, "BOOLEAN", "x", "y"), None),
}


@pytest.mark.parametrize("wrong", WRONG)
def test_what_is_no_boolean_makes_bad_rows_with_the_reason(wrong):
    where, reason = WRONG[wrong]
    results, found = reasons(joined(where))
    assert results == 0
    assert found
    if reason is not None:
        [text] = found
        assert text.endswith(f" failed: {reason}")


@pytest.mark.parametrize("using", ["ring", "multi", "pipeline"])
def test_bad_rows_are_the_same_whatever_way_the_join_takes(using):
    def odd(a, b):
        return 1 / (a.x - 2) < 9 or b.y

    query = joined(odd, using=using, nodes=2 if using == "ring" else None)
    assert reasons(query) == (12, ["odd failed: ZeroDivisionError: division by zero"])


def test_a_function_that_exits_or_panics_makes_bad_rows_and_the_program_goes_on():
    class Panic(BaseException):
        """As Polars raises them."""

    def leaves(a, b):
        if a.x == 2:
            sys.exit(3)
        if a.x == 3:
            raise Panic("not yet implemented")
        return a.x == b.y

    run = joined(leaves).run()
    for name, rows in ROWS.items():
        run.push(name, rows)
    assert run.end().results().height == 2
    found = set(run.bad_rows().select("x", "reason").rows())
    assert found == {(2, "leaves failed: SystemExit: 3"), (3, "leaves failed: Panic: not yet implemented")}


def test_an_interrupt_ends_the_program():
    def interrupted(a, b):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        joined(interrupted).collect()


@pytest.mark.parametrize("nothing", [None, np.bool_(False)])
def test_null_is_not_true(nothing):
    assert reasons(joined(lambda a, b: nothing)) == (0, [])
    assert reasons(joined(vectorized(lambda x, y: [nothing] * len(x)))) == (0, [])


def test_lists_arrays_and_frames_are_values_of_many_rows():
    for call in (
        lambda x, y: [v == w for v, w in zip(x, y, strict=True)],
        lambda x, y: (v == w for v, w in zip(x, y, strict=True)),
        lambda x, y: x.to_numpy() == y.to_numpy(),
        lambda x, y: (x == y).to_arrow(),
        lambda x, y: x == y,
    ):
        assert reasons(joined(vectorized(call))) == (4, [])


REFUSED = {
    "within='ten rows' is not a length|within 'ten rows' is not a length": {"within": "ten rows"},
    "within=None is not a length": {"within": None},
    "does not say how long rows of b are held, and they would be held forever": {"within": {"a": 3}},
    "within of b must be positive, not 0": {"within": {"a": 3, "b": 0}},
    "names c; the streams are a, b": {"within": {"a": 3, "b": 3, "c": 1}},
    "nodes='2' must be a whole number, 1 or more, or 'auto'": {"nodes": "2"},
    "nodes=2.0 must be a whole number": {"nodes": 2.0},
    "wrap it in a function of rows, or in wr.udf": {"where": max},
    "and this one takes rows": {"where": lambda *rows: True},
    "later is a coroutine function: a condition gives its answer at once": {"where": later},
}


@pytest.mark.parametrize("message", REFUSED)
def test_what_cannot_run_is_refused_before_it_does(message):
    with pytest.raises(QueryError, match=message.replace("(", r"\(")):
        joined(**{"where": lambda a, b: True, **REFUSED[message]}).explain()
