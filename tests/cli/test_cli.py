"""The command line, without Spark: usage, errors and exit codes; with Spark: one run of each command."""

import io
import json
from types import SimpleNamespace

import polars as pl
import pytest
from pyspark.errors import StreamingQueryException
from rich.console import Console
from typer.testing import CliRunner

import windrow as wr
from windrow.api import promise
from windrow.api.sources import stream
from windrow.cli import app, doctor
from windrow.cli.inputs import Options, parts, query
from windrow.cli.metrics import Published
from windrow.cli.run import _finish as finish
from windrow.cli.run import reason
from windrow.cli.warned import Shown
from windrow.errors import DataError, PlanError, QueryError, WindrowError
from windrow.hosts.reporting import part_report
from windrow.hosts.spark.exchange import REPORTS, SHARDS
from windrow.hosts.spark.kept import Kept
from windrow.hosts.spark.start import start
from windrow.testing.simulated import SimulatedSpark

run = CliRunner().invoke


def test_help_shows_an_example():
    assert "windrow run top.sql --source packets=parquet:" in run(app, ["run", "--help"]).output.replace("\n", " ")


def test_doctor_finds_everything_here():
    result = run(app, ["doctor", "--json"])
    found = json.loads(result.output)
    assert result.exit_code == 0
    assert found["ok"]
    assert {"Python", "Java", "pyspark", "pyarrow", "memory", "disk"} <= {f["what"] for f in found["findings"]}


def test_doctor_says_how_to_get_the_client_of_kafka_and_misses_it_not(monkeypatch):
    monkeypatch.setattr(doctor, "OPTIONAL", {"no-such-client": "for Kafka"})
    result = run(app, ["doctor", "--json"])
    [found] = [f for f in json.loads(result.output)["findings"] if f["what"] == "no-such-client"]
    assert result.exit_code == 0
    assert (found["ok"], found["advice"]) == (True, "for Kafka")


def test_doctor_says_what_is_missing_and_how_to_get_it(monkeypatch):
    monkeypatch.setattr(doctor, "PACKAGES", ("no-such-package",))
    monkeypatch.setattr(doctor.java, "find", lambda: None)
    result = run(app, ["doctor", "--json"])
    assert result.exit_code == 1
    missing = {f["what"]: f["advice"] for f in json.loads(result.output)["findings"] if not f["ok"]}
    assert "pip install no-such-package" in missing["no-such-package"]
    assert "missing" in run(app, ["doctor"]).output


def test_doctor_says_how_to_get_what_is_optional(monkeypatch):
    monkeypatch.setattr(doctor, "OPTIONAL", {"no-such-package": "for --sink x: pip install x"})
    [found] = [f for f in doctor.examine() if f.what == "no-such-package"]
    assert (found.found, found.ok, found.advice) == ("none", True, "for --sink x: pip install x")


@pytest.mark.parametrize("given", ["packets", "packets=parquet", "=parquet:x", "packets=xml:x"])
def test_a_source_that_is_not_name_format_path_is_refused(given):
    with pytest.raises(QueryError, match="--source"):
        parts(given)


def test_options_for_one_source_win_over_those_for_all():
    options = Options(["ts", "b=t"], slack=["3 seconds", "a=1 hour"])
    rest = {"punctuation": None, "parse": None, "row_num": None, "row_slack": 0, "delay": None, "idle_after": None}
    assert options.of("a") == {"progress": "ts", "slack": "1 hour", **rest}
    assert options.of("b")["progress"] == "t"


