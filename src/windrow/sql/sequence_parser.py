"""``ASOF JOIN``, ``FOLLOWING`` and ``SEQ``, as the parser reads them. Their words are names everywhere else."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from sqlglot import exp
from sqlglot.tokenizer_core import Token, TokenType

from windrow.sql.promise_parser import PromiseParser
from windrow.sql.trees import CLAUSE, KEYS, MATCHED, PAIRING, WITHIN, Seq, Step

KINDS = ("INNER", "LEFT", "RIGHT", "FULL", "OUTER", "CROSS", "SEMI", "ANTI", "NATURAL", "ASOF")
PAIRINGS = ("RECENT", "CHRONICLE")
CONDITION = "MATCH_CONDITION"
# What can stand after a table that is called "following".
NO_PAIRING = ("EMIT", "PUNCTUATED", "FOLLOWING", "WITHIN", "KEYS", CONDITION)
SKIPS = (("TO", "NEXT", "ROW"), ("PAST", "LAST", "ROW"))
RECOGNIZING = ("PARTITION", "ORDER", "MEASURES", "ONE", "ALL", "AFTER", "PATTERN")  # what MATCH_RECOGNIZE begins with
RECOGNIZE = "MATCH_RECOGNIZE is not supported: it takes rows of one table that stand directly behind each other. FROM "
RECOGNIZE += "SEQ(a, b, c) WITHIN .. takes rows of several streams that follow each other, with others in between"
LENGTHS = (TokenType.NUMBER, TokenType.STRING, TokenType.INTERVAL, TokenType.DASH)


class SequenceParser(PromiseParser):
    """Reads what pairs rows by the order of their times."""

    _matched = False  # whether the table that is read is the right one of an ASOF JOIN

    def _parse_table(self, *args: Any, matched: bool = False, **kwargs: Any) -> exp.Expr | None:
        """A table, a query or a sequence. ``matched``: a MATCH_CONDITION follows."""
        around, self._matched = self._matched, matched
        try:
            return self._parse_seq() if self._at_seq() else self._parse_one(*args, **kwargs)
        finally:
            self._matched = around

    def _parse_one(self, *args: Any, **kwargs: Any) -> exp.Expr | None:
        """A table or a query, with what of ours belongs to it."""
        return super()._parse_table(*args, **kwargs)

    # -- joins ---------------------------------------------------------------------------------------------------
    def _nearest_words(self) -> list[Token]:
        """The words of an as-of join, up to JOIN or to the pairing; none where none begins."""
        found: list[Token] = []
        for token in self._tokens[self._index :]:
            word = token.text.upper() if token.token_type != TokenType.IDENTIFIER else ""
            found.append(token)
            if word == "JOIN":
                return found if any(t.token_type == TokenType.ASOF for t in found) else []
            if word not in KINDS:
                break
        last = self._index + len(found) - 1
        after = self._tokens[last + 1 : last + 2]
        return [*found, *after] if after and self._is_following(last, len(found) > 1) else []

    def _is_following(self, at: int, sure: bool = False) -> bool:
        """Whether ``FOLLOWING pairing`` stands there; ``sure``: it cannot be a name."""
        first, second = ([*self._tokens[at : at + 2], None, None])[:2]
        if first is None or second is None or first.token_type != TokenType.VAR or first.text.upper() != "FOLLOWING":
            return False
        return sure or (second.token_type == TokenType.VAR and second.text.upper() not in NO_PAIRING)

    def _parse_nearest(self, words: Sequence[Token], **kwargs: Any) -> exp.Join:
        """An as-of join behind its first words."""
        self._advance(len(words))
        as_of = words[-1].token_type == TokenType.JOIN
        pairing = "" if as_of else words[-1].text.upper()
        if not as_of and pairing not in PAIRINGS:
            self.raise_error("FOLLOWING needs RECENT or CHRONICLE: which row of the other table is taken", words[-1])
        table = self._parse_table(matched=as_of, alias_tokens=kwargs.get("alias_tokens"))
        if table is None:
            self.raise_error(f"Expected a table after {words[-1].text.upper()}")
        found = exp.Join(this=table, method=self._word(words[:-1]))
        if as_of and self._curr.text.upper() == CONDITION:
            found.set(MATCHED, self._parse_match())
        if pairing:
            found.set(PAIRING, self._word(words[-1:]))
        self._parse_pairing(found, WITHIN, KEYS)
        found.meta.update({"start": words[0].start, "end": self._prev.end})
        return found

    def _parse_match(self) -> exp.Expr:
        self._advance()
        if not self._match(TokenType.L_PAREN):
            self.raise_error(f"{CONDITION} stands in parentheses: {CONDITION} (l.ts >= r.ts)")
        start, found = self._prev, self._parse_disjunction()
        if found is None:
            self.raise_error(f"Expected a comparison of two times in {CONDITION}, such as l.ts >= r.ts", start)
        assert found is not None
        self._match_r_paren()
        return found

    def _word(self, words: Sequence[Token]) -> exp.Var:
        found = exp.var(" ".join(word.text.upper() for word in words))
        found.meta.update({"start": words[0].start, "end": words[-1].end})
        return found

    def _parse_pairing(self, found: exp.Expr, within: str, keys: str) -> None:
        """ON or USING, WITHIN and KEYS, in any order."""
        while True:
            word = self._curr.text.upper()
            if self._match(TokenType.ON):
                self._once(found, "on", "using")
                found.set("on", self._parse_disjunction())
                if found.args.get("on") is None:
                    self.raise_error("Expected a condition after ON")
            elif self._match(TokenType.USING):
                self._once(found, "using", "on")
                found.set("using", self._parse_using_identifiers())
            elif self._at_distance():
                self._advance()
                self._once(found, within)
                found.set(within, self._parse_window_length())
            elif self._at_keys():
                self._advance(2)
                self._once(found, keys)
                found.set(keys, self._number(self._prev))
            elif word == CONDITION and self._next.token_type == TokenType.L_PAREN:
                self.raise_error(f"{CONDITION} stands right after the right table of an ASOF JOIN, and once")
            else:
                return

    def _once(self, found: exp.Expr, name: str, other: str = "") -> None:
        if found.args.get(name) or found.args.get(other):
            word = name.removeprefix("windrow_").upper()
            twice = f"{word} is given twice" if found.args.get(name) else "ON or USING, not both"
            self.raise_error(twice, self._prev)

    def _number(self, token: Token) -> exp.Literal:
        found = exp.Literal(this=token.text, is_string=False)
        found.meta.update({"start": token.start, "end": token.end})
        return found

    def _at_distance(self) -> bool:
        return self._is_word("WITHIN") and self._next.token_type in LENGTHS

    def _at_keys(self) -> bool:
        return self._is_word("KEYS") and self._next.token_type == TokenType.NUMBER

    def _is_word(self, word: str) -> bool:
        return self._curr.token_type == TokenType.VAR and self._curr.text.upper() == word

    def _at_pairing(self) -> bool:
        """Where a table can have no alias: the word is one of a join."""
        if self._is_word("MATCH_RECOGNIZE") and self._next.token_type == TokenType.L_PAREN:
            first = self._tokens[self._index + 2 : self._index + 3]
            if first and first[0].text.split(" ")[0].upper() in RECOGNIZING:
                self.raise_error(RECOGNIZE)
        matched = self._matched and self._is_word(CONDITION) and self._next.token_type == TokenType.L_PAREN
        return matched or self._is_following(self._index) or self._at_distance() or self._at_keys()

    # -- sequences -----------------------------------------------------------------------------------------------
    def _at_seq(self) -> bool:
        return self._is_word("SEQ") and self._next.token_type == TokenType.L_PAREN

    def _parse_seq(self) -> Seq:
        start = self._curr
        self._advance(2)
        found = Seq(expressions=self._parse_csv(self._parse_step))
        if not self._match(TokenType.R_PAREN):
            self.raise_error("Expected , or ) after a step of SEQ")
        while True:
            before = self._index
            self._parse_pairing(found, "within", "keys")
            if self._is_word("RECENT") or self._is_word("CHRONICLE"):
                self._advance()
                self._once(found, "matching")
                found.set("matching", self._word([self._prev]))
            elif self._at_words("AFTER", "MATCH"):
                self._parse_skip(found)
            if self._index == before:
                break
        found.meta.update({"start": start.start, "end": self._prev.end})
        if self._curr.token_type == TokenType.ALIAS or (self._is_word(self._curr.text.upper()) and not self._at_emit()):
            self.raise_error(
                "A sequence has no alias: its steps have names. RECENT or CHRONICLE, WITHIN, KEYS, ON or USING, and "
                "AFTER MATCH SKIP can stand here"
            )
        self._parse_after_seq(found)
        return found

    def _parse_skip(self, found: Seq) -> None:
        start = self._curr
        self._advance(2)
        self._once(found, "skip")
        if not self._match_text_seq("SKIP"):
            self.raise_error("Expected SKIP after AFTER MATCH")
        for words in SKIPS:
            if self._match_text_seq(*words):
                skip = exp.var(" ".join(words))
                skip.meta.update({"start": start.start, "end": self._prev.end})
                found.set("skip", skip)
                return
        self.raise_error("Expected TO NEXT ROW or PAST LAST ROW after AFTER MATCH SKIP")

    def _parse_step(self) -> Step:
        start = self._curr
        negated = bool(self._match(TokenType.NOT))
        table = self._parse_table()
        if table is None:
            self.raise_error("Expected a table as a step of SEQ")
        assert table is not None
        repeated = bool(self._match(TokenType.PLUS))
        if repeated and table.args.get("alias"):
            self.raise_error("The + stands right after the table, before its alias: payments+ b", self._prev)
        if repeated:
            self._parse_after_table(table)
        found = Step(this=table, negated=negated, repeated=repeated)
        found.meta.update({"start": start.start, "end": self._prev.end})
        return found

    def _parse_after_table(self, table: exp.Expr) -> None:
        """An alias and the clauses of a table, behind the + of a step."""
        self._parse_late_alias(table)
        self._parse_punctuated(table)
        self._parse_clause(table)

    def _parse_after_seq(self, found: Seq) -> None:
        """The window over a sequence."""
        if self._at_table_union():
            self.raise_error("A union of a sequence is one of queries: SELECT .. FROM SEQ(..) UNION ALL SELECT ..")
        if self._at_clause():
            found.set(CLAUSE, self._parse_stream_window())

    def _at_emit(self) -> bool:
        return self._at_words("EMIT", "EARLY")
