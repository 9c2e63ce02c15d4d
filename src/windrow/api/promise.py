"""Promise rules: how a stream knows how far it is. What ``wr.stream(.., punctuation=..)`` takes besides a column."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import polars as pl

from windrow.api.given import function as function_of_seen
from windrow.api.given import (
    number,
    text,
    texts,
    whole,
)
from windrow.errors import QueryError, listing
from windrow.logical.nodes import Progress
from windrow.spec.lengths import Length, length
from windrow.spec.messages import PARTITION
from windrow.spec.rules import (
    ByFunction,
    BySource,
    Estimated,
    RowSlack,
    Seen,
)


@dataclass(frozen=True)
class Promise:
    """A promise rule; ``declare`` fits it to a source. ``name``: what SQL calls it, if it is the user's own."""

    declare: Callable[[Progress, Mapping[str, pl.DataType]], Progress]
    name: str | None = None


def ordered() -> Promise:
    """Rows come in order: each promises that none with a smaller value follows."""
    return Promise(lambda given, schema: replace(slack(0).declare(given, schema), ordered=True))


def slack(behind: Length) -> Promise:
    """No row is more than ``behind`` behind the greatest value before it. The same as ``slack=``.

    Where rows are read from messages, each partition of their topic is at most so far behind itself.
    """

    def declare(given: Progress, schema: Mapping[str, pl.DataType]) -> Progress:
        most = _length(behind, given, schema, "slack")
        if (messages := given.messages) is None:
            return replace(given, slack=most)
        if messages.partitions is None:
            raise QueryError(
                "slack of messages is about each partition of their topic, and it is not known how many there are: say "
                "partitions=.. (wr.read_kafka knows it itself)"
            )
        return replace(given, rule=BySource(messages.named()[PARTITION], most, messages.partitions))

    return Promise(declare)


def delay(most: Length) -> Promise:
    """A row arrives at most ``most`` after its progress value. The same as ``delay=``.

    The source needs no slack then: whenever it has given all it had, it promises the time it was, less the delay. In
    process, ``run.ask()`` tells it that it is so.

    >>> from datetime import datetime
    >>> from windrow.api.sources import stream
    >>> from windrow.api.functions import count
    >>> at = datetime(2024, 1, 1, 12, 0, 30)
    >>> s = stream([{"t": at}], "t", punctuation=delay("5 seconds"), name="s").window("1 minute").agg(n=count())
    >>> run = s.run(clock=lambda: datetime(2024, 1, 1, 12, 1, 5)).push("s", [{"t": at}])
    >>> run.results().height, run.ask().results()["n"].to_list()
    (0, [1])
    """
    return Promise(lambda given, schema: replace(given, delay=_delay(most, given, schema)))


def _delay(most: Length, given: Progress, schema: Mapping[str, pl.DataType]) -> int:
    if not schema[given.attribute].is_temporal():
        raise QueryError(
            f"delay compares {given.attribute!r} with the time of day, and it is of type {schema[given.attribute]}: "
            "convert it to a timestamp"
        )
    return length(most, pl.Datetime("us"), "delay", zero=True)


def rows(behind: int) -> Promise:
    """No row comes more than ``behind`` rows after one with a greater value.

    On Spark ``row_num=`` says in which order rows came; in process it is the order in which they are pushed.

    >>> from windrow.api.sources import stream
    >>> from windrow.api.functions import count
    >>> late = stream([{"t": 1}, {"t": 3}, {"t": 2}, {"t": 5}], progress="t", punctuation=rows(1), name="s")
    >>> run = late.window(range=2).agg(n=count()).run()
    >>> run.push("s", [{"t": 1}, {"t": 3}, {"t": 2}, {"t": 5}]).results().rows()      # all but the last row are settled
    [(0, 2, 1)]
    """
    behind = whole(behind, "slack in rows")
    if behind < 0:
        raise QueryError(f"slack in rows must be zero or more, not {behind}")

    def declare(given: Progress, _: Mapping[str, pl.DataType]) -> Progress:
        if len(given.row_num) > 1:
            raise QueryError("slack in rows needs one order of all rows: row_num= must be one column, not two")
        return replace(given, rule=RowSlack(behind, given.row_num[0] if given.row_num else None))

    return Promise(declare)


