"""``FROM SEQ(..)`` in SQL: steps, keys, conditions between steps, and what is selected of them. Issue 14."""

from dataclasses import replace

import pytest
from join_queries import check_refused

import windrow as wr
from windrow.logical.nodes import Sequence

ORDERS = [(1, 1, 3, "a"), (2, 2, 5, "b"), (4, 1, 8, "a")]
CANCELS = [(5, 2)]
PAYMENTS = [(3, 1, 1.5), (6, 1, 2.0), (7, 2, 5.0), (7, 1, 4.0)]
SHIPMENTS = [(9, 1, 2), (10, 2, 7)]
ALL = "SEQ(orders a, NOT cancels x, payments+ b, shipments c)"
THREE = "SEQ(orders a, payments b, shipments c)"
TWO = "SEQ(orders a, payments b)"


def tables():
    given = {
        "orders": [dict(zip(("ts", "id", "amount", "who"), row, strict=True)) for row in ORDERS],
        "cancels": [dict(zip(("ts", "id"), row, strict=True)) for row in CANCELS],
        "payments": [dict(zip(("ts", "id", "paid"), row, strict=True)) for row in PAYMENTS],
        "shipments": [dict(zip(("ts", "id", "kg"), row, strict=True)) for row in SHIPMENTS],
    }
    streams = {name: wr.stream(rows, progress="ts", slack=2, name=name) for name, rows in given.items()}
    bare = wr.stream([{"ts": 1, "id": 1}], progress="ts", name="bare")
    return {**streams, "prices": wr.table([{"id": 1, "price": 2}]), "bare": bare}


def planned(query):
    return wr.sql(query, **tables()).node


def seq_of(query):
    (found,) = [node for node in planned(query).walk() if isinstance(node, Sequence)]
    return found


def rows(query):
    return sorted(wr.sql(query, **tables()).collect().rows(), key=str)


def keys(node):
    return [tuple(tree.sql("spark") for tree in key) for key in node.on]


def conditions(node):
    return [
        (c.left_step, c.left.sql("spark"), c.comparison, c.right_step, c.right.sql("spark")) for c in node.conditions
    ]


def filters(node):
    return [each.predicate.sql("spark") if type(each).__name__ == "Filter" else None for each in node.members]


# -- steps and options -------------------------------------------------------------------------------------------
def test_steps():
    node = seq_of(f"SELECT a.id FROM {ALL} WITHIN 10 USING (id)")
    assert [tuple(step) for step in node.steps] == [
        ("a", False, False),
        ("x", True, False),
        ("b", False, True),
        ("c", False, False),
    ]
    assert (node.matching, node.skip, node.within, node.most_keys, node.outer) == (
        "recent",
        "to next row",
        10,
        None,
        False,
    )
    assert keys(node) == [("id",) * 4]
    plain = seq_of("SELECT amount FROM SEQ(orders, (SELECT ts AS t, kg FROM shipments)+ AS s) WITHIN 10")
    assert [(step.name, step.repeated) for step in plain.steps] == [("orders", False), ("s", True)]
    assert plain.members[1].progress == "t"


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ("KEYS 5", ("recent", None, 5, "to next row")),
        ("RECENT WITHIN 10", ("recent", 10, None, "to next row")),
        ("CHRONICLE WITHIN 10", ("chronicle", 10, None, "to next row")),
        ("WITHIN 10 CHRONICLE AFTER MATCH SKIP PAST LAST ROW", ("chronicle", 10, None, "past last row")),
        ("AFTER MATCH SKIP TO NEXT ROW KEYS 5 WITHIN 10 RECENT", ("recent", 10, 5, "to next row")),
        ("after match skip past last row within 10", ("recent", 10, None, "past last row")),
    ],
)
def test_options_in_any_order(options, expected):
    for text in (f"USING (id) {options}", f"{options} ON a.id = b.id"):
        node = seq_of(f"SELECT a.id FROM {TWO} {text}")
        assert (node.matching, node.within, node.most_keys, node.skip) == expected
        assert keys(node) == [("id", "id")]


