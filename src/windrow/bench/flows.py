"""Packets of network flows in both directions: what the joins of the thesis are over (Q7-2, Q8-3, Q8-4).

A packet of one side and one of the other are in the same NetFlow, in opposite directions, if source and destination of
one are destination and source of the other. The thesis does not say how many packets a flow has. Here all flows are
equally likely, and there are as many as give the packets of a side ``partners`` partners within some seconds.
"""

from __future__ import annotations

import numpy as np
import polars as pl

from windrow.sources.links import MICROS, START

SOURCE, DESTINATION = ("srcIP", "srcPort"), ("destIP", "destPort")
THERE = (*SOURCE, *DESTINATION)  # the keys of a left packet
BACK = (*DESTINATION, *SOURCE)  # and, in turn, of a right one


def number_of_flows(rate: float, seconds: float, partners: float) -> int:
    """How many flows there must be if a packet is to have so many partners in a side of this rate."""
    return max(1, round(rate * seconds / partners))


def packets_of_flows(name: str, rate: float, seconds: float, flows: int, back: bool = False) -> pl.DataFrame:
    """Packets in order, each at the time of its ``arrival``, in microseconds from the start."""
    rng = np.random.default_rng([7, *name.encode()])
    count = int(rate * seconds)
    at = np.sort(rng.integers(0, int(seconds * MICROS), count))
    flow = pl.Series("flow", rng.integers(0, flows, count))
    packets = pl.DataFrame({"flow": flow, "arrival": at}).select(
        (pl.col("arrival") + START).cast(pl.Datetime("us", "UTC")).alias("ts"),
        _address(0).alias("srcIP"),
        _address(1).alias("destIP"),
        (pl.col("flow") % 60_000 + 1024).cast(pl.Int32).alias("srcPort"),
        (pl.col("flow") % 7 + 80).cast(pl.Int32).alias("destPort"),
        "arrival",
    )
    return packets.rename(dict(zip(THERE, BACK, strict=True))).select(packets.columns) if back else packets


def _address(side: int) -> pl.Expr:
    host = pl.col("flow") // (3 if side else 1)
    return pl.format("10.{}.{}.{}", pl.lit(side) + 2 * (host // 65_536), host // 256 % 256, host % 256)
