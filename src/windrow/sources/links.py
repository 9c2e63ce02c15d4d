"""Generated network links, with the disorder that the thesis observed: bands and sorted blocks (Li 6.1.5.1)."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import polars as pl

MICROS = 1_000_000
START = 1_700_000_040 * MICROS  # a whole minute, so that tables are easy to read


@dataclass(frozen=True)
class Link:
    """Packets of one link: how many a second, from how many hosts, how disordered, how far behind the others."""

    name: str
    rate: float
    hosts: int = 50
    band: float = 0.0  # seconds a packet can be late within a band
    block: float = 0.0  # seconds that a router collects before it sends them in any order
    behind: float = 0.0  # seconds of delay of the whole link

    @property
    def slack(self) -> float:
        """The disorder in seconds: how far a packet can be behind an earlier one."""
        return max(self.band, self.block)


def packets(link: Link, seconds: float, seed: int = 0) -> pl.DataFrame:
    """All packets of a link in order of arrival, with the time of arrival in ``arrival``."""
    rng = np.random.default_rng([seed, *link.name.encode()])
    count = int(link.rate * seconds)
    ts = np.sort(rng.integers(0, int(seconds * MICROS), count)) if count else np.zeros(0, np.int64)
    if link.block:
        length = int(link.block * MICROS)
        arrival = (ts // length + 1) * length  # a block is sent when it is full
        order = np.lexsort((rng.random(count), arrival))
    else:
        arrival = ts + (rng.random(count) * link.band * MICROS).astype(np.int64)
        order = np.argsort(arrival, kind="stable")
    host = rng.zipf(1.4, count) % link.hosts
    times = pl.Series("ts", ts + START).cast(pl.Datetime("us", "UTC"))
    frame = pl.DataFrame(
        {
            "ts": times,
            "src_ip": [f"10.0.{h // 256}.{h % 256}" for h in host.tolist()],
            "src_port": rng.integers(1024, 65536, count).astype(np.int32),
            "len": rng.integers(40, 1501, count).astype(np.int64),
            "arrival": arrival + int(link.behind * MICROS) + START,
        }
    )
    return frame[order]


def write(frame: pl.DataFrame, folder: Path, step: float) -> list[Path]:
    """One Parquet file per ``step`` seconds of arrival, also where nothing arrived: time passes for all links alike."""
    folder.mkdir(parents=True, exist_ok=True)
    slots = ((frame["arrival"] - START) // int(step * MICROS)).to_numpy()
    files = []
    for slot in range(int(slots.max(initial=-1)) + 1):
        path = folder / f"{slot:05d}.parquet"
        frame.filter(pl.Series(slots == slot)).drop("arrival").write_parquet(path)
        # Spark takes files in the order of their modification times, which are equal for files written at once.
        os.utime(path, (START // MICROS + slot, START // MICROS + slot))
        files.append(path)
    return files