def test_late_rows_and_promises_of_steps():
    steps = "orders [LATE ERROR], NOT cancels x [LATE SIDE], bare+ b PUNCTUATED BY slack(3) [LATE SIDE], shipments"
    node = seq_of(f"SELECT kg FROM SEQ({steps}) USING (id) WITHIN 10")
    assert node.late == ("error", "side", "side", "drop")
    assert [step.name for step in node.steps] == ["orders", "x", "b", "shipments"]


def test_a_stream_that_follows_itself():
    node = seq_of("SELECT a.id FROM SEQ(orders a, orders b) USING (id) WITHIN 10")
    assert node.strict
    assert rows("SELECT a.ts, b.ts AS t FROM SEQ(orders a, orders b) USING (id) WITHIN 10") == [(1, 4)]


# -- ON ----------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize(
    "on",
    [
        "a.id = b.id AND b.id = c.id",
        "c.id = a.id AND a.id = b.id",
        "b.id = c.id AND (a.id = c.id)",
        "a.id = b.id AND b.id = c.id AND a.id = c.id",
    ],
)
def test_equalities_that_connect_all_steps_are_a_key(on):
    node = seq_of(f"SELECT a.id FROM {THREE} WITHIN 10 ON {on}")
    assert (keys(node), conditions(node), filters(node)) == ([("id",) * 3], [], [None] * 3)


def test_keys_of_expressions():
    on = "a.id + 1 = b.id AND b.id = c.id * 2 AND a.amount = b.paid AND b.paid = c.kg"
    assert keys(seq_of(f"SELECT a.id FROM {THREE} WITHIN 10 ON {on}")) == [
        ("id + 1", "id", "id * 2"),
        ("amount", "paid", "kg"),
    ]


def test_two_expressions_of_one_step_in_a_key_must_be_equal():
    node = seq_of(f"SELECT a.id FROM {TWO} WITHIN 10 ON a.id = b.id AND b.id = a.amount")
    assert (keys(node), filters(node)) == ([("id", "id")], ["id = amount", None])


def test_conditions_on_one_step_filter_its_rows():
    on = "a.id = b.id AND a.id = x.id AND a.id = c.id AND amount > 2 AND paid < 9 AND x.ts > 3"
    assert filters(seq_of(f"SELECT a.id FROM {ALL} WITHIN 10 ON {on}")) == ["amount > 2", "ts > 3", "paid < 9", None]


@pytest.mark.parametrize(
    ("on", "expected"),
    [
        ("b.paid > a.amount + 10", [(0, "amount + 10", "<", 1, "paid")]),
        ("a.amount <= b.paid", [(0, "amount", "<=", 1, "paid")]),
        ("c.kg <> b.paid", [(1, "paid", "<>", 2, "kg")]),
        ("c.kg = a.amount", [(0, "amount", "=", 2, "kg")]),
        (
            "b.paid BETWEEN a.amount AND a.amount * 2",
            [(0, "amount", "<=", 1, "paid"), (0, "amount * 2", ">=", 1, "paid")],
        ),
        ("b.ts > a.ts", [(0, "ts", "<", 1, "ts")]),
        ("b.ts - a.ts <= 3", [(0, "ts + 3", ">=", 1, "ts")]),
        ("c.ts - b.ts >= 3", [(1, "ts", "<=", 2, "ts - 3")]),
        ("b.ts >= a.ts", []),  # they are in this order anyway
    ],
)
def test_comparisons_of_two_steps(on, expected):
    assert conditions(seq_of(f"SELECT a.id FROM {THREE} WITHIN 10 USING (id)")) == []
    on = f"a.id = b.id AND b.id = c.id AND {on}"
    assert conditions(seq_of(f"SELECT a.id FROM {THREE} WITHIN 10 ON {on}")) == expected


@pytest.mark.parametrize(("on", "within"), [("c.ts - a.ts <= 7", 7), ("c.ts < a.ts + 7", 6), ("c.ts <= a.ts + 99", 10)])
def test_a_bound_of_the_first_and_the_last_row_is_a_greatest_distance(on, within):
    node = seq_of(f"SELECT a.id FROM {THREE} WITHIN 10 ON {on}")
    assert (node.within, conditions(node)) == (within, [])
    waits = seq_of(f"SELECT a.id FROM SEQ(orders a, payments b, NOT shipments c) WITHIN 10 ON {on}")
    assert (waits.within, len(waits.conditions)) == (10, 1)


