"""Spark SQL plus the window clause of the thesis: ``[RANGE r, SLIDE s, WA attr]`` and its relatives.

The clause may stand after a table or subquery, or after the select list; ``FROM a UNION b`` is a bag union. A table may
say how it makes promises: ``FROM a PUNCTUATED BY slack('10 seconds')``.
"""

from __future__ import annotations

from itertools import pairwise
from typing import Any

from sqlglot import exp
from sqlglot.tokenizer_core import Token, TokenType

from windrow.logical.reading import SparkSql, StrictParser

CLAUSE = "windrow_clause"  # the argument of a table or subquery that holds its window clause
UNIONED = "windrow_union"  # the further tables of a FROM a UNION b
PUNCTUATED = "windrow_punctuated"  # the argument of a table that says how it makes promises
UNIT_TOKENS = {TokenType.VAR, TokenType.ROWS, TokenType.ROW, TokenType.YEAR}
OPENING = TokenType.BLOCK_START  # a type that nothing in Spark SQL uses
EMIT = "windrow_emit"  # the argument of a SELECT that says how often early results come
OPTIONS = ("ORIGIN", "TIME", "WITH", "WITHOUT", "LATE", "GENEROUS", "CONSISTENT")
PARAMETERS = ("RANGE", "SLIDE", "WA", "WATTR", "RATTR", "SATTR", "PA", "TUMBLING", "ROWS", "SESSION", *OPTIONS)
POLICIES = ("DROP", "ERROR", "SIDE", "REVISE")


class WindowClause(exp.Expression):
    """``[RANGE .., SLIDE .., ..]``: lengths are WindowLength, attributes identifiers; ``rank`` marks rank(attr)."""

    arg_types = {  # noqa: RUF012 (sqlglot's own way)
        "range": False,
        "slide": False,
        "wa": False,
        "rattr": False,
        "sattr": False,
        "pa": False,
        "tumbling": False,
        "session": False,
        "rank": False,
        "origin": False,
        "zone": False,
        "empty": False,
        "whole": False,
        "late": False,
        "keep": False,
        "slack": False,
    }


class WindowLength(exp.Expression):
    """A number and a unit of time, ROWS, or ALL."""

    arg_types = {"this": True, "unit": False}  # noqa: RUF012


class PunctuatedBy(exp.Expression):
    """``PUNCTUATED BY this(expressions)``: a way to make promises."""

    arg_types = {"this": True, "expressions": False}  # noqa: RUF012


class WayArgument(exp.Expression):
    """``this`` or ``name => this``: a text, a number, an identifier, or a tuple of identifiers."""

    arg_types = {"this": True, "name": False}  # noqa: RUF012


