"""Delta Lake tables, exactly once: Spark writes the files of a micro-batch, and one commit of the table takes them in.

The commit is made by the package ``deltalake``, which needs no JVM: no Delta Lake is built for Spark 4.3
(decision 0043).
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any
from uuid import uuid4

from windrow.errors import CheckpointError, DataError, QueryError, listing

if TYPE_CHECKING:
    from deltalake import DeltaTable
    from pyspark.sql import DataFrame

PACKAGE = "deltalake"
QUERY = "sql.streaming.queryId"  # where Spark tells the driver which streaming query it is at
UNDERSTOOD = {"appendOnly", "invariants", "timestampNtz", "deletionVectors", "changeDataFeed"}  # or do not concern us
NOT_IN_NAMES = " ,;{}()\n\t="  # Delta's own rule for names of columns


class Delta:
    """For ``foreachBatch``: appends each micro-batch to the Delta table in a folder, once.

    The commit that adds the files of a micro-batch also records the query and the number of the micro-batch, under the
    names that Delta's own sink uses. So a micro-batch that runs again finds that it is in the table, and one that
    was killed before its commit is not: its files belong to nothing until VACUUM deletes them.

    ``app`` is the name of the query in that record; without it, it is the id that Spark keeps in the checkpoint.
    """

    def __init__(self, path: str | Path, app: str | None = None) -> None:
        if "://" in str(path):
            raise QueryError(
                f"delta:{path} is not a folder: Spark writes the files and this process lists and commits them, so the "
                "table must be in a folder that both reach, local or mounted"
            )
        check_installed()
        self.path = Path(path)
        self.app = app

    def __call__(self, frame: DataFrame, batch: int) -> None:
        app = self.app or running(frame)
        table = self.table(frame.schema.json())
        if has(table, app, batch):
            # Whoever wrote it died before Spark committed the micro-batch. Its state must be written all the same.
            frame.write.format("noop").mode("overwrite").save()
            return
        # For this query only: Spark's 96-bit timestamps are not what the table declares.
        frame.sparkSession.conf.set("spark.sql.parquet.outputTimestampType", "TIMESTAMP_MICROS")
        attempt = self.attempt(batch)
        frame.write.parquet(str(attempt))
        self.commit(table, app, batch, attempt)

    def attempt(self, batch: int) -> Path:
        """A new folder for the files of a micro-batch, which no other attempt at it knows."""
        return self.path.absolute() / f"batch-{batch:08d}-{uuid4().hex}"

    def table(self, schema: str) -> DeltaTable:
        """The table as it is now, with these columns; a new one if there is none."""
        from deltalake import DeltaTable, Schema
        from deltalake.exceptions import TableNotFoundError

        check_names([field["name"] for field in json.loads(schema)["fields"]])
        try:
            table = DeltaTable(self.path)
        except TableNotFoundError:
            return DeltaTable.create(self.path, Schema.from_json(nullable(schema)), mode="ignore")
        self._check(table, Schema.from_json(schema).to_json())
        return table

    def commit(self, table: DeltaTable, app: str, batch: int, attempt: Path) -> None:
        """Make the rows that were written to the folder ``attempt`` part of the table, all at once and only once.

        A micro-batch without rows needs no commit. If the query has committed since ``table`` was read, this fails.
        """
        from deltalake import CommitProperties, Transaction

        added = [self._added(file, rows) for file in sorted(attempt.iterdir()) if (rows := kept(file))]
        if not added:
            attempt.rmdir()
            return
        record = CommitProperties(app_transactions=[Transaction(app, batch)])
        table.create_write_transaction(added, mode="append", schema=table.schema(), commit_properties=record)

    def _added(self, file: Path, rows: int) -> Any:
        from deltalake.transaction import AddAction

        found = file.stat()
        where = f"{file.parent.name}/{file.name}"
        return AddAction(where, found.st_size, {}, int(found.st_mtime * 1000), True, json.dumps({"numRecords": rows}))

    def _check(self, table: DeltaTable, schema: str) -> None:
        """Refuse a table to which these rows, or files written by Spark as they are, cannot be added."""
        there, ours = columns(table.schema().to_json()), columns(schema)
        if there != ours:
            raise DataError(
                f"the Delta table {self.path} has other columns than the query: {_listed(there)} there, and "
                f"{_listed(ours)} here; select and CAST them to those of the table, or use another folder"
            )
        if partitions := table.metadata().partition_columns:
            raise DataError(
                f"the Delta table {self.path} is partitioned by {listing(partitions)}, which this sink does not do: "
                "use another folder"
            )
        if rules := beyond(table):
            raise DataError(
                f"the Delta table {self.path} has rules that this sink does not know how to keep: {listing(rules)}; "
                "use another folder, and INSERT or MERGE from there"
            )


def beyond(table: DeltaTable) -> set[str]:
    """What a table demands of its writers beyond adding files: features, checks, and values computed by the writer."""
    configuration = table.metadata().configuration
    checks = {name for name in configuration if name.startswith("delta.constraints.")}
    mapped = {"delta.columnMapping.mode"} if configuration.get("delta.columnMapping.mode", "none") != "none" else set()
    fields = json.loads(table.schema().to_json())["fields"]
    required = {f"NOT NULL of {f['name']}" for f in fields if _allowing(f) != f}
    computed = {f"{key} of {f['name']}" for f in fields for key in f["metadata"] if key.startswith("delta.")}
    return (set(table.protocol().writer_features or []) - UNDERSTOOD) | checks | mapped | computed | required


def check_installed() -> None:
    """The package is optional."""
    try:
        import deltalake  # noqa: F401
    except ImportError:
        raise QueryError(f"the sink delta needs the package {PACKAGE}: pip install 'windrow[delta]'") from None


def check_names(names: list[str]) -> None:
    """Delta's readers refuse tables with other names."""
    for name in names:
        if any(c in NOT_IN_NAMES for c in name):
            raise QueryError(f"column {name!r} cannot be in a Delta table because of its name: give it another with AS")


