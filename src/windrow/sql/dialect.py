"""Spark SQL plus the window clause of the thesis: ``[RANGE r, SLIDE s, WA attr]`` and its relatives.

The clause may stand after a table or subquery, or after the select list; ``FROM a UNION b`` is a bag union. A table may
have a promise rule: ``FROM a PUNCTUATED BY slack('10 seconds')``.
"""

from __future__ import annotations

from functools import partial
from itertools import pairwise
from typing import Any

from sqlglot import exp
from sqlglot.tokenizer_core import Token, TokenType

from windrow.logical.reading import SparkSql
from windrow.sql.sequence_parser import SequenceParser
from windrow.sql.trees import COMMA, EMIT, UNIONED
from windrow.sql.window_parser import OPENING, PARAMETERS


class WindrowParser(SequenceParser):
    """Adds the window clause at the two places where the thesis writes it, and PUNCTUATED BY after tables.

    As-of joins stand where joins do, and SEQ where a table does.
    """

    def parse(self, raw_tokens: list[Token], sql: str) -> list[exp.Expr | None]:
        """Gives the bracket of a clause a token type of its own, so that it is not read as a subscript."""
        for token, after in pairwise(raw_tokens):
            if token.token_type == TokenType.L_BRACKET and after.text.upper() in PARAMETERS:
                token.token_type = OPENING
        return super().parse(raw_tokens, sql)

    def _parse_hint(self) -> exp.Hint | None:
        """A hint as it is written, with its place in the text; ``hints`` reads its content."""
        token = self._curr
        if not self._match(TokenType.HINT):
            return None
        found = exp.Hint(expressions=[exp.Literal.string(self.sql[token.start : token.end + 1])])
        found.meta.update({"start": token.start, "end": token.end})
        return found

    def _parse_join(self, *args: Any, **kwargs: Any) -> exp.Join | None:
        """Keeps which joins are commas: they bind less than JOIN. Errors in the table after one are not swallowed."""
        comma = self._curr
        if words := self._nearest_words():
            return self._parse_nearest(words, **kwargs)
        if not self._match(TokenType.COMMA):
            return super()._parse_join(*args, **kwargs)
        begins = self._curr.token_type in (TokenType.VAR, TokenType.IDENTIFIER, TokenType.L_PAREN)
        read = partial(self._parse_table, alias_tokens=kwargs.get("alias_tokens"))
        table = read() if begins else self._try_parse(read)
        if table is None:
            self.raise_error("Expected a table after the comma", comma)
        found = exp.Join(this=table, kind="CROSS")
        found.meta[COMMA] = True
        return found

    def _parse_using_identifiers(self) -> list[exp.Expr]:
        """Columns of both tables, which no table qualifies."""

        def name() -> exp.Expr | None:
            found = self._parse_id_var()
            if not isinstance(found, exp.Identifier):
                self.raise_error("Expected a column in USING")
            return found

        return self._parse_wrapped_csv(name, optional=True)

    def _parse_limit(self, *args: Any, **kwargs: Any) -> Any:
        if self._curr.token_type == TokenType.LIMIT and self._next.token_type == TokenType.COMMA:
            self.raise_error("Expected a number after LIMIT", self._next)
        return super()._parse_limit(*args, **kwargs)

    def _parse_projections(self) -> tuple[list[exp.Expr], list[exp.Expr] | None]:
        items, excluded = super()._parse_projections()
        return ([*items, self._parse_stream_window()], excluded) if self._at_clause() else (items, excluded)

    def _parse_one(self, *args: Any, **kwargs: Any) -> exp.Expr | None:
        this = super()._parse_one(*args, **kwargs)
        if this is None:
            return this
        extended = self._parse_punctuated(this)
        while self._at_table_union():
            self._advance()
            self._match(TokenType.ALL)
            other = super()._parse_one()
            if other is None:
                self.raise_error("Expected a table after UNION")
                return this
            self._parse_punctuated(other)
            this.append(UNIONED, other)
            extended = True
        extended = self._parse_clause(this) or extended
        for join in self._parse_joins() if extended and kwargs.get("joins") else ():
            this.append("joins", join)
        return this

    def _parse_query_modifiers(self, this: Any) -> Any:
        found = super()._parse_query_modifiers(this)
        if found is not None and self._at_emit():
            self._advance(2)
            if self._curr.text.upper() == "EVERY":
                self._advance()
            else:
                self.raise_error("Expected EVERY and a length after EMIT EARLY")
            found.set(EMIT, self._parse_window_length())
        return found

    def _parse_table_alias(self, *args: Any, **kwargs: Any) -> Any:
        ours = self._at_emit() or self._at_punctuated() or self._at_pairing()
        return None if ours else super()._parse_table_alias(*args, **kwargs)


class Windrow(SparkSql):
    """The dialect; SQL text outside the clause is Spark's."""

    Parser = WindrowParser
