"""Spark SQL, read strictly: nothing that was written is dropped on the way into the parser's tree.

sqlglot is lenient: it skips doubled commas, leaves out arguments that it does not know, and forgets how a function was
spelled. Expressions and queries are both read by this parser, so both refuse the same things.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import sqlglot
from sqlglot import exp
from sqlglot.dialects.spark import Spark
from sqlglot.parsers.spark import SparkParser
from sqlglot.tokenizer_core import Token, TokenType

from windrow.errors import QueryError, underline

NAME = "windrow_name"  # the name of a function as it was written, in the meta of its node
ESCAPED = re.compile(r"\\(?:u([0-9A-Fa-f]{4})|U([0-9A-Fa-f]{8})|([01][0-7]{2})|(.))", re.DOTALL)
ESCAPES = {"0": "\0", "b": "\b", "n": "\n", "r": "\r", "t": "\t", "Z": "\x1a", "%": r"\%", "_": r"\_"}
AROUND = (exp.Window, exp.Filter, exp.IgnoreNulls, exp.RespectNulls, exp.WithinGroup)  # what follows a call
LEXEME = re.compile(r"""'(?:[^'\\]|\\.)*'|"(?:[^"\\]|\\.)*"|`[^`]*`|--[^\n]*|/\*.*?\*/|(?!/\*)[^'"`]""", re.DOTALL)
COMMENTS = r"(?:\s|--[^\n]*(?:\n|$)|/\*(?!\+).*?\*/)*"
MISPLACED = re.compile(rf"{COMMENTS}(/\*\+.*?\*/)", re.DOTALL)


def text_of(literal: str) -> str:
    r"""The value of a text literal, as Spark reads it.

    >>> text_of(r"'a\'b\t\u0041\101\q'"), text_of(r"r'a\nb'")
    ("a'b\tAAq", 'a\\nb')
    """
    return literal[2:-1] if literal[0] in "rR" else ESCAPED.sub(_unescaped, literal[1:-1])


def _unescaped(found: re.Match[str]) -> str:
    short, long, octal, other = found.groups()
    if other is not None:
        return ESCAPES.get(other, other)
    return chr(int(octal, 8)) if octal else chr(int(short or long, 16))


class StrictParser(SparkParser):
    """The parser of Spark SQL, with an error wherever sqlglot would skip something."""

    def _parse(
        self, parse_method: Callable[..., exp.Expr | None], raw_tokens: list[Token], sql: str | None = None
    ) -> list[exp.Expr | None]:
        self.sql = sql or ""
        self._calls: list[list[exp.Expr]] = []  # the items of lists inside each call that is being read
        self._check_hints(raw_tokens)
        return super()._parse(parse_method, self._with_texts(raw_tokens), sql)

    def _check_hints(self, tokens: list[Token]) -> None:
        """A hint that stands anywhere but after SELECT would be a comment."""
        ends = [-1, *(t.end for t in tokens)]
        for before, after in zip(ends, [*(t.start for t in tokens), len(self.sql)], strict=True):
            if found := MISPLACED.match(self.sql[before + 1 : after]):
                start = before + 1 + found.start(1)
                self.raise_error("A hint stands right after SELECT", self._token(start, before + found.end(1)))

    def _token(self, start: int, end: int) -> Token:
        line_start = self.sql.rfind("\n", 0, end + 1) + 1
        line = self.sql.count("\n", 0, end + 1) + 1
        return Token(TokenType.VAR, self.sql[start : end + 1], line, end + 1 - line_start, start, end)

    def _with_texts(self, tokens: list[Token]) -> list[Token]:
        """Texts with Spark's escapes; those that follow each other are one, as in Spark."""
        found: list[Token] = []
        for token in tokens:
            if token.token_type not in (TokenType.STRING, TokenType.RAW_STRING):
                found.append(token)
                continue
            token.token_type, token.text = TokenType.STRING, text_of(self.sql[token.start : token.end + 1])
            before = found[-1] if found and found[-1].token_type == TokenType.STRING else None
            if before is None:
                found.append(token)
                continue
            quote = self.sql[token.start]
            doubled = before.end + 1 == token.start and self.sql[before.end] == quote and not self._raw(before)
            before.text += (quote if doubled else "") + token.text
            before.end = token.end
        return found

    def _raw(self, token: Token) -> bool:
        return self.sql[token.start] in "rR"

    def _parse_csv(self, parse_method: Callable[[], Any], sep: TokenType = TokenType.COMMA) -> list[Any]:
        """Refuses an empty place before, between or after commas."""

        def checked() -> Any:
            found = parse_method()
            after = self._prev.token_type == sep and self._prev is not before
            if found is None and (self._curr.token_type == sep or after):
                comma = self._curr if self._curr.token_type == sep else self._prev
                self.raise_error("Nothing stands before or after this comma", comma)
            return found

        before = self._prev
        found = super()._parse_csv(checked, sep)
        if self._calls:
            self._calls[-1] += [item for item in found if isinstance(item, exp.Expr)]
        return found

    def _parse_unary(self) -> exp.Expr | None:
        return self._placed(super()._parse_unary)

    def _parse_atom(self) -> exp.Expr | None:
        return self._placed(super()._parse_atom)

    def _placed(self, parse_method: Callable[[], exp.Expr | None]) -> exp.Expr | None:
        """Keeps where an operand stands, brackets and all."""
        token = self._curr
        found = parse_method()
        if found is not None:
            found.meta.setdefault("start", token.start)
            found.meta["end"] = max(self._prev.end, found.meta.get("end", 0))
        return found

    def _parse_function_call(self, *args: Any, **kwargs: Any) -> exp.Expr | None:
        """Keeps the name as it was written, and where the call ends; refuses arguments that are in no part of it."""
        token = self._curr
        self._calls.append([])
        try:
            found = super()._parse_function_call(*args, **kwargs)
        finally:
            given = self._calls.pop()
        if found is None:
            return None
        call = found
        while isinstance(call, AROUND):
            call = call.this
        self._check_arguments(found, call, given)
        call.meta.setdefault(NAME, token.text)
        for node in (call, found):
            node.meta["start"] = token.start
        call.meta["end"] = max(token.end, call.meta.get("end", 0))
        found.meta["end"] = self._prev.end
        return found

    def _check_arguments(self, found: exp.Expr, call: exp.Expr, given: list[exp.Expr]) -> None:
        inner = [n for n in found.walk() if n is not call and not isinstance(n, AROUND)]
        held = [span for n in inner if (span := place(n)) is not None]
        implied = sum(isinstance(n, (exp.Var, exp.Literal)) and place(n) is None for n in inner)  # units and formats
        for argument in given:
            span = place(argument)
            if span is None or argument is call or any(s <= span[0] and span[1] <= e for s, e in held):
                continue
            if isinstance(argument, (exp.Column, exp.Literal)) and implied and not argument.is_number:
                implied -= 1
            elif not (isinstance(found, exp.IgnoreNulls) and argument == exp.true()):
                self.raise_error("This argument is not supported", self._token(*span))

    def _parse_string_as_identifier(self) -> exp.Identifier | None:
        """Nothing: a text is no name in Spark."""
        return None

    def _warn_unsupported(self) -> None:
        """Nothing: what is no query is refused, not run."""


