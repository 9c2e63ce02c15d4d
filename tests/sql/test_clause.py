"""The window clause alone: the window that it makes, its options, and the parameter that an error underlines."""

import polars as pl
import pytest

import windrow as wr
from windrow.errors import QueryError
from windrow.logical.nodes import WindowAggregate
from windrow.spec.options import Options
from windrow.windows import Landmark, Partitioned, RowSliding, Session, SlideByTuple, Sliding

SECOND, HOUR = 1_000_000, 3_600_000_000
TYPES = {"ts": pl.Datetime("us", "UTC"), "n": pl.Int64(), "k": pl.String(), "at": pl.Datetime("us", "UTC")}
DAYS = {"d": pl.Date(), "k": pl.String()}
NUMBERS = {"t": pl.Int64(), "k": pl.String()}


def source(types, **options):
    return wr.stream(pl.DataFrame(schema=types), next(iter(types)), name="s", **options)


STREAMS = {"ts": source(TYPES, row_num="n"), "d": source(DAYS), "t": source(NUMBERS)}


def aggregate(clause, over="ts", tail=""):
    node = wr.sql(f"SELECT count(*) AS c FROM s {clause} {tail}", s=STREAMS[over]).node
    while not isinstance(node, WindowAggregate):
        node = node.input
    return node


