"""Constructors of plans: what they build, and what they refuse whoever asks."""

import polars as pl
import pytest
from sqlglot import exp

import windrow as wr
from windrow.errors import PlanError, QueryError
from windrow.logical import checked
from windrow.logical.expressions import parse
from windrow.logical.nodes import AggregateCall, Filter, Project, Union
from windrow.spec.functions import Function
from windrow.spec.names import BRANCH
from windrow.spec.options import Options
from windrow.windows import Landmark, Partitioned, RowSliding, Session, SlideByTuple, Sliding

COUNT = (AggregateCall("n", "count"),)


def scan(name="s", progress="t", **columns):
    types = {"t": pl.Int64(), "k": pl.String(), **columns}
    return wr.stream(pl.DataFrame(schema=types), progress, name=name).node


def stamped(zone="UTC"):
    return wr.stream(pl.DataFrame(schema={"t": pl.Datetime("us", zone)}), "t").node


def numbered(*columns):
    types = {"t": pl.Int64(), "k": pl.String(), "p": pl.Int64(), "n": pl.Int64()}
    return wr.stream(pl.DataFrame(schema=types), "t", row_num=columns if len(columns) > 1 else columns[0]).node


def windows(node=None, window=None, options=None, **more):
    given = {} if options is None else {"options": options}
    return checked.aggregated(node or scan(), window or Sliding(5, 5), (), COUNT, **given, **more)


def versions():
    return windows(options=Options(early=2))


# -- rows --------------------------------------------------------------------------------------------------------------
def test_a_filter_needs_a_condition_and_underlines_what_is_none():
    assert isinstance(checked.filtered(scan(), parse("t > 1")), Filter)
    for text, kind in (("t + 1", "Int64"), ("NULL", "NULL"), ("k", "String")):
        with pytest.raises(QueryError, match=kind) as caught:
            checked.filtered(scan(), parse(text), text)
        assert "^" in str(caught.value)


def test_filter_where_counts_and_sums_only_the_rows_it_is_true_for():
    condition = parse("k = 'a'")
    assert checked.where(None, condition).sql("spark") == "CASE WHEN k = 'a' THEN 1 END"
    assert checked.where(exp.column("t"), condition).sql("spark") == "CASE WHEN k = 'a' THEN t END"


def test_a_union_is_flat_and_of_one_stream_it_is_that_stream():
    a, b, c = scan("a"), scan("b"), scan("c")
    assert checked.united([a]) is a
    both = checked.united([checked.united([a, b]), c])
    assert isinstance(both, Union)
    assert both.members == (a, b, c)


@pytest.mark.parametrize(
    ("other", "message"),
    [
        (lambda: scan("b", x=pl.Int64()), r"x \(None and Int64\)"),
        (lambda: scan("b", k=pl.Int64()), r"k \(String and Int64\)"),
        (lambda: scan("b", progress="u", u=pl.Int64()), "same columns"),
    ],
)
def test_a_union_names_the_columns_that_differ(other, message):
    with pytest.raises(QueryError, match=message):
        checked.united([scan("a"), other()])


def test_a_union_needs_one_progressing_attribute_which_is_of_one_kind():
    a, b = (scan(n, progress=p, u=pl.Int64()) for n, p in (("a", "t"), ("b", "u")))
    with pytest.raises(QueryError, match="not t and u"):
        checked.united([a, b])
    ends = windows()
    raw = scan("b", progress="window_end", window_end=pl.Int64(), window_start=pl.Int64(), n=pl.Int64())
    raw = Project(raw, tuple((c, exp.column(c)) for c in ends.schema))
    with pytest.raises(QueryError, match="the end of a window on one side"):
        checked.united([ends, raw])


def test_a_function_names_columns_that_exist_and_takes_rows_without_versions():
    function = Function("f", len, ("k", "z"), pl.Int64())
    with pytest.raises(QueryError, match="f: z is not a column"):
        checked.applied(scan(), "y", function)
    with pytest.raises(PlanError, match="versions"):
        checked.applied(versions(), "y", Function("f", abs, ("n",), pl.Int64()))


