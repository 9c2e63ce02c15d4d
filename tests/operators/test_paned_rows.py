"""PanedRows: rows that wait are seen by nobody, and are there for whoever looks."""

import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from windrow.aggregates import Partials, make
from windrow.operators import PLAIN, Options, Paned, PanedRows, Panes, Windowing
from windrow.operators.windows import paned_rows
from windrow.operators.windows.paned_rows import FEW, takes_rows
from windrow.progress import END, Punctuation
from windrow.windows import Sliding

CHECK = settings(deadline=None, derandomize=True, max_examples=60)
WINDOW = Sliding(10, 5)
NUMBERS = Partials([make("count", "n", None, pl.Int64()), make("sum", "s", "x", pl.Int64())])
ROWS = st.lists(st.tuples(st.integers(0, 40), st.sampled_from("ab"), st.integers(0, 9) | st.none()), max_size=12)
LOOKS = st.sampled_from(["snapshot", "restore", "changes", "waits_for", "state_bytes"])


def windowing(window=WINDOW, aggregates=NUMBERS, options=PLAIN):
    return Windowing(window, ("k",), aggregates, options=options)


def frame(rows):
    return pl.DataFrame(rows, {"@t": pl.Int64, "k": pl.String, "x": pl.Int64}, orient="row")


class Level:
    """A window level behind its pane level, and all that has come out of it."""

    def __init__(self, operator, few, what):
        self.operator, self.panes = operator, Panes(WINDOW, ["k"], NUMBERS, what.options, few)
        self.stored, self.seen = {}, []

    def give(self, item):
        if isinstance(item, Punctuation):
            fed = self.panes.on_punctuation(0, item)
            self.seen += [x for each in fed for x in self.operator.on_punctuation(0, each)]
        else:
            self.seen += [x for each in self.panes.on_batch(0, frame(item)) for x in self.operator.on_batch(0, each)]

    def look(self, how):
        if how == "restore":
            self.operator.restore(self.operator.snapshot())
        elif how == "changes":
            self.stored |= self.operator.changes()
            now = {
                name: held for name, held in self.operator.snapshot().items() if name != "closed"
            }  # at first it is known
            kept = {name: held for name, held in self.stored.items() if held is not None and name != "closed"}
            assert kept.keys() == now.keys()
            assert all(kept[name].equals(now[name]) for name in now)
        elif how == "waits_for":
            return [(wait.promise, wait.since) for wait in self.operator.waits_for()]
        elif how == "snapshot":
            return sorted(name for name in self.operator.snapshot() if not name[0].isdigit())
        return None

    def out(self):
        return [sorted(x.rows()) if isinstance(x, pl.DataFrame) else x for x in self.seen]


@pytest.mark.parametrize("generous", [False, True])
@given(items=st.lists(ROWS | st.integers(0, 40).map(Punctuation) | LOOKS, max_size=20))
@CHECK
def test_it_gives_what_paned_gives_whoever_looks_between(generous, items):
    what = windowing(options=Options(generous=generous))
    fast, slow = Level(PanedRows(what), FEW, what), Level(Paned(what), 0, what)
    restored = False
    for item in [*items, Punctuation(END)]:
        restored |= item == "restore"
        if isinstance(item, str):
            if item != "changes" or not restored:  # what was stored before is then not what it began with
                assert fast.look(item) == slow.look(item)
        else:
            fast.give(item)
            slow.give(item)
            assert fast.out() == slow.out()


def test_many_rows_do_not_wait_for_a_promise(monkeypatch):
    monkeypatch.setattr(paned_rows, "MANY", 4)
    operator = PanedRows(windowing())
    waiting = []
    for t in range(10):
        operator.on_batch(0, frame([(t, "a", 1)]))
        waiting.append(len(operator._loose))
    assert waiting == [1, 2, 3, 0, 1, 2, 3, 0, 1, 2]


def test_what_waits_is_gone_when_another_state_is_restored():
    operator = PanedRows(windowing())
    empty = operator.snapshot()
    operator.on_batch(0, frame([(1, "a", 1)]))
    operator.restore(empty)
    assert operator.snapshot().keys() == empty.keys()


def test_rows_wait_only_where_nothing_needs_their_partials():
    assert takes_rows(windowing())
    assert not takes_rows(windowing(window=Sliding(5, 10))), "rows in gaps"
    assert not takes_rows(windowing(aggregates=Partials([make("count_distinct", "n", "x", pl.Int64())])))
    for options in (Options(early=5), Options(late="revise", keep=10), Options(empty=True)):
        assert not takes_rows(windowing(options=options))
