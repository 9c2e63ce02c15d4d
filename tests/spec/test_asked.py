"""What follows from the answers of sources that were asked how far they have come."""

import polars as pl
import pytest

import windrow as wr
from windrow.operators import Generate, Judge
from windrow.progress import Punctuation
from windrow.spec.rules import Answer, Asked, BySource, RowSlack, answers

DAY = 86_400_000_000


def said(rule, *given):
    """What a judge promises for everyone after each group of answers."""
    judge = Judge(rule)
    found = []
    for each in given:
        promises = judge.on_batch(0, answers([each] if isinstance(each, Answer) else each))
        found.append(next((p.value for p in promises if p.group is None), None))
        judge = restored(judge, rule)
    return found


def restored(judge, rule):
    again = Judge(rule)
    again.restore(judge.snapshot())
    return again


def silent(at):
    return Answer(None, at, True, False)


def test_a_delay_is_taken_from_the_time_of_asking():
    assert said(Asked(None, delay=5), silent(100), silent(90), silent(107)) == [95, None, 102]


def test_rows_that_were_not_read_yet_could_be_older():
    rule = Asked(None, delay=5)
    assert said(rule, Answer(None, 100, False, True), Answer(None, 101, True, True)) == [None, 96]
    # A source that cannot say so has given all it had if it gave nothing.
    assert said(rule, Answer(None, 100, None, True), Answer(None, 101, None, False)) == [None, 96]


def test_a_source_counts_as_idle_from_the_first_answer_without_rows():
    rule = Asked(None, idle_after=30)
    assert said(rule, silent(100), silent(129), silent(130), silent(140)) == [None, None, 100, 110]
    heard = Answer(None, None, False, True)
    assert said(rule, silent(100), heard, silent(131), silent(160), silent(161)) == [None, None, None, None, 131]
    assert said(rule, silent(100), Answer(None, 120, True, True), silent(149), silent(150)) == [None, None, None, 120]


def test_with_a_delay_an_idle_source_need_not_be_idle():
    assert said(Asked(None, delay=50, idle_after=30), silent(100), silent(130)) == [50, 100]


def test_dates_are_promised_in_days():
    assert said(Asked(None, delay=DAY, days=True), silent(10 * DAY + 5)) == [9]


def test_another_rule_goes_on_promising():
    generate = Generate(Asked(RowSlack(1), delay=5))
    rows = generate.on_batch(0, pl.DataFrame({"@t": [5, 9, 7]}))
    assert rows[1:] == [Punctuation(9)]
    assert generate.on_batch(1, answers([silent(20)])) == [Punctuation(15)]
    again = Generate(Asked(RowSlack(1), delay=5))
    again.restore(generate.snapshot())
    assert again.on_batch(1, answers([silent(20)])) == []
    assert again.on_batch(1, answers([silent(21)])) == [Punctuation(16)]


def parts(at, *given, heard=()):
    return [Answer(part, at, True, part in heard) for part in given]


def test_partitions_are_as_far_as_the_slowest_by_its_rows_or_by_its_answer():
    rule = Asked(BySource("p", 2, 1), idle_after=30)
    judge = Judge(rule)
    judge.on_batch(0, answers(parts(100, "0", "1", heard="0")))
    tops = rule.evidence(pl.DataFrame({"@t": [110], "p": [0]}))
    assert [p for p in judge.on_batch(0, tops) if p.group is None] == []  # partition 1 has said nothing
    found = judge.on_batch(0, answers(parts(130, "0", "1", heard="0")))
    assert found == [Punctuation(100)]
    judge = restored(judge, rule)
    # A partition that joins holds the others back, and one that leaves no longer does.
    assert judge.on_batch(0, answers(parts(161, "0", "1", "2"))) == [
        Punctuation(131, (0,)),
        Punctuation(131, (1,)),
    ]
    assert judge.on_batch(0, answers(parts(162, "0", "1"))) == [Punctuation(132)]


def test_answers_about_all_of_a_source_are_about_each_partition():
    rule = Asked(BySource("p", 0, 2), delay=5)
    judge = Judge(rule)
    judge.on_batch(0, rule.evidence(pl.DataFrame({"@t": [110], "p": [0]})))
    assert judge.promises.low < 0
    assert [p for p in judge.on_batch(0, answers([silent(100)])) if p.group is None] == [Punctuation(95)]


@pytest.mark.parametrize(
    ("rule", "given", "needed", "at"),
    [
        (Asked(None, delay=5), [], 100, 105),
        (Asked(None, idle_after=30), [], 100, 0),
        (Asked(None, idle_after=30), [silent(90)], 100, 130),
        (Asked(None, idle_after=30), [silent(110)], 100, 140),
        (Asked(None, idle_after=30), [silent(110), Answer(None, None, False, True)], 100, 0),
        (Asked(None, delay=DAY, days=True), [], 4, 5 * DAY),
    ],
)
def test_when_it_helps_to_ask(rule, given, needed, at):
    memory = {}
    for each in given:
        memory, _ = rule.asked(memory, answers([each]))
    assert rule.helps_at(memory, needed) == at
    if at:
        assert (said(rule, *given, silent(at - 1))[-1] or 0) < needed <= said(rule, *given, silent(at))[-1]


def test_only_some_rules_ask():
    with pytest.raises(wr.WindrowError, match="does not ask its source"):
        RowSlack(1).asked({}, answers([silent(1)]))