def has(table: DeltaTable, app: str, batch: int) -> bool:
    """Whether the table holds this micro-batch, which must be the last of its query if it does."""
    last = table.transaction_version(app)
    if last is not None and batch < last:
        raise CheckpointError(
            f"the Delta table {table.table_uri} already holds micro-batch {last} of this query and the query is at "
            f"{batch}: the checkpoint is older than the table; use a new table, or the checkpoint that wrote this one"
        )
    return last == batch


def kept(file: Path) -> int:
    """The rows of a file that Spark wrote; deletes those without rows: marks, checksums and empty files."""
    from pyarrow import parquet

    rows = int(parquet.read_metadata(file).num_rows) if file.suffix == ".parquet" else 0
    if not rows:
        file.unlink()
    return rows


def columns(schema: str) -> dict[str, str]:
    """Names and types; whether a column may be NULL makes no difference to what is appended."""
    return {field["name"]: json.dumps(_types(field["type"])) for field in json.loads(schema)["fields"]}


def nullable(schema: str) -> str:
    """The same columns, all of which may be NULL: what Spark knows of one query need not hold for the next."""
    return json.dumps(_allowing(json.loads(schema)))


def _allowing(given: Any) -> Any:
    if isinstance(given, list):
        return [_allowing(each) for each in given]
    if not isinstance(given, dict):
        return given
    free = dict.fromkeys({"nullable", "containsNull", "valueContainsNull"} & set(given), True)
    return {**{k: v if k == "metadata" else _allowing(v) for k, v in given.items()}, **free}


def _types(given: Any) -> Any:
    if not isinstance(given, dict):
        return given
    free = {k: v for k, v in given.items() if k not in ("containsNull", "valueContainsNull", "fields")}
    inner = {k: _types(v) for k, v in free.items()}
    return {**inner, "fields": [(f["name"], _types(f["type"])) for f in given.get("fields", [])]}


def _listed(found: dict[str, str]) -> str:
    return ", ".join(f"{name} {kind.strip(chr(34))}" for name, kind in found.items())


def running(frame: DataFrame) -> str:
    """The id of the streaming query whose micro-batch this is."""
    found: str | None = frame.sparkSession.sparkContext.getLocalProperty(QUERY)
    if found is None:
        raise QueryError("Delta(path) outside of foreachBatch needs app=: the name of the query in the table's record")
    return found
