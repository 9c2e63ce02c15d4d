"""The packing line of Bai et al., section 5 (examples/rfid): by hand, against the oracle, and as Spark drives it."""

import re
import runpy
from pathlib import Path

import pytest

import windrow as wr
from windrow.testing import compare, oracle, replay
from windrow.testing.simulated import SimulatedSpark

FOLDER = Path(__file__).parents[1] / "examples" / "rfid"
RUN = runpy.run_path(str(FOLDER / "run.py"), run_name="rfid")
QUERIES: dict[str, str] = RUN["QUERIES"]
EXPECTED = {
    "containment": {
        "tin": None,  # before the first case of its line
        "cup": "C1",
        "jug": "C1",
        "pot": "C3",  # read in the same second
        "pan": "C2",
        "lid": "C4",
        "can": "C5",
        "mug": "C4",
    },
    "one_per_case": {
        "tin": None,
        "cup": "C1",
        "jug": None,  # the next case comes later
        "pot": "C3",
        "pan": "C2",
        "lid": "C4",
        "can": "C5",
        "mug": None,
    },
}


@pytest.mark.parametrize("name", QUERIES)
@pytest.mark.parametrize("way", ["in_sql", "in_python"])
def test_products_are_in_their_cases_whatever_arrives_first(name, way):
    for seed in range(5):
        assert dict(RUN["answer"](RUN[way](name, RUN["readers"](seed)))) == EXPECTED[name]


@pytest.mark.parametrize("name", QUERIES)
@pytest.mark.parametrize("way", ["in_sql", "in_python"])
def test_a_query_gives_what_it_means_under_any_arrival(name, way):
    query = RUN[way](name, RUN["readers"]())
    compare(query.collect(), oracle(query), name)
    replay(query, runs=5)


@pytest.mark.parametrize("name", QUERIES)
def test_shards_give_the_same_answers(name):
    here, spark = RUN["in_sql"](name, RUN["readers"]()), SimulatedSpark()
    there = {
        reader: wr.stream(spark.frame([s.data[::2], s.data[1::2]]), progress="ts", slack="30 seconds", name=reader)
        for reader, s in here.sources.items()
    }
    compare(spark.collect(RUN["in_sql"](name, there)), oracle(here), f"{name} on Spark")


def test_the_script_prints_who_is_where(capsys):
    RUN["main"]()
    first, second = capsys.readouterr().out.splitlines()
    assert first.startswith("containment: tin in no case, cup in C1, jug in C1,")
    assert second.startswith("one_per_case: tin in no case, cup in C1, jug in no case,")


@pytest.mark.parametrize("name", QUERIES)
def test_a_file_begins_with_its_sentence_and_the_table_has_it(name):
    lines = QUERIES[name].splitlines()
    sentence = " ".join(line.removeprefix("-- ") for line in lines[: lines.index("--")])
    rows = re.findall(r"^\| \[(.+?)\]\((.+?)\) \| (.+?) \|", (FOLDER / "README.md").read_text(), re.MULTILINE)
    assert (name, f"{name}.sql", sentence) in rows