def test_a_source_over_an_empty_folder_declares_its_columns(tmp_path):
    def built(*schema, source=f"p=parquet:{tmp_path}"):
        return query("SELECT * FROM p", [source], Options(["t"], schema=list(schema)), None, 1)

    assert built("t BIGINT, k STRING").schema == {"t": pl.Int64(), "k": pl.String()}
    assert built("t BIGINT", "p=t INT").schema == {"t": pl.Int32()}
    with pytest.raises(DataError, match="schema="):
        built()
    with pytest.raises(QueryError, match="--schema 'q=t INT': unknown source 'q'"):
        built("q=t INT")
    with pytest.raises(QueryError, match="'t' is not a name and a type"):
        built("t", source=f"p=json:{tmp_path}")
    with pytest.raises(DataError, match=r"folder .*nope does not exist"):
        built("t INT", source=f"p=json:{tmp_path}/nope")
    with pytest.raises(DataError, match="--schema"):
        built(source=f"p=json:{tmp_path}")


def test_a_way_to_make_promises_is_read_as_in_sql():
    options = Options(["t"], punctuation=["partitions(p, 8, slack => 2)", "b=rows(100)", "c=m", "d = rows(3)"])
    empty = pl.DataFrame(schema={"t": pl.Int64, "p": pl.Int64, "m": pl.Int64})

    def made(name):
        return stream(empty, **options.of(name)).node.source

    assert made("a") == stream(empty, "t", punctuation=promise.partitions("p", 8, slack=2)).node.source
    assert made("b") == stream(empty, "t", punctuation=promise.rows(100)).node.source
    assert made("c") == stream(empty, "t", punctuation="m").node.source
    with pytest.raises(QueryError, match=r"must be an integer\n  rows\('x'\)\n       \^\^\^$"):
        stream(empty, **Options(["t"], punctuation=["rows('x')"]).of("a"))
    for odd in ("rows(", "(3)", "rows(3) rows(4)", "rows(3); rows(4)"):
        with pytest.raises(QueryError):
            Options(["t"], punctuation=[odd]).of("a")


def test_a_missing_query_file_is_an_error_with_exit_code_one():
    result = run(app, ["explain", "nope.sql", "--source", "p=parquet:x", "--progress", "ts"])
    assert isinstance(result.exception, WindrowError)
    assert "nope.sql" in str(result.exception)


def test_bench_lists_and_refuses():
    assert "spark-sliding" in run(app, ["bench", "--list"]).output
    assert isinstance(run(app, ["bench", "nope"]).exception, QueryError)


def test_our_reason_is_found_in_what_spark_wraps_around_it():
    wrapped = Exception("[STREAM_FAILED] x\n  File y\nwindrow.errors.CheckpointError: shards:\n  now: 3\n SQLSTATE: 1")
    assert reason(wrapped) == "shards:\n  now: 3"
    assert reason(Exception("other")) == "other"


@pytest.mark.spark
def test_explain_and_run_over_files(spark, tmp_path):
    (tmp_path / "p").mkdir()
    rows = {"ts": [1, 2, 11, None, 30], "k": ["a", "b", "a", "a", "b"]}
    pl.DataFrame(rows).write_parquet(tmp_path / "p" / "0.parquet")
    (tmp_path / "q.sql").write_text("SELECT k, count(*) AS n FROM p [RANGE 10, SLIDE 10, WA ts] GROUP BY k")
    common = [str(tmp_path / "q.sql"), "--source", f"p=parquet:{tmp_path / 'p'}", "--progress", "ts", "--slack", "5"]
    explained = run(app, ["explain", *common])
    assert explained.exit_code == 0, explained.output
    for words in ("map side", "exchange by hash of k", "shard (transformWithState"):
        assert words in explained.output
    out, state, bad = tmp_path / "out.jsonl", tmp_path / "state", tmp_path / "bad"
    where = ["--sink", f"jsonl:{out}", "--checkpoint", str(state), "--bad-rows", f"delta:{bad}", "--once", "--json"]
    result = run(app, ["run", *common, *where])
    assert result.exit_code == 0, result.output
    totals = json.loads(result.stdout.strip().split("\n")[-1])
    assert (totals["rows_in"], totals["rows_bad"], totals["rows_late"], totals["rows_out"]) == (5, 1, 0, 3)
    rows = [json.loads(line) for line in out.read_text().splitlines()]
    assert sorted((r["k"], r["window_end"], r["n"]) for r in rows) == [("a", 10, 1), ("a", 20, 1), ("b", 10, 1)]
    assert pl.read_delta(str(bad))["reason"].to_list() == ["the progress value is NULL"]
    assert "hint" not in result.output