def test_the_python_api_gives_the_same_node():
    t = tables()
    steps = {"a": t["orders"], "x": wr.no(t["cancels"]), "b": wr.some(t["payments"]), "c": t["shipments"]}
    options = {"on": "id", "within": 10, "matching": "chronicle", "skip": "past last row", "late": "side"}
    python = wr.seq(steps, where="c.kg > a.amount + 1", columns={"id": "a.id", "c.ts": "c.ts"}, **options).node
    late = ALL.replace(",", " [LATE SIDE],").replace(")", " [LATE SIDE])")
    on = "a.id = x.id AND a.id = b.id AND a.id = c.id AND c.kg > a.amount + 1"
    sql = f"SELECT a.id FROM {late} CHRONICLE WITHIN 10 ON {on} AFTER MATCH SKIP PAST LAST ROW"
    node = wr.sql(sql, **t).node.input
    assert [(m.step, m.column) for m in node.measures] == [(m.step, m.column) for m in python.measures]
    assert replace(node, measures=python.measures) == python


# -- the select list ---------------------------------------------------------------------------------------------
@pytest.mark.parametrize(
    ("query", "names", "expected"),
    [
        (
            f"SELECT a.id, c.ts - a.ts AS took, sum(b.paid) / count(b.*) AS mean, count(b.paid) FROM {ALL} WITHIN 10",
            ["id", "took", "mean", "count_paid"],
            [(1, 5, 3.0, 2)],
        ),
        (
            f"SELECT first(b.ts), last(b.ts), min(b.paid), max(paid), avg(b.paid), count(b.*) FROM {ALL} WITHIN 10",
            ["first_ts", "last_ts", "min_paid", "max_paid", "avg_paid", "count_b"],
            [(6, 7, 2.0, 4.0, 3.0, 2)],
        ),
        (f"SELECT * FROM {ALL} WITHIN 10", ["id", "a_ts", "amount", "who", "c_ts", "kg"], [(1, 4, 8, "a", 9, 2)]),
        (
            f"SELECT * EXCEPT (a_ts, who), sum(b.paid) AS s FROM {ALL} WITHIN 10",
            ["id", "amount", "c_ts", "kg", "s"],
            None,
        ),
        (f"SELECT c.*, amount FROM {ALL} WITHIN 10", ["ts", "id", "kg", "amount"], [(9, 1, 2, 8)]),
        (f"SELECT id, kg * 2 AS k FROM {ALL} WITHIN 10", ["id", "k"], [(1, 4)]),
        (f"SELECT A.ID FROM {ALL} WITHIN 10", ["ID"], [(1,)]),
        (f"SELECT a.ts FROM {ALL} CHRONICLE WITHIN 10", ["ts"], [(1,)]),
    ],
)
def test_what_is_selected(query, names, expected):
    query += " USING (id)"
    assert list(planned(query).schema) == names
    assert expected is None or rows(query) == expected


