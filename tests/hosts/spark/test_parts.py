"""Large chunks of state as several values: nothing is left behind, and all of it comes back."""

import polars as pl
from hypothesis import given, settings
from hypothesis import strategies as st

import windrow as wr
from windrow.hosts.spark import shard
from windrow.hosts.spark.parts import Version, divided, whole
from windrow.testing.simulated import SimulatedSpark

blobs = st.binary(max_size=9)


@settings(deadline=None)
@given(st.lists(st.tuples(st.sampled_from("ab"), st.none() | blobs), max_size=12), st.integers(1, 4))
def test_what_is_stored_is_what_was_written_last(steps, most):
    stored, expected, version = {}, {}, Version("v")
    for name, blob in steps:
        version = Version.read(str(version))
        for key, value in version.write(name, [] if blob is None else divided(blob, most)):
            if value is None:
                stored.pop(key, None)
            else:
                stored[key] = value
        expected = {**expected, name: blob}
        expected = {n: b for n, b in expected.items() if b is not None}
        assert whole(stored) == expected
    assert all(len(value) <= most for value in stored.values())


def test_a_query_goes_on_from_state_in_several_values(monkeypatch):
    monkeypatch.setattr(shard, "divided", lambda blob: divided(blob, 500))
    schema = {"t": pl.Int64(), "k": pl.Int64()}
    spark = SimulatedSpark(shards=2)
    left, right = (wr.stream(spark.stream(schema), "t", slack=0, name=n) for n in "lr")
    running = spark.start(left.join(right, on="k", within=(-1000, 1000)))
    rows = [pl.DataFrame({"t": range(i * 50, i * 50 + 50), "k": range(50)}) for i in range(4)]
    found = 0
    for each in rows:
        found += running.push({"l": each, "r": each}).results.height
    assert found == 50 * 16
