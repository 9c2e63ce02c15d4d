"""Python functions as conditions of joins in SQL, windows of the last rows, and hints about nodes."""

import pytest

import windrow as wr
from windrow.errors import QueryError

ROWS = {
    "one": [{"t": 1, "img": 10}, {"t": 5, "img": 20}, {"t": 5, "img": 21}],
    "two": [{"t": 2, "img": 11}, {"t": 6, "img": 30}],
    "three": [{"t": 3, "img": 12}, {"t": 4, "img": 31}],
}


def near(a, b):
    return abs(a - b) < 3


NEAR = wr.udf(near, "BOOLEAN", "x", "y")
THREE = "SELECT one.t AS a, two.t AS b, three.t AS c FROM one [RANGE 10], two [RANGE 10], three [RANGE 10]"
TWO = "SELECT one.t AS a, two.t AS b FROM one [RANGE 10], two [RANGE 10]"


def query(text, *functions, **named):
    streams = {name: wr.stream(rows, "t", slack=0, name=name) for name, rows in ROWS.items()}
    return wr.sql(text, *functions, **streams, **named)


@pytest.mark.parametrize(
    ("text", "rows"),
    [
        (f"{THREE} WHERE near(one.img, two.img) AND near(two.img, three.img)", [(1, 2, 3)]),
        (f"{THREE} WHERE near(one.img, two.img) AND three.img > 20", [(1, 2, 4)]),
        (f"{TWO} WHERE NEAR(two.img, one.img)", [(1, 2)]),
        (f"{TWO.replace('SELECT', 'SELECT /*+ USING(multi) */')} WHERE near(two.img, one.img)", [(1, 2)]),
        ("SELECT one.t AS a, two.t AS b FROM one [RANGE 10] JOIN two [RANGE 10] ON near(one.img, two.img)", [(1, 2)]),
        (f"{TWO.replace('SELECT', 'SELECT /*+ NODES(3) */')} WHERE one.t > 1 AND two.t < 6", [(5, 2), (5, 2)]),
        (f"{TWO.replace('SELECT', 'SELECT /*+ USING(ring), NODES(auto) */')} WHERE one.img = 20", [(5, 2), (5, 6)]),
    ],
)
def test_functions_are_conditions(text, rows):
    assert sorted(query(text, NEAR).collect().rows()) == rows


def test_a_function_is_called_as_it_is_given():
    assert query(f"{TWO} WHERE alike(one.img, two.img)", alike=NEAR).collect().rows() == [(1, 2)]


def test_the_last_rows_of_a_stream_whatever_is_asked_of_them_later():
    """The last row of two before (5, 20) is that at 2; a condition on two does not make it another one."""
    text = "SELECT /*+ USING(ring) */ one.t AS a, two.t AS b FROM one [RANGE 2], two [RANGE 1 ROWS]"
    assert sorted(query(text).collect().rows()) == [(1, 2), (5, 2), (5, 2), (5, 6), (5, 6)]
    assert query(f"{text} WHERE two.img > 20 AND one.img = 20").collect().rows() == [(5, 6)]
    text = "SELECT one.t AS a, three.t AS c FROM one [RANGE 1], two [RANGE 9 ROWS], three [RANGE 1 ROWS]"
    assert set(query(text).collect().rows()) == {(5, 4)}


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (f"{TWO} WHERE near(one.img, two.img + 1)", "near takes columns"),
        (f"{TWO} WHERE near(one.img, two.img, two.t)", "near(x, y) is called with 3 columns"),
        (f"{TWO} WHERE near(one.img, one.t)", "near is a Python function: it is a whole condition of WHERE or ON"),
        (f"{TWO} WHERE NOT near(one.img, two.img)", "not supported in expressions"),
        ("SELECT one.t FROM one WHERE near(one.img, one.t)", "near is a Python function"),
        (
            "SELECT one.t FROM one [RANGE 9] LEFT JOIN two [RANGE 9] ON near(one.img, two.img)",
            "near can be a condition of inner joins of two or more streams",
        ),
        ("SELECT one.t FROM one JOIN two ON near(one.img, two.img)", "near can be a condition of inner joins"),
        (f"{TWO.replace('SELECT', 'SELECT /*+ NODES(0) */')}", "NODES takes a number, 1 or more, or AUTO, not '0'"),
        ("SELECT /*+ NODES(2) */ t, count(*) AS n FROM one [RANGE 5, WA t] GROUP BY t", "NODES is about joins"),
        (
            "SELECT /*+ USING(ring) */ one.t FROM one JOIN two ON one.t BETWEEN two.t - 3 AND two.t + 3",
            "USING(ring) is about inner joins of two or more streams",
        ),
        ("SELECT one.t FROM one [RANGE 9], two [RANGE 1 ROWS]", "RANGE n ROWS beside a RANGE of time"),
    ],
)
def test_what_is_no_condition_is_refused_where_it_stands(text, message):
    with pytest.raises(QueryError) as error:
        query(text, NEAR).explain()
    assert message in str(error.value)
    assert "^" in str(error.value)


def test_only_conditions_can_be_given():
    with pytest.raises(QueryError, match="is a condition and must return BOOLEAN"):
        query(f"{TWO} WHERE near(one.img, two.img)", near=wr.udf(near, "BIGINT", "x", "y"))
    with pytest.raises(QueryError, match=r"neither wr.aggregate\(..\) nor wr.promise.function\(..\) nor wr.udf"):
        query(TWO, near)
