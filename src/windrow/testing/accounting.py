"""Accounting: every row that was read is in a result, was late, or is bad. Nothing is lost, nothing counts twice.

Of a join or a sequence: it found a partner, left without one, or waits.
"""

from __future__ import annotations

from collections.abc import Mapping

import polars as pl

from windrow.api.stream import Stream
from windrow.logical.nodes import AsOf, Join, MultiJoin, Node, Project, Scan, Sequence, Union, WindowAggregate
from windrow.spec.names import VERSION
from windrow.testing.mismatch import Mismatch
from windrow.windows import Sliding


def accounted(
    counts: Mapping[str, int],
    results: pl.DataFrame,
    column: str = "n",
    *,
    windows: int = 1,
    markers: int = 0,
    where: str = "",
) -> None:
    """Raise Mismatch unless the rows in windows, the late ones and the bad ones are all that were read.

    ``counts``: those of a run whose stream has ended, or the sums of ``observedMetrics``. ``results``: all that was
    released; of results in versions the last ones. ``column``: its count(*). ``windows``: in how many windows each row
    is, 1 where they are tumbling. ``markers``: rows that were markers, and no bad ones.

    >>> from windrow import count, stream
    >>> run = stream([{"t": 1}], progress="t", slack=0, name="s").window(range=5).agg(n=count()).run()
    >>> released = [run.push("s", [{"t": t}]).results() for t in (1, 7, 2, 8)]
    >>> accounted(run.end().counts, pl.concat([*released, run.results()]))
    """
    if VERSION in results.columns:
        raise ValueError("results in versions count rows several times: give the last version of each")
    released = int(results[column].sum())
    expected = counts["rows_in"] - counts["rows_bad"] - markers
    lost = counts["rows_late"] - counts.get("rows_revised", 0)
    if released != (expected - lost) * windows:
        raise Mismatch(
            f"{where or 'rows'}: {counts['rows_in']} were read, {counts['rows_bad']} of them bad, {lost} late and "
            f"{markers} markers; that leaves {expected - lost}, in {windows} windows each, and results have {released}"
        )


def countable(query: Stream) -> tuple[str, int] | None:
    """The column of a query that counts all rows, and in how many windows each row is; None if there is no such one."""
    node = query.node
    if not isinstance(node, WindowAggregate) or not isinstance(node.window, Sliding) or node.options.zone:
        return None
    column = next((c.name for c in node.calls if c.function == "count" and c.argument is None), None)
    whole = node.window.range % node.window.slide == 0 and node.options.partial
    sources = [scan.name for scan in _sources(node.input)]
    if column is None or not whole or not sources or len(set(sources)) < len(sources):
        return None
    return column, node.window.range // node.window.slide


def accounted_join(
    counts: Mapping[str, int],
    *,
    waiting: int = 0,
    bad_pairs: int = 0,
    markers: int = 0,
    where: str = "",
) -> None:
    """Raise Mismatch unless each row that a join read found a partner or not, was shed, waits, was late or is bad.

    ``counts``: those of a query with one join directly over its sources. ``waiting``: rows without a partner that the
    join still holds, none when all streams have ended. ``bad_pairs``: pairs for which a condition failed, which count
    as bad and are no rows that were read.

    >>> from windrow import stream
    >>> left, right = (stream([{"t": 1}], progress="t", slack=0, name=name) for name in ("left", "right"))
    >>> run = left.join(right, within=(0, 5)).run()
    >>> _ = run.push("left", [{"t": 1}, {"t": 9}]).push("left", [{"t": 2}, {"t": None}]).push("right", [{"t": 4}])
    >>> run.counts["rows_joined"], run.counts["rows_late"], run.counts["rows_bad"]
    (2, 1, 1)
    >>> accounted_join(run.counts, waiting=1)
    >>> accounted_join(run.end().counts)
    """
    found = {name: counts[name] for name in ("rows_joined", "rows_freed", "rows_shed", "rows_late", "rows_bad")}
    read = counts["rows_in"] - markers
    if sum(found.values()) - bad_pairs + waiting != read:
        raise Mismatch(
            f"{where or 'rows of the join'}: {read} were read, and they are {found}, of which {bad_pairs} are pairs; "
            f"{waiting} wait"
        )


def countable_join(query: Stream) -> Join | MultiJoin | AsOf | Sequence | None:
    """The join, as-of join or sequence of a query if all rows of its sources come to it, and to no other one."""
    node = query.node
    while isinstance(node, Project):
        node = node.input
    if not isinstance(node, (Join, MultiJoin, AsOf, Sequence)):
        return None
    if isinstance(node, MultiJoin) and node.using != "multi":  # a pipeline of joins counts rows in each of them
        return None
    sides = [_sources(each) for each in node.inputs]
    names = [scan.name for side in sides for scan in side]
    return node if all(sides) and len(set(names)) == len(names) else None


def _sources(node: Node) -> list[Scan]:
    """The sources of which all rows come to the window; none if something is in between."""
    if isinstance(node, Union):
        found = [_sources(each) for each in node.inputs]
        return [scan for each in found for scan in each] if all(found) else []
    return [node] if isinstance(node, Scan) and not node.source.marker_by else []
