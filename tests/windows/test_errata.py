"""Formulas of Li's thesis, and a rule of Bai et al., that contradict their own definitions or examples: each test shows
the printed one fail, and ours hold.
"""

import polars as pl
from hypothesis import given, settings
from hypothesis import strategies as st

import windrow as wr
from windrow.aggregates import Partials, make
from windrow.operators import Bins, Bucket, Instants, Wid, Windowing
from windrow.progress import Punctuation
from windrow.windows import Landmark, Partitioned, SlideByTuple, Sliding, Tuple

CHECK = settings(deadline=None, derandomize=True, max_examples=60)
TEN = 36_000  # 10:00:00 as seconds of the day: the example's min(ts)
FIVE_PAST = Tuple(TEN + 5)  # 10:00:05
BEFORE, AFTER = -2, 20  # window ids around those of the example


def ceil_div(a, b):
    return -(-a // b)


def printed_wids(a, low, r, s):
    """Eq. 5.3 as printed: ceil((a - min)/s) - 1 < w <= ceil((a + r - min)/s) - 1."""
    return {w for w in range(BEFORE, AFTER) if ceil_div(a - low, s) - 1 < w <= ceil_div(a + r - low, s) - 1}


def test_eq_5_3_prints_ceilings_that_leave_the_extent_of_eq_5_2():
    window = Sliding(600, 60, origin=TEN)
    by_extent = {w for w in range(BEFORE, AFTER) if window.extent(w, [FIVE_PAST])}
    printed = printed_wids(FIVE_PAST.a, TEN, 600, 60)
    assert by_extent == set(range(10))  # "tuple t belongs to window 0 through 9"
    assert printed == set(range(1, 11)) != by_extent
    assert set(window.wids(FIVE_PAST)) == by_extent


def test_eq_5_3_printed_is_right_only_on_multiples_of_the_slide():
    window = Sliding(600, 60)
    right = [a for a in range(180) if printed_wids(a, 0, 600, 60) == set(window.wids(Tuple(a)))]
    assert right == [0, 60, 120]


def test_eq_5_6_prints_ceilings_that_leave_the_extent_of_eq_5_5():
    window = Partitioned(range=100, slide=10)
    rows = [Tuple(0, i, "srcIP") for i in range(8)]
    t = rows[5]  # its rank in the partition is 5
    by_extent = {w for w in range(BEFORE, AFTER) if t in window.extent((w, "srcIP"), rows)}
    printed = printed_wids(5, 0, 100, 10)
    assert by_extent == set(range(10))
    assert printed == set(range(1, 11)) != by_extent
    assert window.wids(t, rows) == {(w, "srcIP") for w in by_extent}


def test_eq_5_9_prints_a_ceiling_that_leaves_the_extent_of_eq_5_8():
    window = Landmark(60, origin=TEN)
    by_extent = {w for w in range(BEFORE, AFTER) if window.extent(w, [FIVE_PAST])}
    printed = {w for w in range(BEFORE, AFTER) if w > ceil_div(FIVE_PAST.a - TEN, 60) - 1}
    assert by_extent == set(range(AFTER))
    assert printed == set(range(1, AFTER)) != by_extent
    assert {w for w in range(BEFORE, AFTER) if w in window.wids(FIVE_PAST)} == by_extent


def released(window, times, promise):
    """The ids of the windows that WID releases at a promise, and the id the punctuation carries (Fig. 6-2)."""
    bucket, wid = (
        Bucket(window),
        Wid(Windowing(window, [], Partials([make("count", "n", None, pl.Int64())]), pl.Int64())),
    )
    for batch in bucket.on_batch(0, pl.DataFrame({"@t": times})):
        wid.on_batch(0, batch)
    (on_ids,) = bucket.on_punctuation(0, Punctuation(promise))
    frames = [i for i in wid.on_punctuation(0, on_ids) if isinstance(i, pl.DataFrame)]
    ends = [end for frame in frames for end in frame["window_end"].to_list()]
    return {(end - window.origin) // window.slide - 1 for end in ends}, on_ids.value


def test_fig_6_4_releases_the_window_equal_to_the_punctuation_where_all_below_it_are_complete():
    window, times = Sliding(60, 60), [5, 65, 125]
    ours, punctuation = released(window, times, promise=180)
    open_wids = {w for a in times for w in window.wids(Tuple(a))}
    printed = {w for w in open_wids if w == punctuation}
    complete = {w for w in open_wids if window.end(w) <= 180}
    assert complete == {0, 1, 2}
    assert printed == set()  # nothing would ever come out
    assert ours == complete


def test_fig_6_4_releases_a_window_that_still_takes_tuples():
    window, times = Sliding(60, 60), [5, 65]
    ours, punctuation = released(window, times, promise=90)
    printed = {w for a in times for w in window.wids(Tuple(a)) if w == punctuation}
    assert printed == {1}
    assert window.extent(1, [Tuple(100)])  # a tuple that keeps the promise of 90, in the window just released
    assert ours == {0}


def can_still_meet(a, bound, w):
    """The definition of the tumbling join: is there a partner at or after ``bound`` in the window of ``a``?"""
    return any(r // w == a // w for r in range(bound, max(bound, a) + 2 * w))


@CHECK
@given(st.integers(-60, 60), st.integers(-60, 60), st.integers(2, 12))
def test_fig_7_2_compared_as_window_numbers_keeps_exactly_what_can_still_meet(a, bound, w):
    window = Sliding(w, w)
    ours = all(wid >= window.closed_below(bound) for wid in window.wids(Tuple(a)))
    assert ours == can_still_meet(a, bound, w)


def test_fig_7_2_compares_a_time_with_a_window_number_and_holds_tuples_nobody_can_meet():
    w, a, bound = 300, 100, 600  # window 0 is over when the other side has reached window 2
    printed_keeps = a >= bound / w
    assert printed_keeps
    assert not can_still_meet(a, bound, w)
    assert Sliding(w, w).closed_below(bound) > Sliding(w, w).wids(Tuple(a))[0]


def test_fig_7_2_as_printed_drops_tuples_that_can_still_meet():
    w, a, bound = 10, -5, -9
    printed_keeps = a >= bound / w
    assert not printed_keeps
    assert can_still_meet(a, bound, w)
    assert Sliding(w, w).closed_below(bound) <= Sliding(w, w).wids(Tuple(a))[0]


W_L, W_R = 180, 120  # Q5-8: Main1 (L) [RANGE 3 minutes], Main2 (R) [RANGE 2 minutes]


def q5_8_wants(left, right):
    """In words: Main1 follows Main2 within 2 minutes, and Main2 follows Main1 within 3 minutes."""
    return right - left < 180 if right >= left else left - right < 120


def printed_band(left, right):
    """5.2.1 as printed: L - W_L <= R < L + W_R."""
    return left - W_L <= right < left + W_R


def our_band(left, right):
    """semantics.md: -b < r - l < a, with a the RANGE of L and b the RANGE of R."""
    return -W_R < right - left < W_L


def test_5_2_1_prints_the_band_of_q5_8_the_wrong_way_round():
    main2_follows, main1_follows = (0, 150), (150, 0)  # two and a half minutes either way
    assert q5_8_wants(*main2_follows)
    assert not printed_band(*main2_follows)
    assert our_band(*main2_follows)
    assert not q5_8_wants(*main1_follows)
    assert printed_band(*main1_follows)
    assert not our_band(*main1_follows)


def test_our_band_is_what_q5_8_says_for_every_distance():
    assert all(our_band(1000, r) == q5_8_wants(1000, r) for r in range(700, 1300))


class Figure67:
    """The Aggregate operator of Fig. 6-7 for count, one tuple at a time, as printed but for what is put right."""

    def __init__(self, size, end_bins_in_s, keeps_last_bin):
        self.size, self.end_bins_in_s, self.keeps_last_bin = size, end_bins_in_s, keeps_last_bin
        self.s, self.e = {}, {float("-inf"): 0}

    def tuple(self, t):
        for bins, bid in ((self.s, t), (self.s if self.end_bins_in_s else self.e, t + self.size)):
            both = self.s | self.e
            bins.setdefault(bid, both.get(bid, both[max(w for w in both if w <= bid)]))
        for bins in (self.s, self.e):
            bins |= {w: n + 1 for w, n in bins.items() if t <= w < t + self.size}

    def punctuation(self, p):
        out = {w: n for w, n in self.s.items() if w < p}
        both = self.s | self.e
        if self.keeps_last_bin:  # as the text does: it emits S1, S5 and S2, and discards S1 and S5
            self.e[float("-inf")] = both[max(w for w in both if w < p)]
        self.s = {w: n for w, n in self.s.items() if w >= p}
        self.e = {w: n for w, n in self.e.items() if w >= p or w == float("-inf")}
        return out


def counts(figure, steps):
    """What comes out of {"tuples": .., "punctuation": ..} steps, one dictionary for all of them."""
    found = {}
    for times, p in steps:
        for t in times:
            figure.tuple(t)
        found |= figure.punctuation(p)
    return found


def by_bins(size, steps):
    """The same by our operator."""
    aggregates = Partials([make("count", "n", None, pl.Int64())])
    bins = Bins(Windowing(SlideByTuple(size), [], aggregates, pl.Int64()))
    found = {}
    for times, p in steps:
        bins.on_batch(0, *Instants([], aggregates).on_batch(0, pl.DataFrame({"@t": times}, schema={"@t": pl.Int64})))
        for item in bins.on_punctuation(0, Punctuation(p)):
            found |= {} if isinstance(item, Punctuation) else dict(item.select("window_end", "n").rows())
    return found


def by_extent(size, steps):
    rows = [Tuple(t, i) for i, t in enumerate(t for times, _ in steps for t in times)]
    window = SlideByTuple(size)
    return {w: len(window.extent(w, rows)) for w in window.windows(rows)}


def test_fig_6_7_adds_end_bins_to_s_which_releases_windows_that_end_at_no_tuple():
    steps = [([10, 12], 30)]  # RANGE 5: the end bins are 15 and 17
    printed = counts(Figure67(5, end_bins_in_s=True, keeps_last_bin=True), steps)
    assert by_extent(5, steps) == {10: 1, 12: 2}
    assert printed == {10: 1, 12: 2, 15: 1, 17: 0}
    assert counts(Figure67(5, end_bins_in_s=False, keeps_last_bin=True), steps) == by_extent(5, steps)
    assert by_bins(5, steps) == by_extent(5, steps)


def test_fig_6_7_removes_the_last_bin_below_a_punctuation_from_which_the_next_bin_begins():
    steps = [([10, 12], 13), ([14], 30)]  # the window that ends at 14 holds all three
    printed = counts(Figure67(5, end_bins_in_s=False, keeps_last_bin=False), steps)
    assert by_extent(5, steps) == {10: 1, 12: 2, 14: 3}
    assert printed == {10: 1, 12: 2, 14: 1}
    assert by_bins(5, steps) == by_extent(5, steps)


@CHECK
@given(st.integers(1, 8), st.lists(st.lists(st.integers(0, 5), max_size=6), max_size=5))
def test_fig_6_7_put_right_in_both_is_the_definition(size, batches):
    steps = [([10 * i + t for t in times], 10 * (i + 1)) for i, times in enumerate(batches)]
    steps = [(sorted(set(times), reverse=True), p) for times, p in steps]
    figure = Figure67(size, end_bins_in_s=False, keeps_last_bin=True)
    assert counts(figure, steps) == by_bins(size, steps) == by_extent(size, steps)


# -- Bai et al., section 5 ---------------------------------------------------------------------------------------------
PACKED = [(10, "case", 1), (12, "cup", 1), (15, "jug", 1), (20, "case", 2), (21, "pot", 2), (30, "case", 3)]
PACKED += [(34, "pan", 3)]  # (second, what is read, the number of the case); products have that of the case that waits


def readers():
    """Example 1: cases, products, and where each product is."""
    cases = [{"ts": t, "number": n} for t, tag, n in PACKED if tag == "case"]
    products = [{"ts": t, "tag": tag} for t, tag, _ in PACKED if tag != "case"]
    return cases, products, {tag: n for _, tag, n in PACKED if tag != "case"}


def test_section_5_of_bai_joins_a_product_with_a_later_case_where_the_waiting_one_is_earlier():
    """ "we require a tuple from one data stream (product) to join with only one tuple with a later timestamp"."""
    cases, products, inside = readers()
    printed = {
        p["tag"]: min((c["ts"], c["number"]) for c in [*cases, {"ts": 99, "number": None}] if c["ts"] > p["ts"])[1]
        for p in products
    }
    assert printed == {"cup": 2, "jug": 2, "pot": 3, "pan": None}
    assert all(printed[tag] != number for tag, number in inside.items())
    left = wr.stream(products, progress="ts", slack=0, name="products")
    right = wr.stream(cases, progress="ts", slack=0, name="cases")
    ours = left.following(right).collect()
    assert dict(ours.select("tag", "number").rows()) == inside