def test_results_progress_on_the_time_of_the_last_row():
    assert set(planned(f"SELECT a.ts, c.ts AS t FROM {ALL} WITHIN 10 USING (id)").times) == {"t"}
    assert set(planned("SELECT a.ts, last(b.ts) AS t FROM SEQ(orders a, payments+ b) WITHIN 9 USING (id)").times) == {
        "t"
    }
    assert set(planned("SELECT a.ts FROM SEQ(orders a, NOT payments b) WITHIN 9 USING (id)").times) == {"ts"}
    assert not planned(f"SELECT a.ts FROM {ALL} WITHIN 10 USING (id)").times


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        (f"SELECT amount, paid FROM {TWO} KEYS 5 USING (id)", [(3, 1.5), (5, 5.0), (8, 2.0), (8, 4.0)]),
        (f"SELECT amount, paid FROM {TWO} CHRONICLE WITHIN 9 USING (id)", [(3, 1.5), (5, 5.0), (8, 2.0)]),
        (f"SELECT amount, paid FROM {TWO} WITHIN 2 USING (id)", [(3, 1.5), (8, 2.0)]),
        (f"SELECT amount, paid FROM {TWO} WITHIN 9 ON a.id = b.id AND b.paid >= a.amount", [(3, 4.0), (5, 5.0)]),
        (f"SELECT amount, paid FROM {TWO} WITHIN 9 USING (id) WHERE paid > 2 AND who = 'a'", [(8, 4.0)]),
        ("SELECT id, a.ts FROM SEQ(orders a, NOT payments p) WITHIN 2 USING (id)", [(2, 2)]),
        (
            "SELECT a.ts, count(p.*) AS n, last(p.ts) AS t FROM SEQ(orders a, payments+ p) WITHIN 5 USING (id)",
            [(1, 1, 3), (2, 1, 7), (4, 2, 7)],
        ),
        ("SELECT a.ts FROM SEQ(orders a, payments+ p) WITHIN 5 USING (id) WHERE sum(p.paid) > 5.5", [(4,)]),
        (f"SELECT b.ts FROM {THREE} WITHIN 20 USING (id)", [(7,), (7,)]),
        (f"SELECT b.ts FROM {THREE} CHRONICLE WITHIN 20 USING (id)", [(3,), (7,)]),
    ],
)
def test_results(query, expected):
    assert rows(query) == expected


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        (
            f"SELECT count(*) AS n, sum(paid) AS s FROM {TWO} WITHIN 9 USING (id) [TUMBLING 5]",
            [(0, 5, 1, 1.5), (5, 10, 3, 11.0)],
        ),
        (
            f"SELECT who, max(b.ts) AS t [TUMBLING 10, WA b.ts] FROM {TWO} WITHIN 9 USING (id) GROUP BY who",
            [("a", 0, 10, 7), ("b", 0, 10, 7)],
        ),
        (
            f"SELECT who, count(*) AS n FROM {TWO} WITHIN 9 USING (id) [TUMBLING 10] GROUP BY who HAVING n > 1",
            [("a", 0, 10, 3)],
        ),
        (f"SELECT b.ts, count(*) AS n FROM {TWO} WITHIN 9 USING (id) GROUP BY b.ts", [(3, 1), (6, 1), (7, 2)]),
        (
            f"SELECT sum(sum(b.paid)) AS s, count(*) AS n FROM {ALL} WITHIN 10 USING (id) [TUMBLING 20]",
            [(0, 20, 6.0, 1)],
        ),
        (
            f"SELECT b.ts AS t, who FROM {TWO} WITHIN 9 USING (id) ORDER BY b.ts, a.who",
            [(3, "a"), (6, "a"), (7, "a"), (7, "b")],
        ),
        (f"SELECT DISTINCT b.ts AS t FROM {TWO} WITHIN 9 USING (id)", [(3,), (6,), (7,)]),
        (f"SELECT b.ts FROM {TWO} WITHIN 2 USING (id) UNION ALL SELECT ts FROM cancels", [(3,), (5,), (6,)]),
        (
            f"SELECT s.kg, z.total FROM (SELECT a.id, c.ts, sum(b.paid) AS total FROM {ALL} WITHIN 10 USING (id)) z "
            "JOIN shipments s ON s.ts = z.ts",
            [(2, 6.0)],
        ),
        (
            f"SELECT price, b.ts FROM (SELECT b.ts, b.id FROM {TWO} WITHIN 2 USING (id)) b JOIN prices USING (id)",
            [(2, 3), (2, 6)],
        ),
    ],
)
def test_queries_over_sequences(query, expected):
    assert rows(query) == expected


