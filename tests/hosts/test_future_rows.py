"""A clock that is far ahead of all others must not close the windows of the others."""

from datetime import UTC, datetime, timedelta

import polars as pl
import pytest

import windrow as wr
from windrow.testing import accounted

NOON = datetime(2024, 1, 1, 12, tzinfo=UTC)


def rows(*ahead):
    """Rows that arrive a second after each other, with clocks so many seconds ahead (None: nobody knows when)."""
    came = [NOON + timedelta(seconds=i) for i in range(len(ahead))]
    stamps = [c if a is None else c + timedelta(seconds=a) for c, a in zip(came, ahead, strict=True)]
    return pl.DataFrame(
        {
            "ts": stamps,
            "came": [None if a is None else c for c, a in zip(came, ahead, strict=True)],
            "x": range(len(ahead)),
        },
        schema_overrides={"came": pl.Datetime("us", "UTC")},
    )


def query(data, **options):
    stream = wr.stream(data, "ts", slack="1 second", arrival="came", ahead="1 minute", name="s", **options)
    return stream.window("2 seconds").agg(n=wr.count(), last=wr.max("x"))


def test_a_row_from_the_future_is_bad_and_closes_nothing():
    data = rows(0, 60, 61, 86_400, None, 0, 1)
    run = query(data.clear()).run().push("s", data)
    assert run.results().height > 0
    assert run.counts["rows_late"] == 0
    bad = run.bad_rows()
    assert bad["x"].to_list() == [2, 3, 4]
    assert bad["reason"].to_list() == [
        *["the progress value is more than 1 minute ahead of came"] * 2,
        "the arrival came is NULL, so the progress value cannot be trusted",
    ]
    assert set(bad.columns) == {*data.columns, "reason"}
    run = query(data.clear()).run()
    released = [run.push("s", part).results() for part in data.iter_slices(1)]
    accounted(run.end().counts, pl.concat([*released, run.results()]))
    assert run.counts["rows_in"] == data.height


def test_without_the_bound_it_makes_all_others_late():
    data = rows(0, 86_400, 0, 0)
    unbounded = wr.stream(data.clear(), "ts", slack="1 second", name="s").window("2 seconds").agg(n=wr.count())
    for built, late in ((unbounded, 2), (query(data.clear()), 0)):
        run = built.run()
        released = [run.push("s", part).results().select("n") for part in data.iter_slices(1)]
        assert run.counts["rows_late"] == late
        accounted(run.end().counts, pl.concat([*released, run.results().select("n")]))


def test_explain_says_the_bound():
    assert "bad if more than 1 minute ahead of came" in query(rows(0)).explain()


@pytest.mark.parametrize(
    ("options", "reason"),
    [
        ({"arrival": "came"}, "must be given together"),
        ({"ahead": "1 minute"}, "must be given together"),
        ({"arrival": "gone", "ahead": "1 minute"}, "'gone' is not a column; available: came, ts, x"),
        ({"arrival": "x", "ahead": "1 minute"}, "'x' is of type Int64, 'ts' of type Datetime"),
        ({"arrival": "came", "ahead": "-1 minute"}, "ahead must be zero or more"),
    ],
)
def test_a_bound_that_does_not_fit_is_refused(options, reason):
    with pytest.raises(wr.QueryError, match=reason):
        wr.stream(rows(0), "ts", slack="1 second", **options)
