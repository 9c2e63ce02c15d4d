"""Rewriting a tree: every node once, inputs first, and what is shared stays shared."""

import windrow as wr
from windrow.logical.nodes import Filter, Join, Scan
from windrow.planner.rules import RULES, rewritten
from windrow.planner.rules.transform import transform

ROW = [{"t": 0, "k": 0, "x": 0}]


def stream(name="s"):
    return wr.stream(ROW, "t", slack=0, name=name)


def diamond():
    """A filter that is used twice."""
    shared = stream().where("x > 1")
    return shared.select("t", "k", y="x").join(shared, on="k", within=(0, 5)).node


def test_without_a_change_the_tree_is_the_same_object():
    node = diamond()
    assert transform(node, lambda before, now: now) is node
    assert rewritten(node, ()) is node


def test_every_node_is_changed_once_inputs_first():
    node, seen = diamond(), []

    def change(before, now):
        assert before is now
        seen.append(id(before))
        return now

    transform(node, change)
    assert seen == [id(each) for each in node.walk()]
    assert len(seen) == len(set(seen))


def test_what_is_used_twice_is_replaced_by_one_node():
    node = diamond()

    def without_filters(before, now):
        return now.input if isinstance(now, Filter) else now

    found = transform(node, without_filters)
    assert not any(isinstance(each, Filter) for each in found.walk())
    assert [type(each).__name__ for each in found.walk()].count("Scan") == 1
    assert found.left.input is found.right
    assert isinstance(found.right, Scan)


def test_a_change_gets_the_node_as_it_was_and_over_new_inputs():
    node, other = diamond(), stream("other").node
    found = {}

    def change(before, now):
        found[type(before).__name__] = before, now
        return other if isinstance(now, Scan) else now

    changed = transform(node, change)
    before, now = found["Filter"]
    assert (before.input.name, now.input.name) == ("s", "other")
    assert before.predicate is now.predicate
    assert isinstance(changed, Join)
    assert changed.columns == node.columns


def test_a_shared_side_is_one_stage_and_one_source_after_all_rules():
    s = stream()
    windows = s.window(10).group_by("k").agg(n=wr.count(), m=wr.max("x"))
    query = windows.join(windows, on="k", within=(0, 10)).where("n > 1 AND m_right > n").select("window_end", "n")
    plan = query.plan()
    assert len(plan.reads()) == 1
    assert len(plan.stages()) == 2
    assert len(RULES) == len({rule.__name__ for rule in RULES})