class Reported:
    """A query of Spark whose micro-batches had these reports."""

    def __init__(self, reports):
        self.recentProgress = [
            SimpleNamespace(
                batchId=n, timestamp=f"2024-01-01T10:00:{n:02}.000Z", observedMetrics={REPORTS: {SHARDS: [r]}}
            )
            for n, r in enumerate(reports)
        ]


def test_warnings_are_lines_on_standard_error_and_come_once(tmp_path, monkeypatch):
    source = wr.stream([{"t": 0, "x": 0}], "t", slack=2, name="s").where("x > 5")
    running = source.window(10_000).agg(n=wr.count()).run()
    running.push("s", [{"t": t, "x": 1} for t in range(1500)])
    report = json.dumps({**part_of(running), "outline": running.known.outline.to_json()})
    written = []
    monkeypatch.setattr(Kept, "say", lambda self, keys: written.append(keys))
    streaming = SimulatedSpark().stream({"t": pl.Int64(), "x": pl.Int64()})
    query = wr.stream(streaming, "t", slack=0, name="s").where("x > 5").window(10_000).agg(n=wr.count())
    out = io.StringIO()
    shown = Shown(query, Kept(None, str(tmp_path), "q"), Console(file=out, width=40))
    shown.update(Reported([report]))
    shown.update(Reported([report, report]))
    shown.end()
    hint, warning = out.getvalue().splitlines()
    assert hint.startswith("hint: Source `s` has a slack of zero")
    assert warning.startswith("warning: The condition x > 5 has removed all 1,500 rows of source `s`.")
    assert written == [["slack_of_zero s:t"], ["nothing_passes s", "slack_of_zero s:t"]]


def part_of(running):
    return part_report(running.graph, running.known.outline, running.known.total, None)


@pytest.mark.spark
def test_promises_by_the_command_line_by_the_query_or_not_at_all(spark, tmp_path):
    (tmp_path / "p").mkdir()
    rows = {"ts": [1, None, None, 12], "m": [None, 20, 15, None]}
    pl.DataFrame(rows).write_parquet(tmp_path / "p" / "0.parquet")
    plain, own = tmp_path / "plain.sql", tmp_path / "own.sql"
    plain.write_text("SELECT count(*) AS n FROM p [RANGE 10, WA ts]")
    own.write_text("SELECT count(*) AS n FROM p PUNCTUATED BY markers(m) [RANGE 10, WA ts]")
    source = ["--source", f"p=parquet:{tmp_path / 'p'}", "--progress", "ts"]
    given = ["--punctuation", "p=markers(m)"]
    by_option = run(app, ["explain", str(plain), *source, *given])
    assert by_option.exit_code == 0, by_option.output
    assert by_option.output == run(app, ["explain", str(own), *source]).output
    done = run(app, ["run", str(plain), *source, *given, "--sink", f"jsonl:{tmp_path / 'out'}", "--once", "--json"])
    assert done.exit_code == 0, done.output
    totals = json.loads(done.stdout.strip().split("\n")[-1])
    assert (totals["rows_in"], totals["rows_out"], totals["promises_ignored"]) == (4, 2, 1)
    assert "1 promises ignored" in done.output
    none = run(app, ["run", str(plain), *source, "--once"]).exception
    assert isinstance(none, PlanError)
    assert "--punctuation 'rows(100)'" in str(none)
    twice = run(app, ["explain", str(own), *source, "--slack", "3"]).exception
    assert isinstance(twice, QueryError)
    assert "would be a second promise rule" in str(twice)
    for odd in ("q=rows(3)", "q=m"):
        wrong = run(app, ["explain", str(plain), *source, "--punctuation", odd]).exception
        assert isinstance(wrong, QueryError)
        assert "unknown source 'q'; available: p" in str(wrong)


