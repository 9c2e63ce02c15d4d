"""What ``run``, ``explain`` and ``serve`` share: the query file, and sources given as NAME=FORMAT:PATH."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from windrow.api.columns import columns
from windrow.api.promise import Promise
from windrow.api.sources import read_arrow, read_parquet, stream
from windrow.api.stream import Stream
from windrow.cli import topics
from windrow.errors import DataError, QueryError, listing
from windrow.sql.punctuated import rule
from windrow.sql.select import sql

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.types import StructType

FILES = {"parquet": read_parquet, "arrow": read_arrow}
OURS = (*FILES, *topics.FORMATS)  # what is read without Spark
FORMATS = (*OURS, "spark-parquet", "json", "csv", "orc")

SOURCE_HELP = f"NAME=FORMAT:PATH; NAME=kafka:BROKERS/TOPIC. Formats: {', '.join(FORMATS)}. Repeatable."
QueryFile = Annotated[Path, typer.Argument(help="A file with one SQL query.", show_default=False)]
Sources = Annotated[
    list[str],
    typer.Option(
        "--source",
        help=f"NAME=FORMAT:PATH; formats: {', '.join(FORMATS)}. Topics: NAME=kafka:BROKERS/TOPIC. Repeatable.",
    ),
]
ProgressOption = Annotated[
    list[str], typer.Option("--progress", help="The progressing column; NAME=COLUMN for one source only. Repeatable.")
]
SlackOption = Annotated[
    list[str] | None,
    typer.Option("--slack", help="How late rows can be, such as '3 seconds'; NAME=LENGTH for one source. Repeatable."),
]
PunctuationOption = Annotated[
    list[str] | None,
    typer.Option(
        "--punctuation",
        help="A promise rule such as 'rows(100)', or a column of markers; NAME=RULE for one source. Repeatable.",
    ),
]
ParseOption = Annotated[
    list[str] | None,
    typer.Option("--parse", help="How to read text as progress values: iso8601 or a strptime format."),
]

SchemaOption = Annotated[
    list[str] | None,
    typer.Option(
        "--schema",
        help="The columns, such as 'ts TIMESTAMP, k STRING', of a topic, or if no file exists yet; @FILE for a schema "
        "in Avro; NAME=COLUMNS for one source.",
    ),
]
RowNumOption = Annotated[
    list[str] | None,
    typer.Option("--row-num", help="The column that numbers the rows, or PARTITION,POSITION; NAME=.. for one source."),
]
RowSlackOption = Annotated[
    list[str] | None, typer.Option("--row-slack", help="How far rows can be out of that order; NAME=.. for one source.")
]
MaxFilesOption = Annotated[int, typer.Option(min=1, help="Files per micro-batch and source.")]
ShardsOption = Annotated[int | None, typer.Option(min=1, help="Number of shards of the state; default: one per core.")]


DelayOption = Annotated[
    list[str] | None,
    typer.Option(
        "--delay",
        help="How long after its time a row arrives at most, such as '5 seconds'; NAME=LENGTH for one source.",
    ),
]
IdleAfterOption = Annotated[
    list[str] | None,
    typer.Option(
        "--idle-after",
        help="After how long without rows a source no longer holds the others back; NAME=LENGTH for one source.",
    ),
]


@dataclass(frozen=True)
class Options:
    """Per-source options as given on the command line."""

    progress: list[str]
    slack: list[str] | None = None
    punctuation: list[str] | None = None
    parse: list[str] | None = None
    row_num: list[str] | None = None
    row_slack: list[str] | None = None
    schema: list[str] | None = None
    delay: list[str] | None = None
    idle_after: list[str] | None = None

    def of(self, name: str) -> dict[str, Any]:
        """The options of one source."""
        progress = _pick(self.progress, name)
        if progress is None:
            raise QueryError(f"source {name!r} has no progressing column: give --progress COLUMN")
        return {
            "progress": progress,
            "slack": _pick(self.slack, name),
            "punctuation": _rule(_pick(self.punctuation, name)),
            "parse": _pick(self.parse, name),
            "row_num": _columns(_pick(self.row_num, name)),
            "row_slack": _whole(_pick(self.row_slack, name)),
            "delay": _pick(self.delay, name),
            "idle_after": _pick(self.idle_after, name),
        }


def _columns(given: str | None) -> tuple[str, ...] | None:
    return tuple(c.strip() for c in given.split(",")) if given else None


def _whole(given: str | None) -> int:
    if given is not None and not given.isdigit():
        raise QueryError(f"--row-slack {given!r} is not a number of rows")
    return int(given or 0)


def _rule(given: str | None) -> str | Promise | None:
    """A column of markers by its name, or a promise rule as SQL writes it after PUNCTUATED BY."""
    return rule(given) if given is not None and "(" in given else given


def _pick(values: list[str] | None, name: str) -> str | None:
    """The value for this source: ``NAME=value`` wins over a bare one."""
    found = None
    for value in values or []:
        owner, rest = _owned(value)
        if owner is None:
            found = found or value
        elif owner == name:
            return rest
    return found


def _owned(value: str) -> tuple[str | None, str]:
    """The NAME of NAME=value, if there is one; the = of an argument inside a call does not count."""
    owner, equals, rest = value.partition("=")
    return (owner, rest) if equals and "(" not in owner else (None, value)


def query(text: str, sources: list[str], options: Options, spark: SparkSession | None, max_files: int) -> Stream:
    """The query over streaming file sources. Formats that Windrow reads itself need no session."""
    return sql(text, **streams(sources, options, spark, max_files))


def query_of_now(text: str, sources: list[str], options: Options) -> Stream:
    """The query over the files that are there now, which needs no session."""
    for given in sources:
        name, kind, _ = parts(given)
        if kind not in OURS:
            raise QueryError(
                f"--source {given!r}: --analyze runs the query in this process, where {kind} files cannot be read. "
                f"Write some of the rows of {name} as one of: {listing(FILES)}"
            )
    return sql(text, **streams(sources, options, None, None))


def streams(
    sources: list[str], options: Options, spark: SparkSession | None, max_files: int | None
) -> dict[str, Stream]:
    """The file sources by name: streaming ones, or without ``max_files`` what is there now."""
    tables: dict[str, Stream] = {}
    names = {parts(given)[0] for given in sources}
    for option, values in (("--punctuation", options.punctuation), ("--schema", options.schema)):
        for value in values or []:
            if (owner := _owned(value)[0]) is not None and owner not in names:
                raise QueryError(f"{option} {value!r}: unknown source {owner!r}; available: {listing(names)}")
    for given in sources:
        name, kind, path = parts(given)
        if name in tables:
            raise QueryError(f"--source {given!r}: there is another source named {name!r}")
        given_options = options.of(name)
        schema = _pick(options.schema, name)
        if kind in topics.FORMATS:
            tables[name] = topics.source(kind, path, name, schema, max_files is not None, given_options)
        elif kind in FILES:
            read = FILES[kind]
            how: dict[str, Any] = {"streaming": max_files is not None, "max_files": max_files, "schema": schema}
            tables[name] = read(path, name=name, **how, **given_options)
        else:
            assert max_files is not None
            data = reader(spark, kind.removeprefix("spark-"), path, max_files, schema)
            tables[name] = stream(data, name=name, **given_options)
    return tables


def parts(given: str) -> tuple[str, str, str]:
    """NAME, FORMAT and PATH of a --source."""
    name, equals, rest = given.partition("=")
    kind, colon, path = rest.partition(":")
    if not (equals and colon and name and path):
        raise QueryError(f"--source {given!r} is not NAME=FORMAT:PATH, as in packets=parquet:data/packets")
    if kind not in FORMATS:
        raise QueryError(f"--source {given!r}: unknown format {kind!r}; available: {listing(FORMATS)}")
    return name, kind, path


def reader(spark: SparkSession | None, kind: str, path: str, max_files: int, schema: str | None = None) -> DataFrame:
    """A stream over a folder of files by Spark's own reader, with the given schema or that of the files."""
    if schema is not None:
        columns(schema)  # reports what is wrong with it; Spark reads it itself
        if "://" not in path and not Path(path).exists():
            raise DataError(f"folder {path} does not exist: Spark's reader of {kind} files needs it: create it first")
    types = _types_there(spark, kind, path) if schema is None else schema
    assert spark is not None
    options = {"header": "true", "maxFilesPerTrigger": str(max_files)}
    return spark.readStream.schema(types).options(**options).format(kind).load(path)