def place(node: exp.Expr) -> tuple[int, int] | None:
    """Where a node stands in the text, if it is known."""
    places = [n.meta for n in node.walk() if "start" in n.meta]
    return (min(p["start"] for p in places), max(p["end"] for p in places)) if places else None


class SparkSql(Spark):
    """Spark's dialect, read strictly."""

    Parser = StrictParser


def read(parse: Callable[[], Any], text: str, doing: str = "") -> Any:
    """What the parser makes of a text; whatever it cannot read is a query error that underlines the place."""
    try:
        return parse()
    except sqlglot.ParseError as error:
        raise QueryError(f"{doing}{located(text, error)}") from None
    except sqlglot.TokenError as error:
        raise QueryError(unclosed(text, error)) from None
    except (ValueError, TypeError, AttributeError, LookupError, RecursionError):  # its own, on words it did not expect
        raise QueryError(f"cannot read this: {text}") from None


def located(text: str, error: sqlglot.ParseError) -> str:
    """What the parser says about a text, with the place underlined."""
    if not error.errors:
        return f"cannot read the query: {error}"
    first = error.errors[0]
    line, column, word = first["line"], first["col"], first["highlight"] or ""
    start = sum(len(part) + 1 for part in text.split("\n")[: line - 1]) + column - len(word)
    message = _in_words(str(first["description"]).rstrip("."))
    return f"{message}\n{underline(text, max(0, start), max(0, start + len(word) - 1))}"


def unclosed(text: str, error: sqlglot.TokenError) -> str:
    """What is wrong with a text that is no sequence of words: a quote or a comment without an end."""
    at = 0
    while at < len(text) and (found := LEXEME.match(text, at)):
        at = found.end()
    if at >= len(text):
        return f"cannot read the query: {error}"
    return f"cannot read the query: what begins here has no end\n{underline(text, at, at)}"


def _in_words(message: str) -> str:
    """A message without the parser's names for things."""
    if "<class" in message:  # a node without one of its parts
        return "Something is missing here"
    if message == "Invalid expression / Unexpected token":
        return "This is not expected here"
    if found := re.fullmatch(r"The number of provided arguments \((\d+)\) is greater than .* \((\d+)\)", message):
        return f"{found[1]} arguments, where at most {found[2]} are possible"
    return message


def named(node: exp.Expr, sql: str | None = None) -> str:
    """A part of an expression as it was written: the name of a function, or the text."""
    if (name := node.meta.get(NAME)) is not None:
        return str(name)
    return written(node, sql)


def written(node: exp.Expr, sql: str | None = None) -> str:
    """The text of a node as it was written, if its place is known."""
    found = place(node)
    return node.sql(SparkSql) if sql is None or found is None else sql[found[0] : found[1] + 1]
