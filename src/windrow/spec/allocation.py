"""How a join that is short of time or memory shares them between its two streams (Kang, Eqs. 9 to 14).

Rates are rows per unit of progress, windows are in that unit, memory is in rows. A limit on the rate sheds rows at the
input (the paper's CTVA), one on the state shortens windows (VTCA), both do both (VTVA). No stream is given more than
it has, and what it cannot use goes to the other.

Two statements of the paper do not hold as printed; ``tests/spec/test_allocation.py`` shows both. Section 4.3 lets a
window take all memory, although Eq. 12 has T' <= T: the rest goes to the other window. And sigma mu M, the greatest
rate of Eq. 14, is reached by no window of finite length: rows must come in to fill it, and M/T of the rate is spent on
them.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

from windrow.errors import PlanError, listing

RatePolicy = Literal["equal", "proportional", "inverse", "window-proportional", "window-inverse"]
StatePolicy = Literal["slower", "faster", "proportional", "inverse", "equal"]
BothPolicy = Literal[
    "best",
    "left-window/right-rate",
    "right-window/left-rate",
    "equal",
    "left-window/left-rate",
    "right-window/right-rate",
]
RATE_POLICIES: tuple[RatePolicy, ...] = ("equal", "proportional", "inverse", "window-proportional", "window-inverse")
STATE_POLICIES: tuple[StatePolicy, ...] = ("slower", "faster", "proportional", "inverse", "equal")
BOTH_POLICIES: tuple[BothPolicy, ...] = (
    "best",
    "left-window/right-rate",
    "right-window/left-rate",
    "equal",
    "left-window/left-rate",
    "right-window/right-rate",
)
Two = tuple[float, float]
LEFT: Two = (1.0, 0.0)
RIGHT: Two = (0.0, 1.0)
EQUAL: Two = (1.0, 1.0)


@dataclass(frozen=True)
class Allocation:
    """What each stream gets: rows per unit of progress, the length of its window, and the rows in that."""

    rates: Two
    windows: Two
    rows: Two

    def recall(self, rates: Two, windows: Two) -> float:
        """The estimated share of the results that the join has without a limit. It is 1 if that has none."""
        whole = output_rate(1.0, rates, windows)
        return min(output_rate(1.0, self.rates, self.windows) / whole, 1.0) if whole else 1.0


def output_rate(selectivity: float, rates: Two, windows: Two) -> float:
    """Eqs. 9, 10, 13 and 14: results per unit of progress. Each arrival meets the rows of the other window.

    >>> output_rate(0.02, (5, 5), (9, 1))
    5.0
    """
    return selectivity * rates[0] * rates[1] * (windows[0] + windows[1])


def policies(max_rate: float | None, max_state: float | None) -> tuple[str, ...]:
    """The names of ways to share what these limits leave, the default first. Without a limit there are none."""
    if max_rate is not None and max_state is not None:
        return BOTH_POLICIES
    if max_rate is not None:
        return RATE_POLICIES
    return STATE_POLICIES if max_state is not None else ()


def checked_limits(max_rate: float | None, max_state: float | None, policy: str | None) -> None:
    """Refuse limits that leave nothing, and a policy that does not fit them."""
    for name, limit in (("max_rate", max_rate), ("max_state", max_state)):
        if limit is not None and not limit > 0:
            raise PlanError(f"{name} must be above 0, not {limit}: the join would have no rows")
    known = policies(max_rate, max_state)
    if policy is not None and not known:
        raise PlanError(f"share={policy!r} shares what a limit leaves: give max_rate, max_state or both")
    if policy is not None and policy not in known:
        limits = " and ".join(n for n, x in (("max_rate", max_rate), ("max_state", max_state)) if x is not None)
        raise PlanError(f"{limits} cannot be shared by {policy!r}; share can be {listing(known)}")


def allocate(
    rates: Two,
    windows: Two,
    max_rate: float | None,
    max_state: float | None,
    policy: str | None = None,
    holder: int | None = None,
) -> Allocation:
    """Share the limits between the streams. ``holder``: for the policies that look for the stream whose window comes
    first, the one that it is: a join that runs does not change it for a small gain.

    >>> allocate((80, 20), (9, 1), max_rate=10, max_state=None)
    Allocation(rates=(5.0, 5.0), windows=(9, 1), rows=(45.0, 5.0))
    >>> allocate((10, 50), (60, 60), max_rate=None, max_state=500).rows
    (500.0, 0.0)
    >>> allocate((10, 50), (60, 60), max_rate=None, max_state=1000).rows  # the slower stream has no more than 600
    (600, 400)
    """
    checked_limits(max_rate, max_state, policy)
    if max_rate is not None and max_state is not None:
        return _both(rates, windows, max_rate, max_state, policy or BOTH_POLICIES[0], holder)
    if max_rate is not None:
        return _filled(_by_rate(rates, windows, max_rate, policy or RATE_POLICIES[0]), windows, None, EQUAL)
    return _filled(rates, windows, max_state, state_shares(rates, policy or STATE_POLICIES[0], holder))


def split(total: float, shares: Two, most: Two) -> Two:
    """A total by shares. Nobody gets more than its most, and what one cannot use the other gets.

    >>> split(10, (1, 1), (3, 100)), split(10, (1, 0), (3, 4))
    ((3, 7), (3, 4))
    """
    if total >= most[0] + most[1]:
        return most
    whole = shares[0] + shares[1]
    left = min(total * (shares[0] / whole if whole else 0.5), most[0])
    right = min(total - left, most[1])
    return min(total - right, most[0]), right


def _filled(rates: Two, windows: Two, max_state: float | None, shares: Two) -> Allocation:
    """Windows as long as memory allows, which goes by shares."""
    most = rates[0] * windows[0], rates[1] * windows[1]
    rows = most if max_state is None else split(max_state, shares, most)
    fit = [w if have >= full else have / rate for rate, w, have, full in zip(rates, windows, rows, most, strict=True)]
    return Allocation(rates, (min(fit[0], windows[0]), min(fit[1], windows[1])), rows)


# -- a limit on the rate (Figure 8) ------------------------------------------------------------------------------------
def _by_rate(rates: Two, windows: Two, limit: float, policy: str) -> Two:
    """Eq. 11 has equal rates as the best; the others are for comparison."""
    shares = {
        "equal": EQUAL,
        "proportional": rates,
        "inverse": rates[::-1],
        "window-proportional": windows,
        "window-inverse": windows[::-1],
    }
    return split(limit, shares[policy], rates)


# -- a limit on the state (Figure 9) -----------------------------------------------------------------------------------
def state_shares(rates: Two, policy: str, holder: int | None = None) -> Two:
    """How the windows share the memory.

    By Eq. 13 the slower stream's window should have all; with equal rates any share is as good.

    >>> state_shares((10, 50), "slower"), state_shares((10, 50), "slower", holder=1)
    ((1.0, 0.0), (0.0, 1.0))
    >>> state_shares((10, 50), "right-window/left-rate")
    (0.0, 1.0)
    """
    if policy in ("slower", "best") and holder is not None:
        return RIGHT if holder else LEFT
    if "/" in policy:
        return LEFT if policy.startswith("left-window") else RIGHT
    if policy in ("slower", "faster", "best"):
        if rates[0] == rates[1]:
            return EQUAL
        return RIGHT if (rates[0] < rates[1]) == (policy == "faster") else LEFT
    return {"proportional": rates, "inverse": rates[::-1], "equal": EQUAL}[policy]


# -- both (Figure 10) --------------------------------------------------------------------------------------------------
def _both(rates: Two, windows: Two, max_rate: float, max_state: float, policy: str, holder: int | None) -> Allocation:
    if policy == "best":
        return _best(rates, windows, max_rate, max_state, holder)
    if policy == "equal":
        return _filled(split(max_rate, EQUAL, rates), windows, max_state, EQUAL)
    corner = _at_corner(rates, windows, max_rate, max_state, policy.split("/")[1])
    return _filled(corner, windows, max_state, state_shares(rates, policy))


def _at_corner(rates: Two, windows: Two, max_rate: float, max_state: float, policy: str) -> Two:
    """All of the rate to one stream, but for what the other needs to fill the memory. It needs no more than half."""
    fast = 0 if policy == "left-rate" else 1
    slow = 1 - fast
    needed = min(rates[slow], max_rate / 2, max_state / windows[slow] if windows[slow] else 0.0)
    most = min(rates[fast], max_rate - needed)
    rest = min(rates[slow], max_rate - most)
    return (most, rest) if fast == 0 else (rest, most)


def _best(rates: Two, windows: Two, max_rate: float, max_state: float, holder: int | None) -> Allocation:
    """The greatest output rate. For given rates Eq. 13 says how to share the memory; so one rate is left to choose."""
    if sum(rates) <= max_rate:
        return _filled(rates, windows, max_state, state_shares(rates, "slower", holder))
    least, most = max(max_rate - rates[1], 0.0), min(rates[0], max_rate)
    found = []
    for left in _candidates(windows, max_rate, max_state):
        given = min(max(left, least), most)
        now = (given, min(max_rate - given, rates[1]))
        found.append(_filled(now, windows, max_state, state_shares(now, "slower", holder)))
    return max(found, key=lambda a: output_rate(1.0, a.rates, a.windows))


def _candidates(windows: Two, limit: float, memory: float) -> Iterator[float]:
    """Rates of the left stream among which the best one is: the ends, and where the output rate bends or peaks.

    With the slower stream's rate x and window T: from x = M/T on its window takes all memory. Where both windows do,
    the output rate is x T (mu - x) + (M - x T) x, with its peak at mu/4 + M/(4 T); and where memory is enough, it is
    x (mu - x) times both windows, with its peak at mu/2. In between, memory is just filled.
    """
    yield from (limit / 2, 0.0, limit)
    if windows[0] != windows[1]:
        yield (memory - limit * windows[1]) / (windows[0] - windows[1])
    for window, of_left in ((windows[0], True), (windows[1], False)):
        if window:
            for slow in (memory / window, limit / 4 + memory / (4 * window)):
                yield slow if of_left else limit - slow
