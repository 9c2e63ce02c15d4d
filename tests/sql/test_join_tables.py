"""Streams joined with static tables in SQL: no times are compared. Issue 13."""

import pytest
from join_queries import BAND, check_refused, tables

import windrow as wr
from windrow.logical.nodes import Join, Lookup

HOSTS = wr.table([{"k": 1, "name": "web"}, {"k": 2, "name": "mail"}])


def planned(query, **others):
    return wr.sql(query, **tables(), hosts=HOSTS, **others).node


def lookup_of(query):
    (found,) = [node for node in planned(query).walk() if isinstance(node, Lookup)]
    return found


@pytest.mark.parametrize(
    ("tables", "how"),
    [
        ("L JOIN hosts ON L.k = hosts.k", "inner"),
        ("hosts JOIN L ON L.k = hosts.k", "inner"),
        ("L, hosts WHERE L.k = hosts.k", "inner"),
        ("L LEFT JOIN hosts USING (k)", "left"),
        ("hosts RIGHT JOIN L USING (k)", "left"),
        ("L SEMI JOIN hosts USING (k)", "semi"),
        ("L ANTI JOIN hosts USING (k)", "anti"),
    ],
)
def test_a_table_needs_no_bound(tables, how):
    found = lookup_of(f"SELECT x, L.ts FROM {tables}")
    assert (found.how, [(a.sql(), b.sql()) for a, b in found.on], found.where) == (how, [("k", "k")], None)
    assert (found.table.name, found.progress) == ("hosts", "L.ts" if "L.ts" in found.schema else "ts")


def test_conditions_on_the_stream_come_first_and_all_others_are_of_the_join():
    found = lookup_of("SELECT x FROM L JOIN hosts ON L.k = hosts.k AND x > 1 AND name <> src AND name LIKE 'w%'")
    assert found.input.predicate.sql("spark") == "x > 1"
    assert found.where.sql("spark") == "name <> src AND name LIKE 'w%'"


def test_columns_are_in_the_order_of_the_tables():
    assert list(planned("SELECT * FROM hosts JOIN L USING (k)").schema) == ["k", "name", "ts", "src", "x"]
    assert list(planned("SELECT * FROM L JOIN hosts USING (k)").schema) == ["k", "ts", "src", "x", "name"]
    other = wr.table([{"id": 1, "name": "web"}])
    assert list(planned("SELECT * FROM other JOIN L ON id = k", other=other).schema) == [
        "id",
        "name",
        "ts",
        "k",
        "src",
        "x",
    ]


def test_tables_and_streams_are_joined_in_one_query():
    query = f"SELECT name, v FROM L JOIN hosts ON L.k = hosts.k JOIN R ON R.k = L.k AND {BAND}"
    join = next(node for node in planned(query).walk() if isinstance(node, Join))
    assert isinstance(join.left, Lookup)
    query = f"SELECT name, v FROM L [LATE SIDE] JOIN hosts ON L.k = hosts.k JOIN R ON {BAND}"
    assert next(node for node in planned(query).walk() if isinstance(node, Join)).late == ("side", "drop")
    query = "SELECT name, v FROM L [RANGE 1 MINUTE] JOIN hosts ON L.k = hosts.k JOIN R [RANGE 1 MINUTE] ON R.k = L.k"
    assert next(node for node in planned(query).walk() if isinstance(node, Join)).window.width == 120_000_000 - 1


def test_a_name_that_was_given_stays():
    named = wr.table([{"id": 1}], name="ids")
    (found,) = [n for n in planned("SELECT x FROM L JOIN z ON z.id = k", z=named).walk() if isinstance(n, Lookup)]
    assert found.table.name == "ids"


@pytest.mark.parametrize(
    ("query", "message", "underlined"),
    [
        ("SELECT name FROM hosts", "hosts is a static table: join a stream with it", "hosts"),
        ("SELECT count(*) FROM L UNION hosts [TUMBLING 1 MINUTE]", "hosts is a static table", "hosts"),
        ("SELECT a.name FROM hosts AS a JOIN hosts AS b ON a.k = b.k", "join it with a stream", "hosts AS b"),
        (
            "SELECT x FROM L RIGHT JOIN hosts USING (k)",
            "a right join with table 'hosts' is not possible",
            "hosts USING (k",
        ),
        ("SELECT x FROM L FULL JOIN hosts USING (k)", "a full join with table 'hosts'", "hosts USING (k"),
        ("SELECT x FROM hosts LEFT JOIN L USING (k)", "rows of 'hosts' would have to wait", "L USING (k"),
        ("SELECT name FROM hosts ANTI JOIN L USING (k)", "name the stream first", "L USING (k"),
        ("SELECT x FROM L [TUMBLING 1 MINUTE] JOIN hosts USING (k)", "follows the select list", "TUMBLING 1 MINUTE"),
        ("SELECT x FROM L [LATE SIDE] JOIN hosts USING (k)", "a join with a table has no window", "LATE SIDE"),
        ("SELECT x FROM L, hosts [RANGE 1 MINUTE]", "a join with a table has no window", "RANGE 1 MINUTE"),
        ("SELECT x FROM L JOIN hosts PUNCTUATED BY ordered() USING (k)", "it makes no promises", "ordered()"),
        ("SELECT x FROM L JOIN hosts AS h(a, b) ON k = a", "cannot name columns", "h(a, b"),
        ("SELECT x FROM L JOIN hosts ON L.src = hosts.k", "cannot be equal: cast one", "hosts.k"),
        ("SELECT /*+ USING(oa) */ x FROM L JOIN hosts USING (k)", "a hint needs a window", "/*+ USING(oa) */"),
        ("SELECT x FROM L JOIN host USING (k)", "unknown table 'host'; available: C, L, N, R, hosts", "host"),
        ("SELECT nope FROM L JOIN hosts USING (k)", "unknown column 'nope'", "nope"),
    ],
)
def test_what_cannot_be_is_underlined(query, message, underlined):
    check_refused(query, message, underlined, planned)
