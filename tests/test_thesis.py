"""The queries of the thesis (examples/thesis): against the oracle, by hand, and as Spark drives them."""

import re
import runpy
from datetime import datetime, timedelta
from pathlib import Path

import polars as pl
import pytest

import windrow as wr
from windrow.testing import compare, oracle, replay
from windrow.testing.simulated import SimulatedSpark

FOLDER = Path(__file__).parents[1] / "examples" / "thesis"
RUN = runpy.run_path(str(FOLDER / "run.py"), run_name="thesis")
QUERIES: dict[str, str] = RUN["QUERIES"]
FEW = {"Main": 40, "M": 30, "Main1": 20, "Main2": 20, "Control": 2, "packets": 20, "M1": 30, "M2": 20, "C": 2}
FEW |= {"A": 20, "B": 20, "D": 20, "S0": 20, "S1": 20}
NUMBERS = ["Q1-1", "Q1-2", "Q2-1", "Q3-1", *(f"Q5-{i}" for i in range(1, 9)), *(f"Q6-{i}" for i in range(1, 9))]
NUMBERS += ["Q7-1", "Q7-2", *(f"Q8-{i}" for i in range(1, 6))]
BEGIN = datetime(2024, 1, 1, 10)


def planned(number: str) -> wr.Stream:
    return wr.sql(QUERIES[number], **RUN["links"](number, FEW))


def test_all_queries_are_there():
    assert list(QUERIES) == NUMBERS


@pytest.mark.parametrize("number", NUMBERS)
def test_a_query_gives_what_it_means_under_any_arrival(number):
    query = planned(number)
    expected = oracle(query)
    assert expected.height > 0
    compare(query.collect(), expected, number)
    compare(RUN["answer"](query, 7), expected, number)
    replay(query, runs=3)


def test_the_script_finds_every_answer_right(capsys):
    assert RUN["main"]() is False
    lines = capsys.readouterr().out.splitlines()
    assert [(line.split()[0], line.split()[-1]) for line in lines] == [(n, "right") for n in NUMBERS]


def test_the_script_says_what_is_wrong(capsys):
    changed = runpy.run_path(str(FOLDER / "run.py"), run_name="thesis")
    changed["QUERIES"].clear()
    changed["QUERIES"]["Q1-2"] = QUERIES["Q1-2"]
    changed["main"].__globals__["answer"] = lambda query: oracle(query).with_columns(count=pl.col("count") + 1)
    assert changed["main"]() is True
    assert capsys.readouterr().out == "Q1-2    10 rows WRONG\n"


@pytest.mark.parametrize("number", NUMBERS)
def test_a_file_begins_with_its_sentence_and_the_table_has_it(number):
    lines = QUERIES[number].splitlines()
    end = next(i for i, line in enumerate(lines) if not line.startswith("-- "))
    sentence = " ".join(line.removeprefix("-- ") for line in lines[:end])
    rows = re.findall(r"^\| \[(.+?)\]\((.+?)\) \| (.+?) \|", (FOLDER / "README.md").read_text(), re.MULTILINE)
    assert (number, f"{number}.sql", sentence) in rows


# -- by hand -----------------------------------------------------------------------------------------------------------
def ask(number: str, link: str, rows: list[tuple[str, int, int]], slack: int = 700) -> list[tuple[object, ...]]:
    """The results over (srcIP, second, length) as they arrive; times are in seconds after ten o'clock."""
    packets = [{"srcIP": ip, "ts": BEGIN + timedelta(seconds=s), "length": size} for ip, s, size in rows]
    frame = pl.DataFrame(packets).with_row_index("n")
    stream = wr.stream(frame, progress="ts", slack=f"{slack} seconds", row_num="n", name=link)
    found = RUN["answer"](wr.sql(QUERIES[number], **{link: stream}), max(2, len(rows) // 10)).sort("window_end")
    bounds = [c for c in ("window_start", "window_end") if found.schema[c] != pl.Int64]
    return found.with_columns((pl.col(bounds) - BEGIN).dt.total_seconds()).rows()


def test_a_partition_has_windows_of_its_own_rows_and_a_group_has_not():
    # b sends the first packet and the 1005th, a all others.
    rows = [("b", 0, 99), *(("a", n, 40) for n in range(1, 1004)), ("b", 1004, 50)]
    partitioned = [r for r in ask("Q5-2", "Main", rows) if r[0] == "b"]
    grouped = [r for r in ask("Q5-3", "Main", rows) if r[0] == "b"]
    # Both are among b's own last 1000 packets until 1000 of them have come.
    assert partitioned == [("b", end - 1000, end, 99) for end in range(10, 1001, 10)]
    # Among all packets the first has left the last 1000 when the 1005th comes.
    assert grouped == [("b", end - 1000, end, 99 if end <= 1000 else 50) for end in range(10, 2001, 10)]


def test_a_landmark_window_never_forgets():
    rows = [("a", 70, 0), ("b", 10, 0), ("a", 59, 0), ("a", 150, 0), ("a", 60, 0)]
    assert sorted(ask("Q5-4", "Main1", rows)) == [
        ("a", None, 60, 1),
        ("a", None, 120, 3),
        ("a", None, 180, 4),
        ("b", None, 60, 1),
        ("b", None, 120, 1),
        ("b", None, 180, 1),
    ]


def test_every_packet_ends_a_window():
    rows = [("a", 400, 7), ("a", 100, 4), ("a", 399, 3), ("a", 701, 1), ("a", 100, 9)]
    assert ask("Q5-5", "Main", rows) == [
        (-200, 100, 9),  # the two packets of second 100 see each other
        (99, 399, 9),
        (100, 400, 7),  # 100 is no more among the past 300 seconds, ]100, 400]
        (401, 701, 1),
    ]


def test_every_fifth_packet_by_time_ends_a_window_in_whatever_order_they_come():
    # In the order of time: 0, 10, 20, 30, 40, 300, 310, 320, 330, 340, 350. The ranks 0, 5 and 10 end windows.
    rows = [("a", s, 0) for s in (310, 10, 40, 300, 0, 350, 20, 340, 30, 330, 320)]
    assert ask("Q5-6", "Main", rows) == [
        (-300, 0, 1),
        (0, 300, 5),  # without second 0 itself
        (50, 350, 6),
    ]


def test_a_source_with_exactly_five_percent_is_a_heavy_hitter():
    # All in the minute from 0 to 60, but for one packet in the next: 1 of 20 is 5%, 1 of 21 is less.
    rows = [*(("big", n, 0) for n in range(19)), ("small", 5, 0), ("big", 60, 0)]
    found = {end: hitters for _, end, hitters in ask("Q6-4", "packets", rows)}
    assert sorted(found) == [60 * m for m in range(1, 12)]
    assert found.pop(60) == [{"value": "big", "count": 19}, {"value": "small", "count": 1}]
    assert found.pop(660) == [{"value": "big", "count": 1}]
    assert all(hitters == [{"value": "big", "count": 20}] for hitters in found.values())


# -- as Spark drives them ----------------------------------------------------------------------------------------------
@pytest.mark.parametrize("number", NUMBERS)
def test_shards_give_the_same_answers(number):
    here, spark = planned(number), SimulatedSpark()
    slack = 1 if number in RUN["IN_MINUTES"] else f"{RUN['SLACK']} seconds"
    there = {
        link: wr.stream(spark.frame([s.data[::2], s.data[1::2]]), progress="ts", slack=slack, row_num="n", name=link)
        for link, s in here.sources.items()
    }
    compare(spark.collect(wr.sql(QUERIES[number], **there)), oracle(here), f"{number} on Spark")
