"""``wr.multi_join``: results with one row of each of several streams."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial

from windrow.api import given
from windrow.api.as_of import late_policies, time_type
from windrow.api.functions import Udf
from windrow.api.query import merged
from windrow.api.resolved import resolved
from windrow.api.stream import Stream
from windrow.errors import QueryError, listing
from windrow.logical import expressions
from windrow.logical.checked_multi_join import multi_joined
from windrow.logical.nodes import WAYS, Node, Scan
from windrow.spec.lengths import Length, length


def multi_join(
    *streams: Stream,
    on: str | Sequence[str] | None = None,
    within: Length | Mapping[str, Length],
    where: str | Udf | None = None,
    using: str | None = None,
    late: str | Sequence[str] = "drop",
    alpha: float | None = None,
    cost: float | None = None,
) -> Stream:
    """One row of each stream, with equal keys, each still held when the last of them comes.

    ``within``: how long rows are held, one length for all streams or one for each by its name: rows are a result if
    the last of their times is less than that after each of them. ``on``: columns or SQL expressions that must be equal
    in all streams; or none. ``where``: what else must be true, a SQL expression over the columns of the result or a
    ``wr.udf`` that returns BOOLEAN. A stream is called as its (first) source; a second one of that name has its place
    behind it (``s_2``). A column whose name is taken gets the name of its stream as a suffix.

    ``using``: "multi", one operator, in which a row probes one stream after another, in an order that follows what is
    measured; "pipeline", binary joins one after another; without it, whichever costs less. Results come in order with
    "sync-filter" (rows wait), "filter-order" (results wait) and "adaptive", which changes between them: ``alpha`` and
    ``cost`` are as in ``Stream.join``. ``late``: what happens to late rows, "drop", "side" or "error", for all streams
    or one for each.

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
    ranges = _ranges(members, names, within)
    policies = late_policies(late, len(members))
    test = where.function if isinstance(where, Udf) else None
    make = partial(multi_joined, members, names, by_key, ranges, late=policies, using=using)
    make = partial(
        make,
        alpha=None if alpha is None else given.number(alpha, "alpha"),
        cost=None if cost is None else given.number(cost, "cost"),
    )
    node = make(test=test)
    if where is not None and test is None:
        text = given.text(where, "where")
        tree = expressions.resolve(expressions.column_or(text, node.schema), node.schema, text)
        node = make(None, tree, text)
    return Stream(node, merged(streams))


def _names(members: Sequence[Node]) -> list[str]:
    """What the streams are called, each once."""
    found: list[str] = []
    for place, member in enumerate(members, 1):
        source = next(scan.name for scan in member.walk() if isinstance(scan, Scan))
        found.append(source if source not in found else f"{source}_{place}")
    return found


def _ranges(members: Sequence[Node], names: Sequence[str], within: Length | Mapping[str, Length]) -> list[int]:
    if not isinstance(within, Mapping):
        return [length(within, time_type(member), "within") for member in members]
    if unknown := [name for name in within if name not in names]:
        raise QueryError(f"within={dict(within)!r} names {listing(unknown)}; the streams are {listing(names)}")
    if missing := [name for name in names if name not in within]:
        raise QueryError(
            f"within={dict(within)!r} does not say how long rows of {listing(missing)} are held, and they would be "
            "held forever: give a length for each stream, or one for all"
        )
    return [length(within[name], time_type(m), f"within of {name}") for name, m in zip(names, members, strict=True)]