def partitions(column: str, count: int, slack: Length = 0) -> Promise:
    """Each partition of the source (a value of ``column``) is at most ``slack`` behind itself, and there are ``count``.

    The stream is as far as the slowest of them; before all have shown a row, nothing is promised about it. Queries that
    group by ``column``, and anything else, close the windows of a partition as that partition progresses: those of a
    quiet key close when its partition has progressed, even while other partitions are silent.

    >>> from windrow.api.sources import stream
    >>> from windrow.api.functions import count
    >>> s = stream([{"t": 0, "p": 1, "k": "x"}], "t", punctuation=partitions("p", 2), name="s")
    >>> run = s.window(5).group_by("p", "k").agg(n=count()).run()
    >>> run.push("s", [{"t": 1, "p": 1, "k": "quiet"}, {"t": 2, "p": 2, "k": "x"}]).results().rows()
    []
    >>> run.push("s", [{"t": 8, "p": 1, "k": "loud"}]).results().rows()
    [(1, 'quiet', 0, 5, 1)]
    """
    count, column = whole(count, "count"), text(column, "column")
    if count < 1:
        raise QueryError(f"a source must have at least one partition, not {count}")

    def declare(given: Progress, schema: Mapping[str, pl.DataType]) -> Progress:
        _has(schema, column, "partitions")
        return replace(given, rule=BySource(column, _length(slack, given, schema, "slack"), count))

    return Promise(declare)


def estimated(initial: Length, quantile: float = 0.999) -> Promise:
    """Slack estimated from the disorder so far: a share of ``quantile`` of the rows is in time, the others are late.

    It is ``initial`` until enough rows have come. For streams whose disorder is unknown: unlike a known slack, it does
    not guarantee that no row is late.
    """
    quantile = number(quantile, "quantile")
    if not 0 < quantile <= 1:
        raise QueryError(f"the quantile of rows in time must be above 0 and at most 1, not {quantile}")
    return Promise(
        lambda given, schema: replace(given, rule=Estimated(quantile, _length(initial, given, schema, "initial")))
    )


def markers(column: str, by: str | Sequence[str] = ()) -> Promise:
    """A column of promises: a row with a value there is not data, but promises that no later row has a smaller value.

    ``by``: columns in which a marker names the group it is about. The same as ``punctuation=`` and ``punctuation_by=``.
    """
    column, named = text(column, "column"), texts(by, "by")

    def declare(given: Progress, _: Mapping[str, pl.DataType]) -> Progress:
        if named and given.marker_by not in ((), named):
            raise QueryError(f"markers by {listing(named)}, but punctuation_by= names {listing(given.marker_by)}")
        return replace(given, marker=column, marker_by=named or given.marker_by)

    return Promise(declare)


def heartbeats(column: str, skew: Length = 0) -> Promise:
    """A column of clock readings: a row with a value there is not data, but what the source's clock showed.

    No later row is older than that by more than ``skew``.
    """
    column = text(column, "column")

    def declare(given: Progress, schema: Mapping[str, pl.DataType]) -> Progress:
        return replace(given, marker=column, skew=_length(skew, given, schema, "skew"))

    return Promise(declare)


def function(says: Callable[[Seen], Any], name: str | None = None) -> Promise:
    """A function of your own: after each batch it gets what has been seen, and returns a promise or None.

    It must depend on nothing else: every shard calls it, and a restart calls it again. On Spark it must be importable
    by the workers, or be defined in the main program. A query that gets it from ``wr.sql`` can use PUNCTUATED BY its
    ``name``, by default the name of the function.
    """
    function_of_seen(says, "says")
    if name is not None:
        text(name, "name")
    shown = name or str(getattr(says, "__qualname__", type(says).__name__))
    called = name or str(getattr(says, "__name__", type(says).__name__))
    return Promise(lambda given, schema: replace(given, rule=ByFunction(says, shown, schema[given.attribute])), called)


def _length(value: Length, given: Progress, schema: Mapping[str, pl.DataType], what: str) -> int:
    return length(value, schema[given.attribute], what, zero=True)


def _has(schema: Mapping[str, pl.DataType], column: str, what: str) -> None:
    if column not in schema:
        raise QueryError(f"{what}: {column!r} is not a column; available: {listing(schema)}")
