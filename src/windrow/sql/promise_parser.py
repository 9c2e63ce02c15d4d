"""``PUNCTUATED BY slack('10 seconds')`` after a table, as the parser reads it."""

from __future__ import annotations

from sqlglot import exp
from sqlglot.tokenizer_core import Token, TokenType

from windrow.sql.trees import CLAUSE, PUNCTUATED, PromiseArgument, PunctuatedBy
from windrow.sql.window_parser import WindowParser


class PromiseParser(WindowParser):
    """Reads a promise rule."""

    def _at_punctuated(self) -> bool:
        return self._at_words("PUNCTUATED", "BY")

    def _at_words(self, first: str, second: str) -> bool:
        return self._curr.text.upper() == first and self._next is not None and self._next.text.upper() == second

    def _parse_punctuated(self, this: exp.Expr) -> bool:
        if not self._at_punctuated():
            return False
        self._advance(2)
        this.set(PUNCTUATED, self._parse_promise())
        self._parse_late_alias(this)
        return True

    def _parse_late_alias(self, this: exp.Expr, whole: bool = False) -> None:
        """The alias of a table, where it follows a clause of ours. ``whole``: it names the whole union."""
        if not this.args.get("alias") and (alias := self._parse_table_alias()):
            alias.meta["whole"] = whole
            this.set("alias", alias)

    def _parse_clause(self, this: exp.Expr) -> bool:
        """The window clause after a table."""
        if not self._at_clause():
            return False
        this.set(CLAUSE, self._parse_stream_window())
        self._parse_late_alias(this, whole=True)
        if self._at_punctuated():
            self.raise_error("PUNCTUATED BY stands right after a table, before the window clause")
        return True

    def _at_table_union(self) -> bool:
        """``FROM a UNION b`` or ``FROM a UNION (b UNION c)``, where standard SQL would have a query on the right."""
        if self._curr.token_type != TokenType.UNION:
            return False
        after = self._index + 1
        while after < len(self._tokens) and self._tokens[after].token_type in (TokenType.ALL, TokenType.L_PAREN):
            after += 1
        named = (TokenType.VAR, TokenType.IDENTIFIER)
        return after < len(self._tokens) and self._tokens[after].token_type in named

    def parse_promise(self, raw_tokens: list[Token], sql: str) -> list[exp.Expr | None]:
        """A text that is one promise rule."""
        return self._parse(lambda parser: parser._parse_promise(), raw_tokens, sql)

    def _parse_promise(self) -> PunctuatedBy:
        """``name(argument, ..) [IDLE AFTER length]``."""
        token = self._curr
        if not token.text.isidentifier() or self._next is None or self._next.token_type != TokenType.L_PAREN:
            self.raise_error("Expected a promise rule, such as slack('10 seconds')")
        self._advance(2)
        empty = self._curr.token_type == TokenType.R_PAREN
        arguments = [] if empty else self._parse_csv(self._parse_promise_argument)
        if self._curr.token_type != TokenType.R_PAREN:
            self.raise_error(f"Expected , or ) after an argument of {token.text}")
        found = PunctuatedBy(this=exp.to_identifier(token.text, quoted=False), expressions=arguments)
        found.this.meta.update({"start": token.start, "end": token.end})
        found.meta.update({"start": token.start, "end": self._curr.end})
        self._advance()
        if self._at_words("IDLE", "AFTER"):
            self._advance(2)
            if self._curr.token_type not in (TokenType.STRING, TokenType.NUMBER, TokenType.INTERVAL):
                self.raise_error("IDLE AFTER needs a length, such as '30 seconds'")
            found.set("idle", self._parse_promise_value())
        return found

    def _parse_promise_argument(self) -> PromiseArgument:
        start, name = self._curr, None
        if self._next is not None and self._next.token_type == TokenType.FARROW:
            name = exp.to_identifier(start.text, quoted=False)
            name.meta.update({"start": start.start, "end": start.end})
            self._advance(2)
        if self._match(TokenType.L_PAREN):
            value: exp.Expr = exp.Tuple(expressions=self._parse_csv(self._parse_promise_value))
            self._match_r_paren()
        else:
            value = self._parse_promise_value()
        return PromiseArgument(this=value, name=name)

    def _parse_promise_value(self) -> exp.Expr:
        start = self._curr
        if start.token_type in (TokenType.NUMBER, TokenType.STRING, TokenType.DASH, TokenType.INTERVAL):
            length = self._parse_window_length()
            unit = length.args.get("unit")
            text = start.token_type == TokenType.STRING or unit is not None
            found: exp.Expr = exp.Literal(this=f"{length.name} {unit or ''}".strip(), is_string=text)
            found.meta.update(length.meta)
            return found
        if not start or (start.token_type != TokenType.IDENTIFIER and not start.text.isidentifier()):
            self.raise_error("Expected a column, a string or a number")
        self._advance()
        found = exp.to_identifier(start.text, quoted=False)
        found.meta.update({"start": start.start, "end": start.end})
        return found
