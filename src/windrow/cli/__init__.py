"""The command ``windrow``: one file per subcommand."""

from __future__ import annotations

import sys

import typer

from windrow.cli import (
    add,
    bench,
    calibrate,
    checkpoint,
    demo,
    doctor,
    drop,
    explain,
    pause,
    resume,
    run,
    serve,
    tail,
    top,
    why,
)
from windrow.cli import list as list_queries
from windrow.errors import WindrowError

app = typer.Typer(
    name="windrow",
    help="Continuous window queries over out-of-order streams, on Apache Spark.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode="rich",
    context_settings={"help_option_names": ["-h", "--help"]},
)
app.command("run", epilog=run.EXAMPLES)(run.run)
app.command("explain", epilog=explain.EXAMPLES)(explain.explain)
app.command("top", epilog=top.EXAMPLES)(top.top)
app.command("why", epilog=why.EXAMPLES)(why.why)
app.command("serve", epilog=serve.EXAMPLES)(serve.serve)
app.command("add", epilog=add.EXAMPLES)(add.add)
app.command("list")(list_queries.list_queries)
app.command("tail", epilog=tail.EXAMPLES)(tail.tail)
app.command("pause")(pause.pause)
app.command("resume")(resume.resume)
app.command("drop")(drop.drop)
app.add_typer(checkpoint.app, name="checkpoint")
app.command("doctor")(doctor.doctor)
app.command("calibrate", epilog=calibrate.EXAMPLES)(calibrate.calibrate)
app.command("bench")(bench.bench)
app.add_typer(demo.app, name="demo")


def main() -> None:
    """Exit code 0: success. 1: an error in the query, the data or the machine. 2: wrong usage."""
    try:
        app()
    except WindrowError as error:
        typer.echo(f"error: {error}", err=True)
        sys.exit(1)