# -- errors ------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize(
    ("query", "message", "underlined"),
    [
        ("SELECT a.id FROM SEQ(orders a) WITHIN 9", "a sequence has 2 to 16 steps, not 1", "orders a"),
        ("SELECT a.id FROM SEQ() WITHIN 9", "Expected", ")"),
        ("SELECT a.id FROM SEQ(orders a,) WITHIN 9", "Expected", ")"),
        ("SELECT a.id FROM SEQ(orders a payments b) WITHIN 9", "Expected , or ) after a step", "payments"),
        (
            "SELECT b.id FROM SEQ(NOT orders a, payments b) WITHIN 9",
            "cannot begin with the negated step a",
            "NOT orders a",
        ),
        ("SELECT a.id FROM SEQ(orders a, NOT payments+ b) WITHIN 9", "leave out +", "NOT payments+ b"),
        ("SELECT a.id FROM SEQ(orders a, payments b+) WITHIN 9", "The + stands right after the table", "+"),
        ("SELECT a.id FROM SEQ(orders a, payments A) WITHIN 9", "two steps are called A", "payments A"),
        (
            "SELECT a.id FROM SEQ(orders a, (SELECT * FROM payments)) WITHIN 9",
            "a step needs a name",
            "(SELECT * FROM payments",
        ),
        (
            "SELECT a.id FROM SEQ(orders a, (SELECT id FROM payments) b) WITHIN 9",
            "needs its progressing column",
            "(SELECT id FROM payments) b",
        ),
        ("SELECT a.id FROM SEQ(orders a, prices b) WITHIN 9", "prices is a static table", "prices b"),
        ("SELECT a.id FROM SEQ(orders a, nope b) WITHIN 9", "unknown table 'nope'", "nope"),
        ("SELECT a.id FROM SEQ(orders a, payments b [RANGE 3]) WITHIN 9", "a step has no window", "[RANGE 3]"),
        (f"SELECT a.id FROM {TWO} m WITHIN 9", "A sequence has no alias", "m"),
        (f"SELECT a.id FROM {TWO} AS m", "A sequence has no alias", "AS"),
        (f"SELECT a.id FROM {TWO} LATEST WITHIN 9", "RECENT or CHRONICLE, WITHIN, KEYS", "LATEST"),
        (f"SELECT a.id FROM {TWO} RECENT CHRONICLE WITHIN 9", "MATCHING is given twice", "CHRONICLE"),
        (f"SELECT a.id FROM {TWO} KEYS 1.5 USING (id)", "KEYS takes a whole number of keys", "1.5"),
        (f"SELECT a.id FROM {TWO} KEYS 0 USING (id)", "1 or more, not 0", "0"),
        (f"SELECT a.id FROM {TWO} WITHIN 9 WITHIN 8", "WITHIN is given twice", "WITHIN"),
        (f"SELECT a.id FROM {TWO} WITHIN 9 AFTER MATCH SKIP TO FIRST b", "Expected TO NEXT ROW or PAST LAST ROW", "TO"),
        (f"SELECT a.id FROM {TWO} WITHIN 9 MINUTES", "its attribute is of type Int64", "9 MINUTES"),
        (f"SELECT a.id FROM {TWO} WITHIN ALL", "A sequence has no alias", "WITHIN"),
        (f"SELECT a.id FROM {TWO} USING (id)", "What can: a greatest distance (WITHIN)", f"{TWO} USING (id)"),
        (
            "SELECT a.id FROM SEQ(orders a, NOT payments b) KEYS 5 USING (id)",
            "which also says when the sequence is over",
            "SEQ(orders a, NOT payments b) KEYS 5 USING (id)",
        ),
        (f"SELECT a.id FROM {TWO} WITHIN 9 USING (paid)", "step a has no column 'paid'", "paid"),
        (
            f"SELECT a.id FROM {THREE} WITHIN 9 ON a.id = b.id",
            "leaves out step c: a key is in all steps. Add c.x = a.x",
            "shipments c",
        ),
        (
            "SELECT a.id FROM SEQ(orders a, NOT cancels x, payments b) WITHIN 9 ON b.id = a.id",
            "leaves out step x",
            "NOT cancels x",
        ),
        (
            f"SELECT a.id FROM {TWO} WITHIN 9 ON a.id = b.id OR a.amount = b.paid",
            "comparisons joined by AND",
            "a.id = b.id OR a.amount = b.paid",
        ),
        (
            f"SELECT a.id FROM {TWO} WITHIN 9 ON b.paid - a.amount > 10",
            "such as b.price > a.price + 10",
            "b.paid - a.amount > 10",
        ),
        (
            f"SELECT a.id FROM {TWO} WITHIN 9 ON NOT b.paid = a.amount",
            "comparisons joined by AND",
            "NOT b.paid = a.amount",
        ),
        (f"SELECT a.id FROM {TWO} WITHIN 9 ON b.ts < a.ts", "no sequence is like this", "b.ts < a.ts"),
        (f"SELECT a.id FROM {TWO} WITHIN 9 ON 1 = 0", "this is about no step", "1 = 0"),
        (f"SELECT a.id FROM {TWO} WITHIN 9 ON", "Expected a condition after ON", "ON"),
        (f"SELECT a.id FROM {TWO} WITHIN 9 ON a.nope = b.id", "has no column 'nope'", "a.nope"),
        (f"SELECT a.id FROM {TWO} WITHIN 9 ON nope = b.id", "unknown column 'nope'", "nope"),
        (f"SELECT a.id FROM {TWO} WITHIN 9 ON id = 3", "column 'id' is ambiguous", "id"),
        (f"SELECT a.id FROM {TWO} WITHIN 9 ON max(a.id) = b.id", "ON cannot contain aggregates", "max(a.id)"),
        (f"SELECT a.id FROM {TWO} WITHIN 9 ON a.who > b.paid", "cast one of them", "b.paid"),
        (
            "SELECT a.id FROM SEQ(orders a, NOT cancels x, payments b) WITHIN 9 ON b.paid > x.ts",
            "step x is negated, so later steps have no row of it",
            "x.ts",
        ),
        (
            f"SELECT a.id, b.paid FROM {ALL} WITHIN 9 USING (id)",
            "step b has one or more rows, of which there are first(b.x), last(b.x)",
            "b.paid",
        ),
        (f"SELECT a.id, paid + 1 AS p FROM {ALL} WITHIN 9 USING (id)", "step b has one or more rows", "paid"),
        (f"SELECT x.ts FROM {ALL} WITHIN 9 USING (id)", "step x is negated", "x.ts"),
        (f"SELECT b.* FROM {ALL} WITHIN 9 USING (id)", "step b has one or more rows", "b.*"),
        (
            f"SELECT stddev(b.paid) AS s FROM {ALL} WITHIN 9 USING (id)",
            "stddev is no function of the rows of a step; available: avg, count",
            "stddev(b.paid)",
        ),
        (
            f"SELECT sum(b.paid * 2) AS s FROM {ALL} WITHIN 9 USING (id)",
            "takes one of its columns alone, as in sum(b.x)",
            "sum(b.paid * 2)",
        ),
        (
            f"SELECT sum(DISTINCT b.paid) AS s FROM {ALL} WITHIN 9 USING (id)",
            "takes one of its columns alone",
            "sum(DISTINCT b.paid)",
        ),
        (f"SELECT sum(b.nope) AS s FROM {ALL} WITHIN 9 USING (id)", "step b has no column 'nope'", "b.nope"),
        (f"SELECT sum(b.*) AS s FROM {ALL} WITHIN 9 USING (id)", "b.* can be counted only", "b.*"),
        (f"SELECT sum(a.amount) AS s FROM {ALL} WITHIN 9 USING (id)", "needs a window", "sum(a.amount) AS s"),
        (f"SELECT nope FROM {ALL} WITHIN 9 USING (id)", "unknown column 'nope'; available: a.id", "nope"),
        (f"SELECT z.id FROM {ALL} WITHIN 9 USING (id)", "unknown table 'z' in z.id; available: a, b, c, x", "z"),
        (f"SELECT a.id, c.id FROM {ALL} WITHIN 9 USING (id)", "output columns need different names", "c.id"),
        (
            "SELECT a.id FROM SEQ(orders a, payments+ b) WITHIN 9 AFTER MATCH SKIP PAST LAST ROW",
            "use SKIP TO NEXT ROW",
            "SEQ(orders a, payments+ b) WITHIN 9 AFTER MATCH SKIP PAST LAST ROW",
        ),
        (f"SELECT /*+ USING(oa) */ a.id FROM {TWO} WITHIN 9", "a hint needs a window", "/*+ USING(oa) */"),
        (
            f"SELECT a.id FROM {TWO} WITHIN 9 JOIN shipments c ON true",
            "a sequence is joined as a query",
            "shipments c ON true",
        ),
        (f"SELECT a.id FROM shipments, {TWO} WITHIN 9", "SEQ stands alone after FROM", f"{TWO} WITHIN 9"),
        (f"SELECT a.id FROM {TWO} WITHIN 9 UNION shipments", "A union of a sequence is one of queries", "UNION"),
    ],
)
def test_what_cannot_be_is_underlined(query, message, underlined):
    check_refused(query, message, underlined, planned)
