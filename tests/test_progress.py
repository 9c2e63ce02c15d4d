"""Promises only grow; several streams together promise what the weakest of them promises, group by group."""

from hypothesis import given, settings
from hypothesis import strategies as st

from windrow.progress import END, START, Combined, Promises, Punctuation, grown

CHECK = settings(deadline=None, derandomize=True, max_examples=60)
GROUPS = ["a", "b", ("c", None)]
PROMISES = st.builds(Punctuation, st.integers(-6, 12), st.sampled_from([None, None, *GROUPS]))
HISTORIES = st.lists(PROMISES, max_size=20)
INPUTS = 3
FEEDS = st.lists(st.tuples(st.integers(0, INPUTS - 1), PROMISES), max_size=25)


def strongest(history, group=None):
    """What a history of promises says about a group, by looking at all of them."""
    return max((p.value for p in history if p.group is None or p.group == group), default=START)


@CHECK
@given(HISTORIES)
def test_what_is_held_is_the_strongest_promise_for_everyone_and_for_each_group(history):
    promises = Promises()
    for promise in history:
        promises.give(promise)
    assert promises.low == strongest(history)
    assert [promises.for_group(g) for g in GROUPS] == [strongest(history, g) for g in GROUPS]
    assert promises.for_group("never heard of") == promises.low


@CHECK
@given(HISTORIES)
def test_a_promise_is_news_exactly_if_it_says_more_than_was_known(history):
    promises = Promises()
    for i, promise in enumerate(history):
        assert promises.give(promise) == (promise.value > strongest(history[:i], promise.group))


@CHECK
@given(HISTORIES)
def test_promises_never_weaken(history):
    promises = Promises()
    before = {g: promises.for_group(g) for g in [None, *GROUPS]}
    for promise in history:
        promises.give(promise)
        after = {g: promises.for_group(g) for g in before}
        assert all(after[g] >= before[g] for g in before)
        before = after


@CHECK
@given(HISTORIES)
def test_groups_that_are_promised_no_more_than_everyone_need_no_entry(history):
    promises = Promises()
    for promise in history:
        promises.give(promise)
        assert all(value > promises.low for value in promises.groups.values())


def test_a_linear_promise_drops_the_groups_it_passes_and_keeps_those_ahead():
    promises = Promises()
    for group, value in (("behind", 5), ("level", 8), ("ahead", 9)):
        promises.give(Punctuation(value, group))
    promises.give(Punctuation(8))
    assert promises.groups == {"ahead": 9}


def test_state_stays_bounded_when_every_group_is_promised_once_and_time_goes_on():
    promises = Promises()
    for now in range(0, 3000, 3):
        promises.give(Punctuation(now + 10, f"group {now}"))
        promises.give(Punctuation(now))
        assert len(promises.groups) <= 4


def test_the_groups_handed_in_are_not_shared():
    given = {"a": 5}
    promises = Promises(1, given)
    promises.give(Punctuation(9))
    assert given == {"a": 5}


def test_nothing_is_promised_at_the_start_and_the_end_is_the_strongest_promise():
    promises = Promises()
    assert promises.for_group("a") == promises.low == START
    assert promises.give(Punctuation(END))
    assert not promises.give(Punctuation(END, "a"))


@CHECK
@given(FEEDS)
def test_the_union_promises_exactly_the_minimum_of_what_its_inputs_promise(feed):
    combined, received = Combined(INPUTS), Promises()
    histories = [[] for _ in range(INPUTS)]
    for port, promise in feed:
        histories[port].append(promise)
        for news in combined.give(port, promise):
            received.give(news)
        for group in [None, *GROUPS, "never heard of"]:
            weakest = min(strongest(history, group) for history in histories)
            assert received.for_group(group) == combined.given.for_group(group) == weakest


@CHECK
@given(FEEDS)
def test_every_promise_of_the_union_is_new_and_true(feed):
    combined, received = Combined(INPUTS), Promises()
    histories = [[] for _ in range(INPUTS)]
    for port, promise in feed:
        histories[port].append(promise)
        for news in combined.give(port, promise):
            assert received.give(news), "said before"
            assert all(strongest(history, news.group) >= news.value for history in histories)


@CHECK
@given(FEEDS)
def test_the_union_remembers_no_group_that_its_inputs_have_dropped(feed):
    combined = Combined(INPUTS)
    for port, promise in feed:
        combined.give(port, promise)
        assert set(combined.given.groups) <= {g for p in combined.inputs for g in p.groups}
        assert all(value > combined.given.low for value in combined.given.groups.values())


def test_a_silent_input_holds_the_union_back():
    combined = Combined(2)
    assert combined.give(0, Punctuation(10)) == combined.give(0, Punctuation(11, "a")) == []
    assert combined.give(1, Punctuation(3, "a")) == [Punctuation(3, "a")]


def test_a_linear_promise_can_strengthen_groups_that_others_were_ahead_with():
    combined = Combined(2)
    combined.give(0, Punctuation(30, "a"))
    combined.give(0, Punctuation(5))
    assert combined.give(1, Punctuation(20)) == [Punctuation(5), Punctuation(20, "a")]


def test_one_input_passes_its_promises_on():
    combined = Combined(1)
    assert combined.give(0, Punctuation(5, "a")) == [Punctuation(5, "a")]
    assert combined.give(0, Punctuation(7)) == [Punctuation(7)]
    assert combined.give(0, Punctuation(6, "a")) == combined.give(0, Punctuation(7)) == []


# -- joint promises ----------------------------------------------------------------------------------------------------
def test_a_joint_promise_is_news_even_if_the_value_is_not():
    promises = Promises()
    assert promises.give(Punctuation(5, boxes=((7, 8),)))
    assert promises.give(Punctuation(5, boxes=((7, 9),)))
    assert not promises.give(Punctuation(5, boxes=((6, 9),)))
    assert not promises.give(Punctuation(5))
    assert promises.boxes == ((7, 9),)


def test_a_box_that_does_not_contain_the_one_before_is_not_taken():
    """The least box around both would promise more than either of them."""
    assert grown(((5, 9),), ((9, 5),)) == ((5, 9),)


TWO_TIMES = st.tuples(st.integers(0, 6), st.integers(0, 6))


@CHECK
@given(st.lists(st.tuples(st.integers(0, INPUTS - 1), TWO_TIMES, TWO_TIMES), max_size=20))
def test_the_boxes_of_a_union_are_in_the_boxes_of_all_inputs(feed):
    combined, given_boxes = Combined(INPUTS), [()] * INPUTS
    for port, *boxes in feed:
        given_boxes[port] = grown(given_boxes[port], tuple(boxes))
        combined.give(port, Punctuation(0, boxes=tuple(boxes)))
        if not all(given_boxes):
            assert combined.given.boxes == ()
            continue
        for place, (a, b) in enumerate(combined.given.boxes):
            assert a == min(each[place][0] for each in given_boxes)
            assert b == min(each[place][1] for each in given_boxes)


def test_an_input_that_has_ended_does_not_hold_the_boxes_of_a_union_back():
    combined = Combined(2)
    combined.give(0, Punctuation(1, boxes=((2, 2),)))
    combined.give(0, Punctuation(END))
    [found] = combined.give(1, Punctuation(3, boxes=((9, 4),)))
    assert (found.value, found.boxes) == (3, ((9, 4),))
