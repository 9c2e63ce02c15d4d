"""What all parts of a SELECT share: names resolved against a stream, and aggregate calls recognized."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field

from sqlglot import exp

from windrow.aggregates import FUNCTIONS as AGGREGATES
from windrow.aggregates import UserAggregate
from windrow.errors import PlanError, QueryError, underline
from windrow.logical.checked import distinct, with_window_time
from windrow.logical.expressions import fail, resolve, visible
from windrow.logical.nodes import (
    Node,
)
from windrow.logical.reading import place
from windrow.spec.functions import Function

FUNCTIONS: dict[type[exp.Expr], str] = {
    exp.Count: "count",
    exp.Sum: "sum",
    exp.Avg: "avg",
    exp.Min: "min",
    exp.Max: "max",
    exp.Variance: "var_samp",
    exp.VariancePop: "var_pop",
    exp.Stddev: "stddev_samp",
    exp.StddevSamp: "stddev_samp",
    exp.StddevPop: "stddev_pop",
    exp.Median: "median",
    exp.Quantile: "quantile",
    exp.ApproxQuantile: "approx_quantile",
    exp.ApproxDistinct: "approx_count_distinct",
    exp.Mode: "mode",
    exp.First: "first",
    exp.FirstValue: "first",
    exp.Last: "last",
    exp.LastValue: "last",
    exp.ArrayAgg: "collect_list",
    exp.ArrayUniqueAgg: "collect_set",
}
DISTINCT = {"count": "count_distinct", "sum": "sum_distinct", "avg": "avg_distinct", "min": "min", "max": "max"}
DISTINCT |= {"collect_list": "collect_set", "collect_set": "collect_set"}


def descending(term: exp.Expr, text: str) -> bool:
    """Whether a term of ORDER BY is descending. NULLs must be where Spark SQL puts them by default."""
    down = bool(term.args.get("desc"))
    if bool(term.args.get("nulls_first")) == down:
        raise fail(term, "NULLs come first, and last with DESC: another order of NULLs is not supported", text)
    return down


@dataclass
class Terms:
    """The text of a query, for messages, and the aggregates and functions of its user."""

    text: str
    users: Mapping[str, UserAggregate] = field(default_factory=dict)
    functions: Mapping[str, Function] = field(default_factory=dict, kw_only=True)

    @contextmanager
    def at(self, tree: exp.Expr) -> Iterator[None]:
        """Underline this tree in every error raised inside that has no place in the text yet."""
        try:
            yield
        except (QueryError, PlanError) as error:
            found = place(tree)
            if found is None or "\n" in str(error):
                raise
            raise type(error)(f"{error}\n{underline(self.text, *found)}") from None

    def distinct(self, select: exp.Select, node: Node) -> Node:
        asked = select.args.get("distinct")
        if asked is not None and asked.args.get("on"):
            raise fail(asked, "DISTINCT ON is not supported: use GROUP BY, or ORDER BY with LIMIT", self.text)
        return node if asked is None else distinct(node)

    def ordered(self, term: exp.Expr, node: Node, columns: Sequence[tuple[str, exp.Expr]]) -> tuple[exp.Expr, bool]:
        """A term of ORDER BY over selected columns."""
        tree = term.this if isinstance(term, exp.Ordered) else term
        if (at := self.position(tree, len(columns), "ORDER BY")) is not None:
            tree = exp.column(columns[at][0])
        return self.resolved(tree, node), descending(term, self.text)

    def position(self, tree: exp.Expr, items: int, where: str) -> int | None:
        """Which item of the select list a number stands for, from 0; None for anything else."""
        if not (isinstance(tree, exp.Literal) and tree.is_int):
            return None
        if not 0 < int(tree.name) <= items:
            counted = "1 item" if items == 1 else f"{items} items"
            raise fail(tree, f"{where} {tree.name}: the select list has {counted}", self.text)
        return int(tree.name) - 1

    def starred(self, star: exp.Star, node: Node) -> list[tuple[str, exp.Expr]]:
        """The columns of ``*``, without those of EXCEPT."""
        trees = [exp.column(i.name) if isinstance(i, exp.Identifier) else i for i in star.args.get("except_") or ()]
        for tree, item in zip(trees, star.args.get("except_") or (), strict=True):
            if not isinstance(tree, exp.Column):
                raise fail(item, "EXCEPT takes column names", self.text)
            tree.this.meta.update(item.meta)
        left_out = {self.resolved(t, node).name for t in trees}
        return [(c, exp.column(c)) for c in visible(node.schema) if c not in left_out and c not in node.hidden]

    # -- expressions ---------------------------------------------------------------------------------------------
    def resolved(self, tree: exp.Expr, node: Node) -> exp.Expr:
        for found in tree.walk():
            if self.function(found) is not None:
                why = "is a Python function: it is a whole condition of WHERE or ON in an inner join of streams, with "
                why += "[RANGE ..] after each, and over columns of at least two of them. Elsewhere use Stream.apply"
                raise fail(found, f"{found.name} {why}", self.text)
        return resolve(with_window_time(tree, node), node.schema, self.text)

    def aggregates(self, tree: exp.Expr) -> list[exp.Expr]:
        """The aggregate calls in a tree."""
        return [node for node in tree.walk() if self.is_aggregate(node)]

    def is_aggregate(self, tree: exp.Expr) -> bool:
        """Whether a node is a call of an aggregate, known here or not."""
        return isinstance(tree, exp.AggFunc) or self.function_name(tree) is not None

    def function(self, tree: exp.Expr) -> Function | None:
        """The user's function that is called here, if one is."""
        return self.functions.get(tree.name.lower()) if isinstance(tree, exp.Anonymous) else None

    def function_name(self, tree: exp.Expr) -> str | None:
        """The name of an aggregate call as Windrow has it; sqlglot has no class for some, such as mean(x)."""
        if isinstance(tree, exp.Anonymous):
            name = {"std": "stddev"}.get(tree.name.lower(), tree.name.lower())
            if name in self.users:
                return name
            return AGGREGATES[name].function if name in AGGREGATES else None
        return FUNCTIONS.get(type(tree))

    def no_aggregates(self, tree: exp.Expr, where: str) -> None:
        for found in self.aggregates(tree):
            raise fail(found, f"{where} cannot contain aggregates: use HAVING", self.text)


def column_like(name: str, like: exp.Expr) -> exp.Column:
    """A column in the place of ``like``, so that errors still underline the text."""
    column = exp.column(name)
    places = [n.meta for n in like.walk() if "start" in n.meta]
    if places:
        where = {"start": min(p["start"] for p in places), "end": max(p["end"] for p in places)}
        column.this.meta.update(where)
    return column
