"""Where nothing is wrong nothing is said: random queries, and every kind of query over the links of the demo."""

from datetime import timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st
from staged import said

import windrow as wr
from test_random_queries import CHECK, queries
from windrow.hosts.warnings import Looked, planned, warned
from windrow.sources.links import Link, packets

STEP = timedelta(seconds=4)


@CHECK
@given(query=queries(), seed=st.randoms(use_true_random=False))
def test_random_queries(query, seed):
    assert warned(Looked(planned(query.plan(), query._samples()))) == []
    parts = [
        {name: source.data.slice(at, size)}
        for name, source in query.sources.items()
        for at in range(0, source.data.height, 5)
        for size in [seed.randint(1, 5)]
    ]
    seed.shuffle(parts)
    assert said(query, parts) == []


@pytest.fixture(scope="module")
def rows():
    return packets(Link("main", rate=30, hosts=20, band=3.2), 120)


def sliding(s):
    return s.where("len > 60").window("20 seconds", "5 seconds").group_by("src_ip").agg(n=wr.count())


def sessions(s):
    return s.session("2 seconds").group_by("src_ip").agg(n=wr.count())


def landmark(s):
    return s.landmark("10 seconds").group_by("src_ip").agg(n=wr.count())


def two_stages(s):
    inner = s.window("5 seconds").group_by("src_ip").agg(n=wr.count())
    return inner.window("20 seconds", "5 seconds").agg(most=wr.max("n"))


def joined(s):
    large, small = s.where("len > 800").select("ts", "src_ip", "len"), s.where("len < 200").select("ts", "src_ip")
    return large.join(small, on="src_ip", within=("0 seconds", "1 second"))


def as_of(s):
    large, small = s.where("len > 800").select("ts", "src_ip", "len"), s.where("len < 200").select("ts", "src_ip")
    return large.join_asof(small, by="src_ip", max_keys=1000)


def in_order(s):
    return s.select("ts", "src_ip").distinct().order_by("ts", "src_ip")


@pytest.mark.parametrize("query", [sliding, sessions, landmark, two_stages, joined, as_of, in_order])
@pytest.mark.parametrize("late", [timedelta(seconds=1), timedelta(days=400)])
def test_the_links_of_the_demo(query, late, rows):
    """Read as they come, or a year later and as fast as possible."""
    size = rows.height // 30  # they are in the order in which they arrive
    batches = [{"main": rows.slice(at, size)} for at in range(0, rows.height, size)]
    source = wr.stream(rows.head(5), "ts", slack="3.2 seconds", name="main")
    every = STEP if late < timedelta(days=1) else timedelta(seconds=1)
    begin = rows["ts"].min().replace(tzinfo=None) + STEP + late
    assert said(query(source), batches, every=every, begin=begin, endless=("main",)) == []
