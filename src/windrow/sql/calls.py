"""Aggregate calls in a SELECT: each different one is computed once, however often it is written."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, field

from sqlglot import exp

from windrow.aggregates.aggregate import Parameter
from windrow.api.functions import number
from windrow.errors import listing
from windrow.logical.checked import where
from windrow.logical.expressions import fail
from windrow.logical.nodes import OF_ROWS, AggregateCall, Node
from windrow.logical.reading import named, written
from windrow.sql.scope import WRITTEN
from windrow.sql.terms import DISTINCT, FUNCTIONS, Terms, column_like


@dataclass
class Calls:
    """The aggregates that a SELECT computes over its input, by what they compute."""

    terms: Terms
    found: dict[str, AggregateCall] = field(default_factory=dict)

    @property
    def names(self) -> set[str]:
        return {c.name for c in self.found.values()}

    def is_call(self, tree: exp.Expr) -> bool:
        inner = tree.this if isinstance(tree, (exp.Filter, exp.IgnoreNulls)) else tree
        return self.terms.is_aggregate(inner)

    def column(self, tree: exp.Expr, wanted: str, node: Node, keys: Collection[str]) -> exp.Column:
        """The column of an aggregate over ``node``, called ``wanted`` unless that is empty or taken."""
        condition = tree.expression.this if isinstance(tree, exp.Filter) else None
        whole, tree = tree, tree.this if isinstance(tree, (exp.Filter, exp.IgnoreNulls)) else tree
        function = self.terms.function_name(tree)
        if isinstance(whole, exp.IgnoreNulls) and function not in ("first", "last", None):
            raise fail(whole, f"IGNORE NULLS is for first() and last(), not {named(tree)}()", self.terms.text)
        if function is None:
            known = {*FUNCTIONS.values(), *self.terms.users, "top_k", "heavy_hitters", "approx_heavy_hitters"}
            raise fail(
                tree,
                f"aggregate {named(tree, self.terms.text)!r} is not supported; available: {listing(known)}",
                self.terms.text,
            )
        argument, parameters = self._arguments(tree)
        if isinstance(argument, exp.Distinct):
            if function not in DISTINCT or len(argument.expressions) != 1:
                raise fail(tree, f"DISTINCT is supported with one argument of {listing(DISTINCT)}", self.terms.text)
            function, argument = DISTINCT[function], argument.expressions[0]
        if isinstance(argument, exp.Star) and (function != "count" or argument.args.get("except_")):
            star = written(argument, self.terms.text)
            raise fail(tree, f"{star} is not supported as an argument of {named(tree)}()", self.terms.text)
        if isinstance(argument, exp.Star) or (isinstance(argument, exp.Literal) and function == "count"):
            argument = None
        resolved = None if argument is None else self.terms.resolved(argument, node)
        if condition is not None:
            self.terms.no_aggregates(condition, "FILTER")
            resolved = where(resolved, self.terms.resolved(condition, node))
            parameters += (1,) if function in OF_ROWS else ()
        key = f"{function}({'*' if resolved is None else resolved.sql('spark')}, {parameters})"
        if key not in self.found:
            columns = () if argument is None else argument.find_all(exp.Column)
            inner = [c.this.meta.get(WRITTEN, c.name) for c in columns]
            name = wanted or "_".join([function, *dict.fromkeys(inner)])
            taken = self.names | set(keys)
            name = name if name not in taken else f"{name}_{len(self.found)}"
            user = self.terms.users.get(function)
            self.found[key] = AggregateCall(name, function, resolved, parameters, user)
        return column_like(self.found[key].name, whole)

    def _arguments(self, tree: exp.Expr) -> tuple[exp.Expr | None, tuple[Parameter, ...]]:
        """The argument of a call, and the numbers after it."""
        text = self.terms.text
        if isinstance(tree, exp.Count) and tree.expressions:
            return self._counted(tree), ()
        if isinstance(tree, exp.Anonymous):
            given = list(tree.expressions)
        else:
            extra = [tree.args.get("quantile")] if tree.args.get("quantile") is not None else []
            given = [tree.this, *extra]
        if not given or given[0] is None:
            raise fail(tree, f"{named(tree, text)}() needs an argument", text)
        parameters = []
        for parameter in given[1:]:
            if not (isinstance(parameter, exp.Literal) and not parameter.is_string):
                raise fail(tree, f"{named(tree, text)}() takes numbers after its argument", text)
            parameters.append(number(parameter.name))
        return given[0], tuple(parameters)

    def _counted(self, tree: exp.Count) -> exp.Expr:
        """count(a, b): the rows where none of them is NULL."""
        if isinstance(tree.this, (exp.Distinct, exp.Star)):
            raise fail(tree, "count() of several arguments takes expressions, without DISTINCT or *", self.terms.text)
        values = [exp.Not(this=exp.Is(this=v.copy(), expression=exp.Null())) for v in (tree.this, *tree.expressions)]
        return where(None, exp.and_(*values, copy=False))
