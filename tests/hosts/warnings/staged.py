"""Staged runs for tests of warnings: rows in micro-batches, each with a time on the wall clock."""

from dataclasses import replace
from datetime import datetime, timedelta

import polars as pl

import windrow as wr
from windrow.hosts.warnings import Watching

BEGIN = datetime(2024, 1, 1, 10)
COLUMNS = {"ts": pl.Datetime("us"), "k": pl.String(), "x": pl.Int64()}


def micros(at):
    return (at - datetime(1970, 1, 1)) // timedelta(microseconds=1)


def rows(*times, x=1):
    return pl.DataFrame([(at, f"k{i % 3}", x) for i, at in enumerate(times)], schema=COLUMNS, orient="row")


def spread(start, length, count):
    """Times evenly spread over a length."""
    return [start + length * i / count for i in range(count)]


def source(name="s", slack="2 seconds", **more):
    return wr.stream(rows(BEGIN), "ts", slack=slack, name=name, **more)


def said(query, batches, every=timedelta(seconds=1), begin=BEGIN, endless=(), final=False):
    """The warnings that a query gives: (micro-batch, warning). ``batches``: of each micro-batch the rows by source;
    micro-batches begin as long after ``begin`` as ``every`` says.
    """
    run, watching, times, found = query.run(), Watching(endless), {}, []
    for number, pushed in enumerate(batches):
        for name, frame in pushed.items():
            times[run.known.total.batch + 1] = micros(begin + number * every)
            run.push(name, frame)
        report = replace(run.report(), times=dict(times))
        found += [(number, each) for each in watching.news(report, final and number == len(batches) - 1)]
    return found


def rules(found):
    return [each.rule for _, each in found]