@pytest.mark.parametrize(
    ("clause", "over", "window"),
    [
        ("[RANGE 2 HOURS, SLIDE 30 MINUTES, WA ts]", "ts", Sliding(2 * HOUR, HOUR // 2)),
        ("[RANGE 2 DAYS, SLIDE 1 DAY]", "d", Sliding(2, 1)),
        ("[RANGE 1 WEEK]", "d", Sliding(7, 7)),
        ("[TUMBLING 10]", "t", Sliding(10, 10)),
        ("[TUMBLING 10, ORIGIN 3]", "t", Sliding(10, 10, 3)),
        ("[TUMBLING 1 HOUR, ORIGIN '1970-01-01 00:00:05']", "ts", Sliding(HOUR, HOUR, 5 * SECOND)),
        ("[TUMBLING 1 DAY, ORIGIN '1970-01-04']", "d", Sliding(1, 1, 3)),
        ("[RANGE ALL, SLIDE 10, ORIGIN 3]", "t", Landmark(10, 3)),
        ("[SESSION 5 SECONDS]", "ts", Session(5 * SECOND)),
        ("[RANGE 4 ROWS, SLIDE 2 ROWS, WA row_num]", "ts", RowSliding(4, 2)),
        ("[RANGE 4 ROWS, WA N]", "ts", RowSliding(4, 4)),
        ("[RANGE 1 ROW, PA k]", "ts", Partitioned(1, 1)),
        ("[RANGE 5, RATTR t, SLIDE 1 ROW, SATTR rank(T)]", "t", SlideByTuple(5, 1, "rank")),
        ("[RANGE 5 SECONDS, RATTR ts, SLIDE 3 ROWS, SATTR n]", "ts", SlideByTuple(5 * SECOND, 3, "row_num")),
    ],
)
def test_a_clause_makes_its_window(clause, over, window):
    assert aggregate(clause, over).window == window


@pytest.mark.parametrize(
    ("clause", "tail", "options"),
    [
        ("[RANGE 1 HOUR]", "", Options()),
        ("[RANGE 1 HOUR, LATE SIDE]", "", Options(late="side")),
        ("[RANGE 1 HOUR, LATE REVISE FOR 1 SECOND]", "", Options(late="revise", keep=SECOND)),
        ("[RANGE 1 HOUR, GENEROUS]", "", Options(generous=True)),
        ("[RANGE 1 HOUR, TIME ZONE 'Asia/Tokyo']", "", Options(zone="Asia/Tokyo")),
        ("[RANGE 1 HOUR, WITH EMPTY]", "", Options(empty=True)),
        ("[RANGE 1 HOUR]", "EMIT EARLY EVERY 2 SECONDS", Options(early=2 * SECOND)),
        ("[RANGE 5 ROWS]", "EMIT EARLY EVERY 2 ROWS", Options(early=2)),
        ("[RANGE 5 ROWS, WITHOUT PARTIAL]", "", Options(partial=False)),
    ],
)
def test_a_clause_has_its_options(clause, tail, options):
    assert aggregate(clause, tail=tail).options == options


def test_partitions_are_keys():
    node = aggregate("[RANGE 2 ROWS, PA k]")
    assert node.parts == ("k",)
    assert [name for name, _ in node.keys] == ["k"]


REFUSED = [  # what is underlined, and what is said
    ("[RANGE 1 HOUR, WA k]", "ts", "k", "is of type String"),
    ("[RANGE 1 HOUR, WA z]", "ts", "z", "unknown column 'z'"),
    ("[RANGE 1 HOUR, WA at]", "ts", "at", "promises on ts"),
    ("[RANGE 5 MINUTES]", "t", "5 MINUTES", "RANGE"),
    ("[RANGE 5]", "ts", "5", "RANGE"),
    ("[RANGE 12 HOURS]", "d", "12 HOURS", "RANGE"),
    ("[RANGE 0]", "t", "0", "positive"),
    ("[RANGE 1 HOUR, PA k]", "ts", "k", "PA needs a window of ROWS"),
    ("[RANGE 2 ROWS, WA ts]", "ts", "ts", "slides over row_num"),
    ("[RANGE 2 ROWS, SLIDE 1 HOUR]", "ts", "1 HOUR", "SLIDE must be in ROWS"),
    ("[RANGE 2 ROWS, ORIGIN 5]", "ts", "5", "ORIGIN"),
    ("[SESSION 5, ORIGIN 5]", "t", "5", "ORIGIN"),
    ("[TUMBLING 5, ORIGIN 'soon']", "t", "'soon'", "invalid origin"),
    ("[RANGE 5, RATTR t, SLIDE 1 ROW, SATTR rank(k)]", "t", "k", "rank"),
    ("[RANGE 5, RATTR t, SLIDE 1 ROW, SATTR k]", "t", "k", "SATTR must be"),
    ("[RANGE ALL, RATTR t, SLIDE 1 ROW, SATTR rank(t)]", "t", "ALL", "cannot slide by rows"),
]


@pytest.mark.parametrize(("clause", "over", "place", "message"), REFUSED)
def test_an_error_underlines_the_parameter_at_fault(clause, over, place, message):
    with pytest.raises(QueryError) as caught:
        aggregate(clause, over)
    said = str(caught.value)
    assert message in said
    line, carets = said.split("\n")[-2:]
    start = carets.index("^")
    assert line[start : start + carets.count("^")] == place


@pytest.mark.parametrize(
    "clause",
    [
        "[SLIDE 5, WA t]",
        "[RANGE 5, RATTR t]",
        "[RANGE 5, SATTR rank(t)]",
        "[TUMBLING 5, SLIDE 5]",
        "[SESSION 5, SLIDE 5]",
        "[RANGE ALL, WA t]",
        "[RANGE ALL, SLIDE 5, PA k]",
    ],
)
def test_parameters_that_do_not_go_together_are_refused(clause):
    with pytest.raises(QueryError, match=r"\[RANGE r, SLIDE s, WA attr\]"):
        aggregate(clause, "t")


def test_lengths_in_rows_belong_to_windows_of_rows():
    with pytest.raises(QueryError, match="ROWS"):
        aggregate("[RANGE 5 ROWS]", tail="EMIT EARLY EVERY 2 SECONDS")


def test_a_window_over_the_value_of_window_end_is_a_step_later_than_over_window_time():
    inner = "(SELECT count(*) AS c FROM s [TUMBLING 5]) [TUMBLING 10, WA {}]"
    rows = wr.stream([{"t": 7}], "t", name="s")
    starts = [
        wr.sql(f"SELECT sum(c) AS c FROM {inner.format(name)}", s=rows).collect()["window_start"].to_list()
        for name in ("window_time", "window_end")
    ]
    assert starts == [[0], [10]]