def test_the_ways_of_a_split_have_steps_on_rows_only_and_meet_with_the_same_columns():
    whole, test = scan(), parse("t > 1")
    branch = scan(BRANCH)
    narrow = Project(branch, (("t", exp.column("t")),))
    assert checked.split(whole, test, branch, checked.filtered(branch, test)).schema == whole.schema
    with pytest.raises(QueryError, match="same columns"):
        checked.split(whole, test, branch, narrow)
    with pytest.raises(QueryError, match="on the stream that it is given"):
        checked.split(whole, test, branch, scan("other"))
    with pytest.raises(QueryError, match="on the stream that it is given"):
        checked.split(whole, test, windows(branch), windows(branch))


# -- progress ----------------------------------------------------------------------------------------------------------
def test_rows_progress_on_the_value_of_a_column_only_where_they_do_not_already():
    plain, results = scan(), windows()
    assert checked.on_value(plain, "t") is plain
    moved = checked.on_value(results, "window_end")
    assert (results.lead, moved.lead, moved.progress) == (1, 0, "window_end")
    assert moved.schema == results.schema


def test_the_attribute_of_a_window_is_found_by_any_spelling_and_window_time_over_results_only():
    results = windows()
    assert checked.attribute(scan(), "T") == "t"
    assert checked.attribute(scan(), "k") is None
    assert checked.attribute(scan(), "window_time") is None
    assert checked.attribute(results, "WINDOW_TIME") == "window_time"


def test_window_time_is_the_last_instant_unless_it_is_a_column():
    results = windows()
    assert checked.with_window_time(parse("window_time"), results).sql("spark") == "window_end - 1"
    assert checked.with_window_time(parse("window_time * 2"), results).sql("spark") == "(window_end - 1) * 2"
    assert checked.with_window_time(parse("window_time"), scan()).sql("spark") == "window_time"
    inclusive = windows(window=SlideByTuple(5, 1, "rank"))
    assert checked.with_window_time(parse("window_time + 1"), inclusive).sql("spark") == "window_end + 1"


# -- DISTINCT, ORDER BY, LIMIT -----------------------------------------------------------------------------------------
def test_distinct_needs_what_lets_it_forget():
    assert checked.distinct(scan()).schema == scan().schema
    with pytest.raises(PlanError, match="versions"):
        checked.distinct(versions())
    with pytest.raises(PlanError, match="progressing attribute"):
        checked.distinct(Project(scan(), (("k", exp.column("k")),)))
    with pytest.raises(PlanError, match="leave out x"):
        checked.distinct(scan(x=pl.List(pl.Int64())))


@pytest.mark.parametrize(
    ("order", "message"),
    [
        ((("k", False),), "ORDER BY t first"),
        ((("t", True),), "order ascending"),
        ((("t", False), ("z + 1", False)), "z"),
    ],
)
def test_a_stream_is_ordered_by_its_progress_first_and_upwards(order, message):
    trees = tuple((parse(text), down) for text, down in order)
    assert checked.ordered(scan(), ((exp.column("t"), False), (exp.column("k"), True))).order[0][1]
    with pytest.raises((QueryError, KeyError), match=message):
        checked.ordered(scan(), trees)


def test_an_order_or_a_limit_of_what_has_none_is_refused():
    by_end = ((exp.column("window_end"), False),)
    for build in (lambda: checked.ordered(versions(), by_end), lambda: checked.ranked(versions(), by_end, 3)):
        with pytest.raises(PlanError, match="versions"):
            build()
    with pytest.raises(PlanError, match="progressing attribute"):
        checked.ordered(Project(scan(), (("k", exp.column("k")),)), ((exp.column("k"), False),))
    with pytest.raises(PlanError, match="not PA"):
        checked.ranked(windows(numbered("n"), Partitioned(2, 2)), by_end, 3)
    with pytest.raises(QueryError, match="not 0"):
        checked.ranked(windows(), by_end, 0)


