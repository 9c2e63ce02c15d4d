"""The queries of a session: which there are, since when, and what became of them: what its folder keeps."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any, Literal

from windrow.errors import CheckpointError, PlanError, QueryError, listing
from windrow.graph import named
from windrow.hosts.strategies import DEFAULT, Strategies
from windrow.logical.explain import text
from windrow.logical.nodes import Node
from windrow.planner import Common, Given, Group, plan_group, units_of

FORMAT = 1
NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]{0,99}")
Status = Literal["running", "paused", "failed", "dropped"]


@dataclass
class Standing:
    """A query of a session. ``number`` is never given again, ``name`` is free again once the query was dropped.

    ``sql``: its text, if it was given as SQL, and can be planned from that; ``text``: what identifies it in any case.
    ``first`` and ``end``: the first micro-batch that it takes rows of, and the first that it does not any more;
    ``pauses``: the same for each time in between when it took none.
    """

    number: int
    name: str
    text: str
    sql: str | None
    first: int
    status: Status = "running"
    end: int | None = None
    error: str | None = None
    pauses: list[list[int | None]] = field(default_factory=list)
    rows_out: int = 0
    rows_late: int = 0
    rows_bad: int = 0
    strategy: str | None = None  # its own, by name

    @property
    def alive(self) -> bool:
        """Whether its state is needed."""
        return self.status in ("running", "paused")


@dataclass
class Together:
    """Queries that began at the same moment and share state, or one alone. Who was dropped stays here as long as
    another is there: they are planned as they were.
    """

    first_stage: int
    stages: int
    queries: list[Standing]
    choices: dict[str, str] = field(default_factory=dict)  # the algorithms of the first start, by aggregation

    def check(self, nodes: Mapping[str, Node]) -> None:
        """Refuse queries that are not what they were when they were added."""
        for query in self.queries:
            if (now := text(nodes[query.name])) != query.text:
                raise CheckpointError(
                    f"query {query.name!r} is not what it was in this session:\n  {query.text}\nnow:\n  {now}\n"
                    "Give it, and the streams that it is over, as they were. To change it, open the session as it was, "
                    "drop the query, and add it anew"
                )

    def alive(self) -> list[str]:
        """The names of the queries whose state is needed."""
        return [query.name for query in self.queries if query.alive]

    def still_needs(self, name: str) -> bool:
        """Whether a dropped query with this name must be given again, in a restart, for the sake of the others."""
        return any(q.name == name and q.status == "dropped" and q.sql is None for q in self.queries)

    @property
    def number(self) -> int:
        """Of its first query. Its first stage does not identify it: a group of filters has none."""
        return self.queries[0].number


@dataclass
class Registry:
    """All queries of a session, in groups."""

    groups: list[Together] = field(default_factory=list)
    next_query: int = 0
    next_stage: int = 0
    ended: list[Standing] = field(default_factory=list)  # of groups that nothing is left of
    dropped_streams: list[str] = field(default_factory=list)  # no query can be added over them
    strategy: str = DEFAULT  # of all queries without their own

    # -- looking -----------------------------------------------------------------------------------------------
    def __iter__(self) -> Iterator[Standing]:
        return (query for group in self.groups for query in group.queries if query.status != "dropped")

    def names(self) -> list[str]:
        return [query.name for query in self]

    def find(self, name: str) -> Standing:
        for query in self:
            if query.name == name:
                return query
        raise QueryError(f"there is no query {name!r} in this session; available: {listing(self.names())}")

    def check_new(self, names: Sequence[str]) -> None:
        """Refuse names that are taken, or that no file could have."""
        for name in names:
            if not isinstance(name, str) or not NAME.fullmatch(name):
                raise QueryError(
                    f"{name!r} is not a name for a query: use up to 100 letters, digits, '_', '-' and '.', of which "
                    "the first is not '-' or '.'"
                )
            if name in self.names():
                raise QueryError(f"there is a query {name!r} already: drop it first, or use another name")
            if sharing := [group.alive() for group in self.groups if group.still_needs(name)]:
                raise QueryError(
                    f"there was a query {name!r}, and {listing(sharing[0])} still share its state: use another name, "
                    "or drop them first"
                )

    def began_at(self, at: int) -> list[Standing]:
        """The queries that have begun with a micro-batch, and are in groups where nothing else has happened."""
        fresh = (group for group in self.groups if all(q.status == "running" and not q.pauses for q in group.queries))
        return [query for group in fresh for query in group.queries if query.first == at]

    def check_paused(self) -> None:
        """Refuse some queries of a group paused, and others running."""
        for group in self.groups:
            alive = [query for query in group.queries if query.alive]
            if len({query.status for query in alive}) > 1:
                names = listing(query.name for query in alive)
                raise PlanError(f"these queries began together and share state: pause all of them: {names}")

    # -- changes -----------------------------------------------------------------------------------------------
    def add(
        self, new: Mapping[str, str | None], nodes: Mapping[str, Node], at: int, common: Common, given: Given
    ) -> list[tuple[Together, Group]]:
        """Queries that begin with micro-batch ``at``, each with its SQL, if it was given as SQL; returns the groups
        that they are in.

        ``nodes``: what they mean, and also what queries mean that have begun with the same rows and have seen none yet.
        Where these can share state with the new ones, they leave their groups, and are planned anew.
        """
        again = {query.name: query for query in self if query.name in nodes}
        before = [group for group in self.groups if any(query.name in again for query in group.queries)]
        as_they_were = {frozenset(group.alive()) for group in before}
        found: list[tuple[Together, Group]] = []
        for names in units_of(nodes, given):
            if frozenset(names) in as_they_were:
                continue
            planned = plan_group({name: nodes[name] for name in names}, self.next_stage, common, given)
            queries = [again[name] if name in again else self._new(name, nodes[name], new[name], at) for name in names]
            found.append((Together(self.next_stage, planned.stages, queries, planned.choices()), planned))
            self.next_stage += planned.stages
        moved = {query.number for group, _ in found for query in group.queries}
        self.groups = [g for g in self.groups if not any(query.number in moved for query in g.queries)]
        self.groups += [group for group, _ in found]
        return found

    def _new(self, name: str, node: Node, sql: str | None, at: int) -> Standing:
        number, self.next_query = self.next_query, self.next_query + 1
        return Standing(number, name, text(node), sql, at)

    def drop(self, name: str, end: int) -> Standing:
        query = self.find(name)
        query.status, query.end = "dropped", end if query.end is None else query.end
        self._forget()
        return query

    def fail(self, number: int, error: str, end: int) -> Standing:
        """The query raised an error in micro-batch ``end``: nothing of that micro-batch counts."""
        [query] = [query for query in self if query.number == number]
        query.status, query.end, query.error = "failed", end, error
        return query

    def pause(self, name: str, at: int) -> Standing:
        query = self._expect(name, "running", "it can be paused")
        query.status = "paused"
        query.pauses.append([at, None])
        return query

    def resume(self, name: str, at: int) -> Standing:
        query = self._expect(name, "paused", "it can be resumed")
        query.status = "running"
        query.pauses[-1][1] = at
        return query

    def set_strategy(self, strategy: str, name: str | None = None) -> None:
        """Of one query, or of all."""
        known = str(named(strategy))
        if name is not None:
            self.find(name).strategy = known
            return
        self.strategy = known
        for query in self:
            query.strategy = None

    def strategies(self) -> Strategies:
        return Strategies(self.strategy, {q.number: q.strategy for q in self if q.strategy is not None})

    def _expect(self, name: str, status: Status, what: str) -> Standing:
        query = self.find(name)
        if query.status != status:
            raise QueryError(f"query {name!r} is {query.status}, and only a query that is {status} {what[3:]}")
        return query

    def _forget(self) -> None:
        """Groups that nobody needs the plan of any more."""
        for group in [g for g in self.groups if all(q.status == "dropped" for q in g.queries)]:
            self.groups.remove(group)
            self.ended += group.queries
        del self.ended[:-100]

    # -- storage -----------------------------------------------------------------------------------------------
    def to_json(self) -> dict[str, Any]:
        return {"format": FORMAT, **asdict(self)}

    @classmethod
    def from_json(cls, given: Mapping[str, Any]) -> Registry:
        try:
            if given["format"] != FORMAT:
                raise CheckpointError(f"the session has format {given['format']}, and this version reads {FORMAT}")
            groups = [
                Together(g["first_stage"], g["stages"], [Standing(**q) for q in g["queries"]], g["choices"])
                for g in given["groups"]
            ]
            ended = [Standing(**q) for q in given["ended"]]
            dropped = [str(name) for name in given["dropped_streams"]]
            strategy = str(given["strategy"])
            return cls(groups, int(given["next_query"]), int(given["next_stage"]), ended, dropped, strategy)
        except (KeyError, TypeError, ValueError) as error:
            raise CheckpointError(f"the record of this session is torn or foreign: {error!r}") from None

    def copy(self) -> Registry:
        """For a change that may still be given up."""
        return Registry.from_json(json.loads(json.dumps(self.to_json())))