def _types_there(spark: SparkSession | None, kind: str, path: str) -> StructType:
    if "://" not in path and (not Path(path).exists() or not any(Path(path).rglob(f"*.{kind}*"))):
        raise DataError(f"{path} has no {kind} files to take the schema from: put at least one there, or give --schema")
    assert spark is not None
    return spark.read.option("header", "true").option("inferSchema", "true").format(kind).load(path).schema


@contextmanager
def spark_session(shards: int | None = None) -> Iterator[SparkSession]:
    """A session for one command; one that is already active is used and left running."""
    from pyspark.sql import SparkSession

    from windrow.hosts.spark.session import session

    before = SparkSession.getActiveSession()
    settings: dict[str, Any] = {} if shards is None else {"spark.sql.shuffle.partitions": shards}
    spark = session(log=log_file(), **settings)
    try:
        yield spark
    finally:
        if before is None:
            spark.stop()


@contextmanager
def session_if_needed(sources: list[str]) -> Iterator[SparkSession | None]:
    """A session if Spark has to read one of the sources; Windrow's own readers start no JVM."""
    if all(parts(given)[1] in OURS for given in sources):
        yield None
        return
    with spark_session() as spark:
        yield spark


def log_file() -> Path:
    """Where Spark's own messages go, apart from the output: $WINDROW_LOG, or a temporary file."""
    return Path(os.environ.get("WINDROW_LOG") or Path(tempfile.gettempdir()) / f"windrow-{os.getpid()}.log")


def read_query(path: Path) -> str:
    """The text of a query file."""
    if not path.is_file():
        raise QueryError(f"query file {path} does not exist")
    return path.read_text()