def test_a_machine_that_stays_too_busy_is_told_what_to_do():
    class Slow:
        isActive, recentProgress = False, ()  # noqa: N815

        def exception(self):
            return StreamingQueryException("[STREAM_FAILED] Python worker failed to connect back. SQLSTATE: XXKST")

        def awaitTermination(self):  # noqa: N802
            raise self.exception()

        def stop(self):
            pass

    started = [("results", start(SimpleNamespace(start=Slow), lambda line: None))]
    with pytest.raises(WindrowError, match="this machine is too busy"):
        finish(started, Console(stderr=True), SimpleNamespace(update=lambda _: None, end=lambda: None), Published())


# -- explain --analyze -------------------------------------------------------------------------------------------------
@pytest.fixture
def analyzable(tmp_path):
    """The arguments of a query over 3,000 rows."""
    (tmp_path / "p").mkdir()
    frame = pl.DataFrame({"ts": range(3000), "k": [i % 7 for i in range(3000)]})
    frame.write_parquet(tmp_path / "p" / "0.parquet")
    (tmp_path / "q.sql").write_text("SELECT k, count(*) AS n FROM p [RANGE 100, SLIDE 50, WA ts] GROUP BY k")
    source = f"p=parquet:{tmp_path / 'p'}"
    return ["explain", str(tmp_path / "q.sql"), "--source", source, "--progress", "ts", "--slack", "5"]


def test_explain_analyze_shows_what_was_measured_beside_what_was_estimated(analyzable):
    result = run(app, [*analyzable, "--analyze"])
    assert result.exit_code == 0, result.output
    plan, table = result.stdout.split("analysis")[:2]
    assert "Physical plan, in this process" in plan
    assert "cost of the plan" in plan
    for name in ("source p", "stage 0", "paned", "result", "the plan"):
        assert name in table
    [whole] = [line for line in table.split("\n") if "the plan" in line]
    assert whole.count("3,000") == 2  # as estimated, and as measured
    assert "3,000 rows of p, at most 10,000 of each at a time" in result.stdout


def test_explain_analyze_as_json_and_with_a_limit(analyzable):
    result = run(app, [*analyzable, "--analyze", "--limit", "1200", "--json"])
    assert result.exit_code == 0, result.output
    found = json.loads(result.stdout)
    assert (found["rows"], found["limited"], found["basis"]) == ({"p": 1200}, ["p"], "measured")
    whole = found["parts"][-1]
    assert (whole["name"], whole["rows_in"]) == ("the plan", 1200)
    assert whole["micros"] > 0
    assert whole["estimated_micros"] > 0


@pytest.mark.parametrize(
    ("more", "message"),
    [
        (["--json"], "--json needs --analyze"),
        (["--limit", "5"], "--limit needs --analyze"),
        (["--analyze", "--shards", "2"], "leave out --shards and --checkpoint"),
        (["--analyze", "--checkpoint", "state"], "leave out --shards and --checkpoint"),
    ],
)
def test_options_of_explain_without_an_effect_are_refused(analyzable, more, message):
    error = run(app, [*analyzable, *more]).exception
    assert isinstance(error, QueryError)
    assert message in str(error)


def test_files_that_only_spark_reads_cannot_be_analyzed(analyzable):
    other = [each.replace("p=parquet:", "p=csv:") for each in analyzable]
    error = run(app, [*other, "--analyze"]).exception
    assert isinstance(error, QueryError)
    assert "--analyze runs the query in this process" in str(error)
    assert "arrow, parquet" in str(error)
    assert run(app, [*analyzable, "--analyze", "--limit", "0"]).exit_code == 2
