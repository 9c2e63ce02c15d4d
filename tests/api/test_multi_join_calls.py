"""``wr.multi_join``: its arguments, and what is refused."""

import pytest

import windrow as wr


def stream(name):
    return wr.stream([{"t": 1, "k": 1, name: 1}, {"t": 4, "k": 1, name: 2}], "t", slack=5, name=name)


def joined(**options):
    return wr.multi_join(*map(stream, "abc"), **{"on": "k", "within": 5, **options})


def test_columns_whose_names_are_taken_have_the_name_of_their_stream():
    assert list(joined().schema) == ["t", "k", "a", "t_b", "k_b", "b", "t_c", "k_c", "c"]
    own = stream("a")
    twice = wr.multi_join(own, own, on="k", within={"a": 5, "a_2": 1})
    assert list(twice.schema)[3:] == ["t_a_2", "k_a_2", "a_a_2"]


def test_each_stream_has_its_length_or_all_have_one():
    assert joined().collect().height == 8
    # The first row of c, at 1, is held for 3: no row at 4 is a result with it.
    found = joined(within={"a": 9, "b": 9, "c": 3}).select("a", "b", "c").collect().rows()
    assert sorted(found) == [(1, 1, 1), (1, 1, 2), (1, 2, 2), (2, 1, 2), (2, 2, 2)]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"using": "adaptive", "cost": 1.0, "alpha": 1}, "alpha=1.0 must be at least 0 and less than 1"),
        ({"using": "adaptive", "cost": 1.0, "alpha": -0.1}, "alpha=-0.1 must be at least 0"),
        ({"alpha": 0.3}, "choose using='adaptive'"),
        ({"using": "sync-filter", "alpha": 0.3}, "choose using='adaptive'"),
        ({"using": "multi", "cost": 1.0}, "cost= says when an adaptive join changes"),
        ({"using": "adaptive"}, "a unit of t is no time: give cost="),
        ({"using": "adaptive", "cost": 0}, "cost=0.0 must be more than 0"),
        ({"using": "oa"}, "available: multi, pipeline, sync-filter, filter-order, adaptive"),
        ({"within": {"a": 5, "b": 5}}, "does not say how long rows of c are held"),
        ({"within": {"a": 5, "b": 5, "c": 5, "d": 5}}, "names d; the streams are a, b, c"),
        ({"within": 0}, "within must be positive"),
        ({"on": "nope"}, "unknown column 'nope'"),
        ({"late": "revise"}, "cannot revise its results"),
        ({"late": ["drop"]}, "one for each of the 3 streams"),
        ({"where": "a"}, "a condition must be true or false"),
    ],
)
def test_what_cannot_be_is_refused(options, message):
    with pytest.raises(wr.WindrowError, match=message.replace("(", r"\(")):
        joined(**options)


def test_there_are_two_to_seven_streams():
    for names, message in (("a", "two streams or more"), ("abcdefgh", "2 to 7 streams, not 8")):
        with pytest.raises(wr.WindrowError, match=message):
            wr.multi_join(*map(stream, names), on="k", within=5)


def test_groups_by_two_of_its_times_need_a_window():
    with pytest.raises(wr.WindrowError, match="groups of a stream need a window"):
        joined().group_by("t", "t_b").agg(n=wr.count())


@pytest.mark.parametrize("using", ["multi", "pipeline", "sync-filter"])
def test_late_rows_are_shown_if_that_is_asked_for(using):
    run = joined(late=("side", "drop", "side"), using=using).run()
    for name in "abc":
        for t in (20, 5):
            run.push(name, [{"t": t, "k": 1, name: t}])
    counts = run.end().counts
    late = run.late_rows()
    assert (counts["rows_late"], late["late_by"].to_list()) == (3, [10, 10, 10])
    assert [late[name].drop_nulls().to_list() for name in "abc"] == [[5], [], [5]]


def test_a_function_decides():
    near = wr.udf(lambda a, c: a == c, "BOOLEAN", "a", "c")
    assert sorted(joined(where=near).select("a", "b", "c").collect().rows()) == [
        (1, 1, 1),
        (1, 2, 1),
        (2, 1, 2),
        (2, 2, 2),
    ]
