"""What joins hold: Figures 8-4 and 8-5 of the thesis, one row every ten seconds on each side."""

import polars as pl
import pytest

from windrow.operators import OpobJoin, WindowJoin
from windrow.progress import Punctuation
from windrow.windows.pairing import Within

MINUTE = 6  # in units of ten seconds
TYPES = {"a": pl.Int64()}, {"b": pl.Int64()}


def joined(left, right, **options):
    """[RANGE left] on S0 and [RANGE right] on S1, in minutes; no other condition."""
    return WindowJoin([], Within(1 - right * MINUTE, left * MINUTE - 1), TYPES, **options)


def run(join, minutes, delay=0, each=lambda _: None):
    """Both streams row by row. A fifth of the rows of S0 is ``delay`` minutes late; it promises so much less."""
    for now in range(minutes * MINUTE + 1):
        times = [now] if now % 5 or not delay else []
        late = now - delay * MINUTE
        times += [late] if delay and late >= 0 and late % 5 == 0 else []
        each(join.on_batch(0, pl.DataFrame({"@t": times, "a": times}, schema={"@t": pl.Int64, "a": pl.Int64})))
        each(join.on_batch(1, pl.DataFrame({"@t": [now], "b": [now]})))
        each(join.on_punctuation(0, Punctuation(late if delay else now + 1)))
        each(join.on_punctuation(1, Punctuation(now + 1)))
    return join


def held(side):
    """The times of the rows that a side holds."""
    runs = side.rows.runs.values()
    return sorted(t for r in runs for t, here in zip(r.times, r.here(side.rows.limit), strict=True) if here)


def test_figure_8_4_a_join_holds_two_minutes_of_s0_and_seven_of_s1():
    """Rows of S0 leave by the promise of S1, which is on time. Those of S1 wait for that of S0, 5 minutes behind, and 2
    minutes more for the window. The text says 5 minutes of S1, and that in-order evaluation holds 7 of it and 5 of S0.
    What it says is saved, "3 minutes less of S0", is right; S1 is the same in both.
    """
    now = 20 * MINUTE
    s0, s1 = run(joined(2, 2), 20, delay=5).sides
    # Rows that come 5 minutes late find all their partners then, and are not kept. The promise of S1 is now + 1.
    assert held(s0) == [t for t in range(now + 2 - 2 * MINUTE, now + 1) if t % 5]
    assert held(s1) == list(range(now + 1 - 7 * MINUTE, now + 1))


def test_figure_8_4_as_printed_five_minutes_of_s1_would_lose_results():
    """A row of S0 that comes 5 minutes late, and its partner that is 2 minutes older."""
    left, right = 0, 1 - 2 * MINUTE
    join = joined(2, 2)
    join.on_batch(1, pl.DataFrame({"@t": [right], "b": [right]}))
    now = left + 5 * MINUTE
    join.on_punctuation(1, Punctuation(now))
    join.on_punctuation(0, Punctuation(now - 5 * MINUTE))
    assert now - right > 5 * MINUTE
    pairs, _ = join.on_batch(0, pl.DataFrame({"@t": [left], "a": [left]}))
    assert pairs.rows() == [(left, right, left)]


@pytest.mark.parametrize(("ranges", "buffered"), [((3, 2), 3), ((2, 3), 2)])
def test_figure_8_5_in_order_of_s0_the_results_of_a_whole_range_of_s0_are_buffered(ranges, buffered):
    """Both streams are at minute 6. A row of S0 meets rows of S1 that come within its own RANGE, so the results of the
    last RANGE of S0 wait: 3 minutes with [RANGE 3] on S0. The figure has 2, minutes 4 to 6: it takes the RANGE of S1,
    as the band in 5.2.1 does that is printed the wrong way round.
    """
    waiting = buffered_times(run(OpobJoin(joined(*ranges, on="left")), 6))
    # The promise of the results is a unit beyond the first time that a row can still add to, and covers that time.
    assert (min(waiting), max(waiting)) == ((6 - buffered) * MINUTE + 3, 6 * MINUTE)
    at_once = []
    run(joined(*ranges, on="left"), 6, each=at_once.extend)
    assert sum(item.height for item in at_once if isinstance(item, pl.DataFrame)) > 2 * len(waiting)


def buffered_times(join):
    """The times on S0 of the results that wait."""
    return [t for frame in join.buffer.snapshot().values() if "a" in frame.columns for t in frame["a"].to_list()]
