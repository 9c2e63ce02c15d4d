"""The thesis's queries over unions, as Spark drives them: what a link that falls behind costs out of and in order.

Three links: one fast, one as fast that can be 40 s behind, one nearly silent. Each shows its clock at a file's end.
"""

from pathlib import Path

import numpy as np
import polars as pl
import pytest

import windrow as wr
from windrow.testing import compare, oracle
from windrow.testing.disturbed import disturbed
from windrow.testing.simulated import SimulatedSpark

FOLDER = Path(__file__).parents[3] / "examples" / "thesis"
PACKETS = {"fast": 10, "other": 10, "silent": 0.05}  # a second
FILES = 3  # of each link; a micro-batch takes one of each
CLOCKS = FILES * len(PACKETS)  # rows that are no packets
LENGTH = 121  # seconds of a file: all links alike, two windows of a minute are open at its end
SLACK, SKEW = 6, 40  # seconds
BEGIN = 1_700_000_100  # where windows of 5 minutes begin
PLANS = {"oop": "", "iop": "/*+ USING(iop) */"}
TUMBLING = ("Q1-2", "Q8-2")
# How much more state the skew may cost out of order. Flat is not 1.0: at which moment of a window a micro-batch ends
# decides how many windows are open and which groups the newest has, and the skew moves that moment. With a SLIDE of 1 s
# no plan is flat, as 40 s are 40 more windows: there the bound is the time that is open, RANGE with slack and skew.
GROWTH = {"Q1-2": 1.25, "Q6-8": (10 + SLACK + SKEW) / (10 + SLACK), "Q8-2": 1.25, "Q8-5": 1.25}


def rows_of(second, source, destination, clock=None):
    """Packets; times are in seconds after the beginning."""
    times = {"ts": second, "clock": clock if clock is not None else [None] * len(second)}
    given = pl.DataFrame(
        {**times, "srcIP": source, "destIP": destination}, schema_overrides=dict.fromkeys(times, pl.Int64)
    )
    stamps = [((pl.col(c) + BEGIN) * 1_000_000).cast(pl.Datetime("us", "UTC")) for c in times]
    ips = [pl.format(f"{net}.{{}}", c).alias(c) for c, net in (("srcIP", "202.101.0"), ("destIP", "202.102.0"))]
    return given.select(*stamps, *ips)


def files(link, skew):
    """The packets of each file as they arrive, and what the clock shows at its end; later ones are in no file.

    The last file of the fast link also has a packet of a minute that is over, and one without a time: late and bad.
    """
    rng = np.random.default_rng(list(link.encode()))
    count = int(PACKETS[link] * FILES * LENGTH)
    behind = skew if link == "other" else 0
    sent = rng.integers(0, FILES * LENGTH, count)
    packets = rows_of(sent, rng.integers(0, 3, count), rng.integers(0, 2, count))
    packets = packets.with_columns(arrival=sent + behind + rng.integers(0, SLACK, count)).sort("arrival")
    for end in range(LENGTH, FILES * LENGTH + 1, LENGTH):
        arrived = packets.filter(pl.col("arrival").is_between(end - LENGTH, end, closed="left")).drop("arrival")
        told = rows_of([None], [None], [None], clock=[end - behind])
        last = link == "fast" and end == FILES * LENGTH
        yield pl.concat([arrived, told, rows_of([5, None], [0, 0], [0, 0])] if last else [arrived, told])


def arrived(skew):
    return {link: pl.concat(files(link, skew)) for link in PACKETS}


def asked(number, source, hint=""):
    """A query of the thesis over the three links; Q8-2 has two names for them."""
    clock = wr.promise.heartbeats("clock", f"{SLACK} seconds")
    fast, other, silent = (wr.stream(source(link), "ts", punctuation=clock, name=link) for link in PACKETS)
    tables = {"Main1": fast, "Main2": other, "Control": silent, "M1": fast, "M2": other, "C": silent}
    if number == "Q8-2":
        tables["M1"] = fast.union(silent)
    return wr.sql((FOLDER / f"{number}.sql").read_text().replace("SELECT", f"SELECT {hint}", 1), **tables)


def streamed(number, plan, skew):
    """The results, the greatest state in bytes after a micro-batch, and the sums of the counters."""
    schema = arrived(0)["fast"].schema
    batches = [dict(zip(PACKETS, each, strict=True)) for each in zip(*(files(x, skew) for x in PACKETS), strict=True)]
    assert len(batches) == FILES
    out = disturbed(lambda spark: asked(number, lambda link: spark.stream(schema), PLANS[plan]), batches, shards=1)
    sums = {c: sum(batch.counts[c] for batch in out) for c in ("rows_in", "rows_late", "rows_bad")}
    return pl.concat([batch.results for batch in out]), max(batch.counts["state_bytes"] for batch in out), sums


def closed(number, skew):
    """What the query means, as far as all links have promised it: the packet that is late is not in it."""
    frames = arrived(skew)
    frames["fast"] = frames["fast"].head(-2)
    upto = rows_of([FILES * LENGTH - skew - SLACK], [0], [0])["ts"]
    return oracle(asked(number, frames.get)).filter(pl.col("window_end") <= upto)


@pytest.mark.parametrize("number", GROWTH)
def test_a_link_that_is_behind_costs_memory_in_order_and_not_out_of_order(number):
    most = {}
    for skew in (0, SKEW):
        expected = closed(number, skew)
        assert expected.height >= 5
        for plan in PLANS:
            results, most[plan, skew], sums = streamed(number, plan, skew)
            compare(results, expected, f"{number} {plan} {skew} s behind")
            assert (sums["rows_late"], sums["rows_bad"]) == (1, 1)
            if number in TUMBLING:
                packets = results["count"].sum() + still_open(results, skew) + sums["rows_late"] + sums["rows_bad"]
                assert sums["rows_in"] == packets + CLOCKS
    assert most["oop", SKEW] <= GROWTH[number] * most["oop", 0]
    assert most["iop", SKEW] > 1.5 * most["iop", 0]
    assert most["oop", SKEW] < most["iop", SKEW]


def still_open(results, skew):
    """How many packets are in windows that are not out."""
    return sum(f.filter(pl.col("ts") >= results["window_end"].max()).height for f in arrived(skew).values())


@pytest.mark.parametrize("number", TUMBLING)
def test_at_the_end_every_packet_is_in_a_window_or_bad(number):
    spark, frames = SimulatedSpark(), arrived(SKEW)
    found = spark.collect(asked(number, lambda link: spark.frame(list(files(link, SKEW)))))
    bad = sum(f["ts"].null_count() for f in frames.values()) - CLOCKS
    compare(found, oracle(asked(number, frames.get)), number)
    packets = sum(f.filter(pl.col("clock").is_null()).height for f in frames.values())
    assert found["count"].sum() + bad == packets > 6000
