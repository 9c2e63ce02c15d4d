"""AsOfJoin: each left row beside the right row that is nearest in time, whatever the order of arrival.

``B FOLLOWING RECENT A`` of Bai et al. (section 5, Figure 12) is the strategy "backward", with B on the left. There
the register of A says that the next A is later; here a promise of the right side does.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import polars as pl

from windrow.errors import DataError
from windrow.operators.joins.condition import Condition
from windrow.operators.joins.finished import Named
from windrow.operators.kernels.nearest import Spots
from windrow.operators.operator import Item, Wait, joined_and_freed
from windrow.operators.sequences.beside import Partners, Types, beside
from windrow.operators.sequences.candidates import Found, Looking
from windrow.operators.state.as_of_side import AsOfSide
from windrow.operators.state.inputs import Input, Inputs, Storing, part_of
from windrow.operators.state.join_side import JoinSide, Run, hashed
from windrow.operators.state.late import on_time_of_side
from windrow.operators.state.waiting import Waiting
from windrow.progress import END, START, Punctuation
from windrow.spec.batches import Batch, State
from windrow.spec.names import PROGRESS
from windrow.windows.tuples import Bools, Ints


@dataclass(frozen=True)
class Nearness:
    """Which right row is wanted; the fields are those of the node ``AsOf``."""

    strategy: str = "backward"
    exact: bool = True
    tolerance: int | None = None

    @property
    def back(self) -> bool:
        return self.strategy != "forward"

    @property
    def ahead(self) -> bool:
        return self.strategy != "backward"


BACKWARD = Nearness()


class AsOfJoin(Storing):
    """A left row is paired when the promise of the right side says that no nearer row can come.

    Left rows wait for that, first for a promise beyond their own time. Looking back that is enough. Looking ahead they
    then wait for the next right row, or until it would be too far. Right rows are kept until the left side has
    promised beyond them; then the latest of each key stays (``AsOfSide``), as far as the tolerance goes.

    ``types``: the columns of each side that results have. ``ties``: the columns of right rows that order those with
    equal times. ``outer``: left rows without a partner come out. ``most_keys``: more stop the query. ``named``: how
    promises of a side name single keys, if they do. ``forever``: a key of which so much is promised is finished.

    >>> types = {"k": pl.Int64(), "a": pl.String()}, {"b": pl.String()}
    >>> join = AsOfJoin(["@k"], types, ties=["b"])
    >>> join.on_batch(0, pl.DataFrame({"@k": [1], "@t": [10], "k": [1], "a": ["x"]}))
    []
    >>> join.on_batch(1, pl.DataFrame({"@k": [1, 1, 1], "@t": [7, 9, 12], "b": ["u", "v", "w"]}))
    []
    >>> join.on_punctuation(1, Punctuation(11))[0].rows()
    [(1, 'x', 'v', 10)]
    """

    def __init__(
        self,
        keys: Sequence[str],
        types: tuple[Types, Types],
        nearness: Nearness = BACKWARD,
        *,
        ties: Sequence[str] = (),
        outer: bool = False,
        where: pl.Expr | None = None,
        most_keys: int | None = None,
        late: tuple[str, str] = ("drop", "drop"),
        named: tuple[Named | None, Named | None] = (None, None),
        forever: int = END,
    ) -> None:
        self.keys = list(keys)
        self.types = dict(types[0]), dict(types[1])
        self.near = nearness
        self.outer = outer
        self.condition = None if where is None else Condition(where)
        self.most_keys = most_keys
        self.late = late
        self.forever = forever
        self.inputs = Inputs(named)
        self.waiting = Waiting()  # left rows that the right side has not promised beyond
        self.open = JoinSide(keys)  # left rows that it has, which may still find a nearer partner
        # With a condition the latest row of a key is not enough: an earlier one can be the latest for which it is true.
        self.right = AsOfSide(keys, ties, latest=nearness.back and where is None)
        test = None if where is None else self._test
        self.looking_back = Looking(True, nearness.exact, nearness.tolerance, test)
        self.looking_ahead = Looking(False, nearness.exact, nearness.tolerance, test)
        self.last_alike = Looking(True, True, None, test)

    # -- rows --------------------------------------------------------------------------------------------------
    def on_batch(self, port: int, batch: Batch) -> list[Item]:
        own = self.inputs[port]
        rows, late = on_time_of_side(batch, own.about(batch), self.late[port])
        if not rows.height:
            return late
        return [*(self._from_left(rows) if port == 0 else self._from_right(rows)), *late]

    def _from_left(self, rows: Batch) -> list[Item]:
        right = self.inputs[1]
        promised = right.about(rows)
        if any(rows[key].null_count() for key in self.keys):  # NULL equals nothing: there is nothing to wait for
            there = rows.select(pl.all_horizontal(pl.col(self.keys).is_not_null())).to_series()
            alone = rows.filter(~there)
            rows = rows.filter(there)
            promised = promised.filter(there) if isinstance(promised, pl.Series) else promised
            return [*self._out(alone, Found.nothing(alone.height)), *self._sorted_out(rows, promised)]
        return self._sorted_out(rows, promised)

    def _sorted_out(self, rows: Batch, promised: int | pl.Series) -> list[Item]:
        """Rows that the right side has promised beyond are looked at; the others wait."""
        final = rows[PROGRESS] < (self._below(promised) if isinstance(promised, int) else promised + self._extra)
        begin = rows.height if final.all() else int(final.arg_min())  # type: ignore[arg-type]
        # Most rows come in order, so that those which wait are at the end: what is before them need not be copied.
        rest, last = rows[begin:], final[begin:]
        self.waiting.push(rest.filter(~last))
        parts = (part for part in (rows[:begin], rest.filter(last)) if part.height)
        return [item for part in parts for item in self._settled(part)]

    def _from_right(self, rows: Batch) -> list[Item]:
        left = self.inputs[0]
        useful = rows[PROGRESS] >= self.right.limit
        promised = left.about(rows)
        if isinstance(promised, pl.Series) and self.near.back:
            useful &= pl.Series(~self._finished(promised.to_numpy(), left))
        if not useful.all():
            self.right.freed += rows.height - int(useful.sum())
            rows = rows.filter(useful)
        rows = hashed(rows, self.keys)
        self.right.push(rows, np.zeros(rows.height, np.bool_))
        self._check_keys()
        return self._freed()

    def _check_keys(self) -> None:
        if self.most_keys is None:
            return
        if (keys := self.right.number_of_keys(self.most_keys)) > self.most_keys:
            raise DataError(
                f"the as-of join holds rows of {keys} keys in one shard, and the query accepts {self.most_keys}. "
                "Accept more, give a greatest distance, or let the left stream say which keys are finished"
            )

    # -- pairs -------------------------------------------------------------------------------------------------
    def _settled(self, rows: Batch) -> list[Item]:
        """Left rows that the right side has just promised beyond: pairs, or rows that go on waiting."""
        found, done = self._looked(rows)
        if done is None or done.all():
            return self._out(rows, found)
        rest = hashed(rows.filter(pl.Series(~done)), self.keys)
        self.open.push(rest, np.zeros(rest.height, np.bool_))
        at = np.flatnonzero(done)
        return self._out(rows[at], _of(found, at)) if len(at) else []

    def _looked(self, rows: Batch) -> tuple[Found, Bools | None]:
        """The nearest rows so far, and for which rows that is final (None: for all)."""
        if not self.near.ahead:
            return self.looking_back.nearest(self.right, rows), None
        promised = np.asarray(self.inputs[1].about(rows))
        times, below = rows[PROGRESS].to_numpy(), int(promised.max())
        ahead = self.looking_ahead.nearest(self.right, rows, below)
        ahead.run[ahead.time >= promised] = -1  # of this key less is promised than of others
        if self.near.strategy == "forward":
            return ahead, ahead.there | self._too_far(times, promised)
        back = self.looking_back.nearest(self.right, rows)
        # What is beyond the promise is farther away than it; at the same distance the later row would win.
        sure = back.there & (times - back.time < promised - times)
        done = ahead.there | sure | self._too_far(times, promised)
        return self._nearer(rows, times, back, ahead), done

    def _nearer(self, rows: Batch, times: Ints, back: Found, ahead: Found) -> Found:
        """Of both the nearer one, the later if they are equally near; of rows with its time the last one."""
        chosen = np.flatnonzero(ahead.there & (~back.there | (ahead.time - times <= times - back.time)))
        if len(chosen):
            at = rows[chosen].with_columns(pl.Series(PROGRESS, ahead.time[chosen]))
            last = self.last_alike.nearest(self.right, at)
            back.run[chosen], back.place[chosen], back.time[chosen] = last.run, last.place, last.time
        return back

    def _too_far(self, times: Ints, promised: Ints) -> Bools:
        """For which rows a right row that is still to come would be too far."""
        over = self._finished(promised, self.inputs[1])
        far = self.near.tolerance
        if far is None:
            return np.broadcast_to(over, times.shape)
        return np.asarray((times < np.where(promised == END, END, promised - far)) | over)

    def _finished(self, promised: Ints, of: Input) -> Bools:
        """Of which rows the key is finished: a promise about the key alone says so, or the end of the input."""
        return np.asarray((promised == END) | ((promised >= self.forever) & (promised > of.promised)))

    def _test(self, rows: Batch, mine: Spots, run: Run, places: Spots) -> Bools:
        assert self.condition is not None
        return self.condition.holds(beside(rows[mine], [Partners(run.frame, places)], self.types))[0]

    def _out(self, rows: Batch, found: Found) -> list[Item]:
        """Results: pairs, and rows without a partner where they are wanted."""
        there = found.there
        joined = int(there.sum())
        freed = rows.height - joined
        if not self.outer and joined < rows.height:
            at = np.flatnonzero(there)
            rows, found, there = rows[at], _of(found, at), there[at]
        partners: list[Partners] = []
        for number in self.right.runs:
            here = found.run == number
            whole = bool(here.all())
            mine = None if whole else np.flatnonzero(here)
            places = found.place if mine is None else found.place[mine]
            if len(places):
                partners.append(Partners(self.right.runs[number].frame, places, mine))
                joined += len(self.right.match(number, places))
        items: list[Item] = [beside(rows, partners, self.types)] if rows.height else []
        return items + joined_and_freed(joined, freed)

    # -- promises ----------------------------------------------------------------------------------------------
    @property
    def _extra(self) -> int:
        """A left row whose partner must be earlier need not wait for right rows with its own time."""
        return 0 if self.near.exact or self.near.ahead else 1

    def _below(self, promised: int) -> int:
        """Left rows below this are final, or can be looked at."""
        return promised if promised in (START, END) else promised + self._extra

    def on_punctuation(self, port: int, promise: Punctuation) -> list[Item]:
        own = self.inputs[port]
        if promise.value <= own.promised:
            return []
        if promise.group is not None:
            return self._about_key(port, promise)
        own.take(promise)
        items: list[Item] = []
        if port == 1:
            items += self._look_again()
            rows = self.waiting.take(self._below(promise.value))
            items += self._settled(rows) if rows is not None else []
        self._free()
        return [*items, *self._freed(), *self._news()]

    def _look_again(self) -> list[Item]:
        """Rows that look ahead, once more: a partner may have come, or be too far by now."""
        items: list[Item] = []
        for number, run in list(self.open.runs.items()):
            at = np.flatnonzero(run.here(START))
            if len(at):
                items += self._close(number, run, at)
        self.open.shrink()
        return items

    def _close(self, number: int, run: Run, at: Spots) -> list[Item]:
        whole = len(at) == run.frame.height
        rows = run.frame if whole else run.frame[at]
        found, done = self._looked(rows)
        assert done is not None
        if not done.any():
            return []
        chosen = np.flatnonzero(done)
        self.open.leave(number, at[chosen].astype(np.uint32))
        return self._out(rows[chosen], _of(found, chosen))

    def _about_key(self, port: int, promise: Punctuation) -> list[Item]:
        """A promise about one key."""
        key = self.inputs[port].finished.give(promise)
        if key is None:
            return []
        items: list[Item] = []
        if port == 1:
            rows = self.waiting.take_key(key, self._below(promise.value))
            items += self._settled(rows) if rows is not None else []
            for number, places in list(self.open.of_key(key, END)):
                items += self._close(number, self.open.runs[number], places.astype(np.int64))
            self.open.shrink()
        elif promise.value >= self.forever:
            for number, places in list(self.right.of_key(key, END)):
                run = self.right.runs[number]
                self.right.freed += int((~run.matched[places]).sum())
                self.right.leave(number, places)
            self.right.shrink()
        self._free()
        return [*items, *self._freed(), *self._news()]

    def _free(self) -> None:
        """Right rows that no left row can be paired with."""
        self.right.settle(self._least_left())
        self.right.forget(self._least_right())

    def _least_right(self) -> int:
        """The least time of a right row that is near enough to a left row that may still be paired with it."""
        left, far = self._least_left(), self.near.tolerance
        if left in (START, END) or not self.near.back:
            return left
        return START if far is None else left - far

    def _least_left(self) -> int:
        """The least time of a left row that may still look back, or at what is there."""
        least = min(self.inputs[0].promised, self._below(self.inputs[1].promised))
        if self.near.strategy == "nearest" and (first := self.open.first()) is not None:
            least = min(least, first)
        return least

    def _freed(self) -> list[Item]:
        return joined_and_freed(0, self.right.take_freed())

    def _news(self) -> list[Punctuation]:
        """A result that is still to come has a left row that is to come, or one that waits."""
        left, right = self.inputs
        value = min(left.promised, self._below(right.promised))
        if (first := self.open.first()) is not None:
            value = min(value, first)
        return self.inputs.news(value, 0)

    def waits_for(self) -> list[Wait]:
        """What the first left row waits for, and what lets the first right row go."""
        found = []
        left, right = self.inputs
        held = self.waiting.height + self.open.height
        if held:
            size = self.waiting.state_bytes() + self.open.state_bytes()
            first = [t for t in (self.waiting.first(), self.open.first()) if t is not None]
            needed = min(min(first) + 1 - self._extra, END)
            if self.near.ahead and needed <= right.promised:
                needed = right.promised + 1
            found.append(Wait(1, needed, right.promised, "rows", held, size))
        if self.right.height:
            first_right = self.right.first() or 0
            needed = first_right + 1 if left.promised <= first_right else left.promised + 1
            found.append(Wait(0, needed, left.promised, "rows", self.right.height, self.right.state_bytes()))
        return found

    # -- state -------------------------------------------------------------------------------------------------
    def stores(self) -> Iterator[tuple[str, Waiting | JoinSide]]:
        yield from (("waiting", self.waiting), ("open", self.open), ("right", self.right))

    def restore(self, state: State) -> None:
        self.inputs.restore(state)
        self.waiting.restore(part_of(state, "waiting"), self._below(self.inputs[1].promised))
        self.open.restore(part_of(state, "open"), START)
        self.right.restore(part_of(state, "right"), self._least_right(), self._least_left())


def _of(found: Found, at: Spots) -> Found:
    return Found(found.run[at], found.place[at], found.time[at])
