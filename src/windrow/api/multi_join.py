"""``wr.multi_join``: results with one row of each of several streams."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any, Literal

from windrow.api import given
from windrow.api.as_of import late_policies, time_type
from windrow.api.functions import Udf
from windrow.api.joins import IN_ROWS
from windrow.api.predicates import condition
from windrow.api.query import merged
from windrow.api.resolved import resolved
from windrow.api.stream import Stream
from windrow.errors import QueryError, listing
from windrow.logical import expressions
from windrow.logical.checked_multi_join import all_columns, multi_joined
from windrow.logical.nodes import WAYS, Node, Scan
from windrow.spec.lengths import Length, length
from windrow.spec.spread import RingOptions

Where = str | Udf | Callable[..., Any]


def multi_join(
    *streams: Stream,
    on: str | Sequence[str] | None = None,
    within: Length | Mapping[str, Length],
    where: Where | Sequence[Where] | None = None,
    using: str | None = None,
    late: str | Sequence[str] = "drop",
    alpha: float | None = None,
    cost: float | None = None,
    nodes: int | Literal["auto"] | None = None,
    options: RingOptions | None = None,
) -> Stream:
    """One row of each stream, with equal keys, each still held when the last of them comes.

    ``within``: how long rows are held, one length for all streams or one for each by its name: rows are a result if
    the last of their times is less than that after each of them. "100 rows" holds the last 100 rows of a stream before
    the row that comes. ``on``: columns or SQL expressions that must be equal in all streams; or none. ``where``: what
    else must be true, one condition or several: a SQL expression over the columns of the result, a ``wr.udf`` that
    returns BOOLEAN, or a function of rows, ``lambda a, b, c: a.x < b.y + c.z``, which takes one row of each stream, or
    of those that its parameters name. A stream is called as its (first) source; a second one of that name has its place
    behind it (``s_2``). A column whose name is taken gets the name of its stream as a suffix.

    ``using``: "multi", one operator, in which a row probes one stream after another, in an order that follows what is
    measured; "pipeline", binary joins one after another; without it, whichever costs less. Results come in order with
    "sync-filter" (rows wait), "filter-order" (results wait) and "adaptive", which changes between them: ``alpha`` and
    ``cost`` are as in ``Stream.join``. "ring" is for conditions that take long: state is spread over ``nodes`` by time,
    and rows go round (``nodes="auto"``: as many as cost least). On Spark each node is a task. "atr" and "ctr" spread
    copies of the state. ``options``: ``wr.RingOptions(..)``. ``late``: what happens to late rows, "drop", "side" or
    "error", for all streams or one for each.

    Results have the times of all rows and progress on each of them, and on ``greatest(..)`` or ``least(..)`` of some.

    >>> import windrow as wr
    >>> orders = wr.stream([{"t": 1, "id": 7}], progress="t", name="orders")
    >>> payments = wr.stream([{"t": 4, "id": 7}, {"t": 5, "id": 8}], progress="t", name="payments")
    >>> parcels = wr.stream([{"t": 6, "id": 7}], progress="t", name="parcels")
    >>> found = wr.multi_join(orders, payments, parcels, on="id", within={"orders": 10, "payments": 5, "parcels": 5})
    >>> found.select("id", "t", "t_payments", "t_parcels").collect().rows()
    [(7, 1, 4, 6)]
    """
    if odd := [each for each in streams if not isinstance(each, Stream)]:
        raise QueryError(f"multi_join() takes streams, not {odd[0]!r}")
    if len(streams) < 2:
        raise QueryError(f"multi_join() takes two streams or more, not {len(streams)}")
    if using is not None:
        given.one_of(using, "using", WAYS)
    members = [each.node for each in streams]
    names = _names(members)
    keys = () if on is None else given.texts(on, "on")
    by_key = [tuple(resolved(member, key) for key in keys) for member in members]
    ranges, by_rows = zip(*_ranges(members, names, within), strict=True)
    texts, calls = _conditions(where)
    columns = all_columns(members, names)
    make = partial(
        multi_joined,
        members,
        names,
        by_key,
        ranges,
        tests=[condition(each, columns, names) for each in calls],
        late=late_policies(late, len(members)),
        using="ring" if nodes is not None and using is None else using,
        alpha=None if alpha is None else given.number(alpha, "alpha"),
        cost=None if cost is None else given.number(cost, "cost"),
        by_rows=by_rows,
        nodes=_nodes(nodes),
        options=_options(options, members),
    )
    node = make()
    if texts:
        text = " AND ".join(f"({each})" for each in texts) if len(texts) > 1 else texts[0]
        tree = expressions.resolve(expressions.column_or(text, node.schema), node.schema, text)
        node = make(None, tree, text)
    return Stream(node, merged(streams))


def _conditions(where: Where | Sequence[Where] | None) -> tuple[list[str], list[Udf | Callable[..., Any]]]:
    """Those in SQL, and the functions."""
    listed: list[Any] = list(where) if isinstance(where, (list, tuple)) else [] if where is None else [where]
    if odd := [each for each in listed if not isinstance(each, (str, Udf)) and not callable(each)]:
        raise QueryError(f"where={odd[0]!r} must be a SQL expression, a wr.udf, a function of rows, or a list of these")
    return [each for each in listed if isinstance(each, str)], [each for each in listed if not isinstance(each, str)]


def _nodes(nodes: object) -> int | None:
    if nodes is None or nodes == "auto":
        return None
    if not isinstance(nodes, int) or isinstance(nodes, bool) or nodes < 1:
        raise QueryError(f"nodes={nodes!r} must be a whole number, 1 or more, or 'auto'")
    return nodes


def _options(options: object, members: Sequence[Node]) -> RingOptions | None:
    """The options with the length of a segment in units of progress."""
    if options is None:
        return None
    if not isinstance(options, RingOptions):
        raise QueryError(f"options={options!r} must be wr.RingOptions(..)")
    if options.segment is None:
        return options
    return replace(options, segment=length(options.segment, time_type(members[0]), "segment"))


def _names(members: Sequence[Node]) -> list[str]:
    """What the streams are called, each once."""
    found: list[str] = []
    for place, member in enumerate(members, 1):
        source = next(scan.name for scan in member.walk() if isinstance(scan, Scan))
        found.append(source if source not in found else f"{source}_{place}")
    return found


def _ranges(
    members: Sequence[Node], names: Sequence[str], within: Length | Mapping[str, Length]
) -> list[tuple[int, bool]]:
    """How long rows of each stream are held, and whether that is a number of rows."""
    if not isinstance(within, Mapping):
        return [_held(within, member, "within") for member in members]
    if unknown := [name for name in within if name not in names]:
        raise QueryError(f"within={dict(within)!r} names {listing(unknown)}; the streams are {listing(names)}")
    if missing := [name for name in names if name not in within]:
        raise QueryError(
            f"within={dict(within)!r} does not say how long rows of {listing(missing)} are held, and they would be "
            "held forever: give a length for each stream, or one for all"
        )
    return [_held(within[name], member, f"within of {name}") for name, member in zip(names, members, strict=True)]


def _held(given: Length, member: Node, what: str) -> tuple[int, bool]:
    if isinstance(given, str) and (rows := IN_ROWS.fullmatch(given)) is not None:
        if int(rows[1]) < 1:
            raise QueryError(f"{what} must be 1 row or more, not {given}")
        return int(rows[1]), True
    return length(given, time_type(member), what), False
