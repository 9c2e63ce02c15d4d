"""The window clause of the thesis, ``[RANGE r, SLIDE s, WA attr]`` and its relatives, as the parser reads it."""

from __future__ import annotations

from sqlglot import exp
from sqlglot.tokenizer_core import TokenType

from windrow.logical.reading import StrictParser
from windrow.sql.trees import WindowClause, WindowLength

OPENING = TokenType.BLOCK_START  # the bracket of a clause: a type that nothing in Spark SQL uses
UNIT_TOKENS = {TokenType.VAR, TokenType.ROWS, TokenType.ROW, TokenType.YEAR}
OPTIONS = ("ORIGIN", "TIME", "WITH", "WITHOUT", "LATE", "GENEROUS", "CONSISTENT")
PARAMETERS = ("RANGE", "SLIDE", "WA", "WATTR", "RATTR", "SATTR", "PA", "TUMBLING", "ROWS", "SESSION", *OPTIONS)
POLICIES = ("DROP", "ERROR", "SIDE", "REVISE")
FOLLOWS = ("KEYS", "WITHIN", "AFTER", "FOLLOWING", "RECENT", "CHRONICLE", "EMIT")  # after a length, and no units


class WindowParser(StrictParser):
    """Reads a window clause; where one may stand, ``WindrowParser`` knows."""

    def _at_clause(self) -> bool:
        return self._curr.token_type == OPENING

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
            self.raise_error(f"Unknown window parameter {self._curr.text}; available: {', '.join(PARAMETERS)}")
            return
        if word == "RANGE" and self._next is not None and self._next.text.upper() == "TUMBLING":
            self._advance()
            name = "tumbling"
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
        """Everything but the shape of the window."""
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
                late = exp.var(policy)
                late.meta.update({"start": self._prev.start, "end": self._prev.end})
                clause.set("late", late)
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

    def _parse_window_attribute(self) -> exp.Identifier | exp.Column:
        """A column, alone or with its table."""
        found = self._parse_window_name()
        if not self._match(TokenType.DOT):
            return found
        return exp.Column(this=self._parse_window_name(), table=found)

    def _parse_window_name(self) -> exp.Identifier:
        """A name; the thesis writes ``row-num`` for ``row_num``."""
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
        named = self._curr and self._curr.token_type in UNIT_TOKENS and self._curr.text.upper() not in FOLLOWS
        if number and named:
            length.set("unit", exp.var(self._curr.text.upper()))
            end = self._curr
            self._advance()
        length.meta.update({"start": start.start, "end": end.end})
        return length