class WindrowParser(StrictParser):
    """Adds the clause at the two places where the thesis writes it."""

    def parse(self, raw_tokens: list[Token], sql: str) -> list[exp.Expr | None]:
        """Gives the bracket of a clause a token type of its own, so that nobody takes it for a subscript."""
        for token, after in pairwise(raw_tokens):
            if token.token_type == TokenType.L_BRACKET and after.text.upper() in PARAMETERS:
                token.token_type = OPENING
        return super().parse(raw_tokens, sql)

    def _parse_hint(self) -> exp.Hint | None:
        """A hint as it stands, with its place: what is in it, ``hints`` reads."""
        token = self._curr
        if not self._match(TokenType.HINT):
            return None
        found = exp.Hint(expressions=[exp.Literal.string(self.sql[token.start : token.end + 1])])
        found.meta.update({"start": token.start, "end": token.end})
        return found

    def _parse_join(self, *args: Any, **kwargs: Any) -> exp.Join | None:
        comma = self._curr
        found = super()._parse_join(*args, **kwargs)
        if found is None and comma.token_type == TokenType.COMMA and self._prev is comma:
            self.raise_error("Expected a table after the comma", comma)
        return found

    def _parse_limit(self, *args: Any, **kwargs: Any) -> Any:
        if self._curr.token_type == TokenType.LIMIT and self._next.token_type == TokenType.COMMA:
            self.raise_error("Expected a number after LIMIT", self._next)
        return super()._parse_limit(*args, **kwargs)

    def _at_clause(self) -> bool:
        return self._curr.token_type == OPENING

    def _parse_projections(self) -> tuple[list[exp.Expr], list[exp.Expr] | None]:
        items, excluded = super()._parse_projections()
        return ([*items, self._parse_stream_window()], excluded) if self._at_clause() else (items, excluded)

    def _parse_table(self, *args: Any, **kwargs: Any) -> exp.Expr | None:
        this = super()._parse_table(*args, **kwargs)
        if this is None:
            return this
        extended = self._parse_punctuated(this)
        while self._at_table_union():
            self._advance()
            self._match(TokenType.ALL)
            other = super()._parse_table()
            if other is None:
                self.raise_error("Expected a table after UNION")
                return this
            self._parse_punctuated(other)
            this.append(UNIONED, other)
            extended = True
        if self._at_clause():
            this.set(CLAUSE, self._parse_stream_window())
            self._parse_late_alias(this, whole=True)
            extended = True
            if self._at_punctuated():
                self.raise_error("PUNCTUATED BY stands right after a table, before the window clause")
        for join in self._parse_joins() if extended and kwargs.get("joins") else ():
            this.append("joins", join)
        return this

    def _parse_late_alias(self, this: exp.Expr, whole: bool = False) -> None:
        """The name of a table, where it stands after what we have added. ``whole``: of all that are united."""
        if not this.args.get("alias") and (alias := self._parse_table_alias()):
            alias.meta["whole"] = whole
            this.set("alias", alias)

    def _at_punctuated(self) -> bool:
        return self._at_words("PUNCTUATED", "BY")

    def _at_words(self, first: str, second: str) -> bool:
        return self._curr.text.upper() == first and self._next is not None and self._next.text.upper() == second

    def _parse_punctuated(self, this: exp.Expr) -> bool:
        if not self._at_punctuated():
            return False
        self._advance(2)
        this.set(PUNCTUATED, self._parse_way())
        self._parse_late_alias(this)
        return True

    def parse_way(self, raw_tokens: list[Token], sql: str) -> list[exp.Expr | None]:
        """A text that is nothing but a way."""
        return self._parse(lambda parser: parser._parse_way(), raw_tokens, sql)

    def _parse_way(self) -> PunctuatedBy:
        """``name(argument, ..)``."""
        token = self._curr
        if not token.text.isidentifier() or self._next is None or self._next.token_type != TokenType.L_PAREN:
            self.raise_error("Expected a way to make promises, such as slack('10 seconds')")
        self._advance(2)
        empty = self._curr.token_type == TokenType.R_PAREN
        arguments = [] if empty else self._parse_csv(self._parse_way_argument)
        if self._curr.token_type != TokenType.R_PAREN:
            self.raise_error(f"Expected , or ) after an argument of {token.text}")
        found = PunctuatedBy(this=exp.to_identifier(token.text, quoted=False), expressions=arguments)
        found.this.meta.update({"start": token.start, "end": token.end})
        found.meta.update({"start": token.start, "end": self._curr.end})
        self._advance()
        return found

    def _parse_way_argument(self) -> WayArgument:
        start, name = self._curr, None
        if self._next is not None and self._next.token_type == TokenType.FARROW:
            name = exp.to_identifier(start.text, quoted=False)
            name.meta.update({"start": start.start, "end": start.end})
            self._advance(2)
        if self._match(TokenType.L_PAREN):
            value: exp.Expr = exp.Tuple(expressions=self._parse_csv(self._parse_way_value))
            self._match_r_paren()
        else:
            value = self._parse_way_value()
        return WayArgument(this=value, name=name)

    def _parse_way_value(self) -> exp.Expr:
        start = self._curr
        if start.token_type in (TokenType.NUMBER, TokenType.STRING, TokenType.DASH, TokenType.INTERVAL):
            length = self._parse_window_length()
            unit = length.args.get("unit")
            text = start.token_type == TokenType.STRING or unit is not None
            found: exp.Expr = exp.Literal(this=f"{length.name} {unit or ''}".strip(), is_string=text)
            found.meta.update(length.meta)
            return found
        if not start or (start.token_type != TokenType.IDENTIFIER and not start.text.isidentifier()):
            self.raise_error("Expected a column, a text or a number")
        self._advance()
        found = exp.to_identifier(start.text, quoted=False)
        found.meta.update({"start": start.start, "end": start.end})
        return found

    def _at_table_union(self) -> bool:
        """``FROM a UNION b`` or ``FROM a UNION (b UNION c)``, where standard SQL would have a query on the right."""
        if self._curr.token_type != TokenType.UNION:
            return False
        after = self._index + 1
        while after < len(self._tokens) and self._tokens[after].token_type in (TokenType.ALL, TokenType.L_PAREN):
            after += 1
        named = (TokenType.VAR, TokenType.IDENTIFIER)
        return after < len(self._tokens) and self._tokens[after].token_type in named

    def _parse_stream_window(self) -> WindowClause:
        clause = WindowClause()
        start = self._curr
        self._advance()
        while True:
            self._parse_window_parameter(clause)
            if not self._match(TokenType.COMMA):
                break
        if self._curr.token_type != TokenType.R_BRACKET:
            self.raise_error("Expected , or ] in the window clause")
        clause.meta.update({"start": start.start, "end": self._curr.end})
        self._advance()
        return clause

    def _parse_window_parameter(self, clause: WindowClause) -> None:
        word = self._curr.text.upper()
        name = {"WATTR": "wa", "ROWS": "range", "TIME": "zone", "WITH": "empty", "WITHOUT": "whole"}.get(
            word, word.lower()
        )
        if word not in PARAMETERS:
            self.raise_error(f"Unknown window parameter {self._curr.text}; there are: {', '.join(PARAMETERS)}")
            return
        if clause.args.get(name):
            self.raise_error(f"{word} is given twice in the window clause")
        self._advance()
        if word in OPTIONS:
            self._parse_window_option(clause, word)
            return
        if name in ("range", "slide", "tumbling", "session"):
            length = self._parse_window_length()
            if word == "ROWS" and not length.args.get("unit"):
                length.set("unit", exp.var("ROWS"))
            clause.set(name, length)
        elif name == "pa" and self._match(TokenType.L_PAREN):
            clause.set(name, self._parse_csv(self._parse_window_attribute))
            self._match_r_paren()
        elif name == "sattr" and self._curr.text.upper() == "RANK":
            self._advance()
            self._match_l_paren()
            clause.set(name, self._parse_window_attribute())
            clause.set("rank", exp.true())
            self._match_r_paren()
        else:
            attribute = self._parse_window_attribute()
            clause.set(name, [attribute] if name == "pa" else attribute)

    def _parse_window_option(self, clause: WindowClause, word: str) -> None:
        """Whatever a window has besides its shape."""
        match word:
            case "ORIGIN":
                clause.set("origin", self._parse_window_text("an origin, such as '2024-01-01'"))
            case "TIME":
                self._expect_word("ZONE")
                clause.set("zone", self._parse_window_text("a time zone, such as 'Europe/Berlin'"))
            case "WITH":
                self._expect_word("EMPTY")
                clause.set("empty", exp.true())
            case "WITHOUT":
                self._expect_word("PARTIAL")
                clause.set("whole", exp.true())
            case "LATE":
                policy = self._curr.text.upper()
                if policy not in POLICIES:
                    self.raise_error(f"LATE needs one of {', '.join(POLICIES)}")
                self._advance()
                clause.set("late", exp.var(policy))
                if policy == "REVISE" and self._curr.text.upper() == "FOR":
                    self._advance()
                    clause.set("keep", self._parse_window_length())
            case _:
                if clause.args.get("slack"):
                    self.raise_error("CONSISTENT or GENEROUS, not both")
                clause.set("slack", exp.var(word))

    def _expect_word(self, word: str) -> None:
        if self._curr.text.upper() != word:
            self.raise_error(f"Expected {word} in the window clause")
        self._advance()

    def _parse_window_text(self, what: str) -> exp.Expr:
        token = self._curr
        negative = "-" if token.token_type == TokenType.DASH else ""
        if negative:
            self._advance()
            token = self._curr
        if token.token_type not in (TokenType.STRING, TokenType.NUMBER):
            self.raise_error(f"Expected {what}")
        self._advance()
        found = exp.Literal(this=negative + token.text, is_string=token.token_type == TokenType.STRING)
        found.meta.update({"start": token.start, "end": token.end})
        return found

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

    def _at_emit(self) -> bool:
        return self._at_words("EMIT", "EARLY")

    def _parse_table_alias(self, *args: Any, **kwargs: Any) -> Any:
        ours = self._at_emit() or self._at_punctuated()
        return None if ours else super()._parse_table_alias(*args, **kwargs)

    def _parse_window_attribute(self) -> exp.Identifier:
        """A column; the thesis's ``row-num`` is ours ``row_num``."""
        token = self._curr
        if not token or token.token_type in (TokenType.R_BRACKET, TokenType.COMMA, TokenType.NUMBER):
            self.raise_error("Expected a column in the window clause")
        self._advance()
        name, end = token.text, token.end
        if self._curr.token_type == TokenType.DASH and self._next is not None:
            name, end = f"{name}_{self._next.text}", self._next.end
            self._advance(2)
        found = exp.to_identifier(name, quoted=False)
        found.meta.update({"start": token.start, "end": end})
        return found

    def _parse_window_length(self) -> WindowLength:
        start = self._curr
        self._match(TokenType.INTERVAL)
        negative = "-" if self._match(TokenType.DASH) else ""
        token = self._curr
        number = token.token_type in (TokenType.NUMBER, TokenType.STRING)
        if not number and token.text.upper() != "ALL":
            self.raise_error("Expected a length in the window clause, such as 10 MINUTES, 100 ROWS or ALL")
        self._advance()
        length = WindowLength(this=exp.Literal.string(negative + token.text))
        end = token
        if number and self._curr and self._curr.token_type in UNIT_TOKENS:
            length.set("unit", exp.var(self._curr.text.upper()))
            end = self._curr
            self._advance()
        length.meta.update({"start": start.start, "end": end.end})
        return length


class Windrow(SparkSql):
    """The dialect; SQL text outside the clause is Spark's."""

    Parser = WindrowParser