# -- windows -----------------------------------------------------------------------------------------------------------
def test_a_window_needs_aggregates_that_exist_with_names_of_their_own():
    with pytest.raises(QueryError, match="at least one aggregate"):
        checked.aggregated(scan(), Sliding(5, 5), (), ())
    keys = (("window_end", exp.column("k")), ("n", exp.column("k")))
    with pytest.raises(QueryError, match="given twice: n, window_end"):
        checked.aggregated(scan(), Sliding(5, 5), keys, COUNT)
    for name in ("version", "status"):
        called = (AggregateCall(name, "count"),)
        assert name in checked.aggregated(scan(), Sliding(5, 5), (), called).schema
        with pytest.raises(QueryError, match=f"given twice: {name}"):
            checked.aggregated(scan(), Sliding(5, 5), (), called, options=Options(early=1))
    with pytest.raises(QueryError, match="sum"):
        checked.aggregated(scan(), Sliding(5, 5), (), (AggregateCall("s", "sum", exp.column("k")),))


@pytest.mark.parametrize("window", [RowSliding(2, 2), Partitioned(2, 2), SlideByTuple(5, 2, "row_num")])
def test_windows_of_rows_need_numbered_rows(window):
    assert windows(numbered("n"), window).window == window
    with pytest.raises(PlanError, match="row_num="):
        windows(scan(), window)
    with pytest.raises(PlanError, match="row_num="):  # a union has no common order
        windows(checked.united([numbered("n"), numbered("n")]), window)


def test_rows_of_several_partitions_have_windows_by_key_only():
    node = numbered("p", "n")
    assert windows(node, Partitioned(2, 2))
    with pytest.raises(PlanError, match="p and n"):
        windows(node, RowSliding(2, 2))


def test_every_row_by_number_needs_no_number():
    assert windows(scan(), SlideByTuple(5, 1, "row_num"))


def test_a_window_needs_what_it_is_over():
    with pytest.raises(PlanError, match="progressing column"):
        windows(Project(scan(), (("k", exp.column("k")),)))
    with pytest.raises(PlanError, match="landmark"):
        windows(windows(), Landmark(5))


REFUSED = [
    (Session(5), Options(early=1), "EMIT EARLY"),
    (Landmark(5), Options(late="revise", keep=1), "LATE REVISE"),
    (Session(5), Options(empty=True), "WITH EMPTY"),
    (Sliding(5, 5), Options(late="revise"), "LATE REVISE FOR"),
    (Sliding(5, 5), Options(keep=5), "LATE REVISE"),
    (Sliding(5, 5), Options(empty=True, early=1), "WITH EMPTY"),
    (Session(5), Options(generous=True), "GENEROUS"),
    (Session(5), Options(partial=False), "WITHOUT PARTIAL"),
    (Sliding(5, 5), Options(zone="Europe/Berlin"), "TIME ZONE"),
]


@pytest.mark.parametrize(("window", "options", "message"), REFUSED)
def test_options_that_a_window_cannot_have(window, options, message):
    with pytest.raises(PlanError, match=message):
        windows(window=window, options=options)


def test_a_time_zone_is_for_instants_and_windows_of_time():
    zone = Options(zone="Europe/Berlin")
    assert windows(stamped(), Landmark(5), zone).options == zone
    for node, window in ((stamped(None), Sliding(5, 5)), (stamped(), Session(5))):
        with pytest.raises(PlanError, match="TIME ZONE"):
            windows(node, window, zone)


def test_windows_that_must_be_whole_need_a_beginning():
    whole = Options(partial=False)
    assert windows(options=whole)
    assert windows(stamped(), Sliding(5, 5, origin=7), whole)
    assert windows(numbered("n"), RowSliding(2, 2), whole)
    with pytest.raises(PlanError, match="ORIGIN"):
        windows(stamped(), Sliding(5, 5), whole)
