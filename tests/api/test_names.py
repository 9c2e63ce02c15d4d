"""Names and texts in the Python API and in SQL mean what they mean in Spark (issue 11)."""

import pytest

import windrow as wr

ODD = ["id.orig_h", "select", "order", "a b", "c`d", "Group", "1st"]
ROWS = [{"t": t, **dict.fromkeys(ODD, t % 2), "x": t} for t in range(4)]


def stream():
    return wr.stream(ROWS, progress="t", row_num="t", name="s")


@pytest.mark.parametrize("name", ODD)
def test_a_text_that_is_a_columns_name_is_that_column(name):
    s = stream()
    quoted = f"`{name.replace('`', '``')}`"
    for given in (name, quoted):
        assert s.select("t", given).collect().columns == ["t", name]
        grouped = s.window(10).group_by(given).agg(top=wr.max(given), n=wr.count(given))
        assert grouped.collect().columns == [name, "window_start", "window_end", "top", "n"]
        assert sorted(grouped.collect().rows()) == [(0, 0, 10, 0, 2), (1, 0, 10, 1, 2)]
        assert grouped.top(1, given).collect()[name].to_list() == [1]
        assert s.rows(2, partition_by=given).agg(n=wr.count()).collect().columns[0] == name
        assert s.each_row(2, partition_by=[given]).agg(n=wr.count()).collect().columns[0] == name
        assert s.order_by("t", given).collect().height == 4
        assert s.order_by("t", f"{quoted} DESC").collect().height == 4
        assert s.where(f"{quoted} = 1").collect().height == 2
        assert s.apply(y=given).collect()["y"].to_list() == [0, 1, 0, 1]
        query = f"SELECT {quoted}, count(*) AS n FROM s [TUMBLING 10] GROUP BY {quoted}"
        assert sorted(wr.sql(query, s=s).collect().rows()) == [(0, 0, 10, 2), (1, 0, 10, 2)]


def test_a_dot_in_an_expression_needs_backquotes():
    with pytest.raises(wr.QueryError, match=r"written in backquotes: `id.orig_h`\n  id.orig_h = 1\n  \^{9}$"):
        stream().where("id.orig_h = 1")
    with pytest.raises(wr.QueryError, match=r"written in backquotes: `id.orig_h`\n"):
        wr.sql("SELECT id.orig_h FROM s", s=stream())
    with pytest.raises(wr.QueryError, match=r"unknown table 'nope' in nope\.x: name the column alone"):
        stream().where("nope.x = 1")


def test_a_name_is_given_once():
    with pytest.raises(wr.QueryError, match="given twice: x"):
        stream().select("t", "x", x="t")
    assert stream().window(10).group_by("x", "x").agg(n=wr.count()).collect().height == 4


# Each as Spark 4.3 has it: SELECT <text>.
TEXTS = {
    r"'O''Brien'": "O'Brien",
    r"'a' 'b'": "ab",
    r'"a""b"': 'a"b',
    r'''"it's"''': "it's",
    r"''''": "'",
    r"'a''''b'": "a''b",
    r"''": "",
    r"'a\'b'": "a'b",
    r"'a\"b'": 'a"b',
    r"'a\\b'": "a\\b",
    r"'\0\b\n\r\t\Z'": "\0\b\n\r\t\x1a",
    r"'a\%b\_c'": r"a\%b\_c",
    r"'\q\x41'": "qx41",
    r"'\u0041\U00000041\101'": "AAA",
    r"r'a\nb'": r"a\nb",
    r"R'a\nb'": r"a\nb",
    r"r'a''b'": "ab",
}


@pytest.mark.parametrize(("text", "value"), TEXTS.items())
def test_texts_are_spelled_as_in_spark(text, value):
    assert stream().select("t", y=text).collect()["y"][0] == value
    found = wr.sql(f"SELECT t, {text} AS y FROM s WHERE {text} = {text}", s=stream()).collect()
    assert found["y"].to_list() == [value] * 4


@pytest.mark.spark
def test_spark_reads_texts_as_we_do(spark):
    columns = ", ".join(f"{text} AS c{i}" for i, text in enumerate(TEXTS))
    assert list(spark.sql(f"SELECT {columns}").collect()[0]) == list(TEXTS.values())
