"""Audit counts what goes back behind what was promised before, across restores, and frees what everyone has passed."""

from hypothesis import given, settings
from hypothesis import strategies as st

from windrow.operators import Audit, Side
from windrow.operators.progress.audit import marks_frame
from windrow.operators.progress.meld import group_text

CHECK = settings(deadline=None, derandomize=True, max_examples=80)
MARKS = st.lists(st.tuples(st.sampled_from([None, "a", "b"]), st.integers(0, 20)), max_size=5)


def frame(marks):
    said = {}
    for group, value in marks:
        said.setdefault(None if group is None else group_text((group,)), []).append(value)
    return marks_frame(said)


@CHECK
@given(st.lists(st.tuples(MARKS, st.booleans()), max_size=8))
def test_each_mark_is_held_against_what_was_promised_before_its_batch(batches):
    audit, disk, known = Audit(), {}, {}
    for marks, restore in batches:
        if restore:
            disk.update(audit.changes())
            audit = Audit()
            audit.restore(dict(disk))
        back = sum(value < max(known.get(None, -1), known.get(group, -1)) for group, value in marks)
        assert audit.on_batch(0, frame(marks)) == ([Side("ignored", back)] if back else [])
        for group, value in marks:
            known[group] = max(value, known.get(group, -1))
        ahead = [g for g, v in known.items() if g is not None and v > known.get(None, -1)]
        assert audit.state_bytes() == 64 * len(ahead)
