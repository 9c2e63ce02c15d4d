"""Every query of the thesis over generated packets, each checked against the slow and obvious answer."""

import random
import sys
from datetime import datetime, timedelta
from pathlib import Path

import polars as pl

import windrow as wr
from windrow.testing import oracle

HERE = Path(__file__).parent
QUERIES = {file.stem: file.read_text() for file in sorted(HERE.glob("Q*.sql"))}
PACKETS = {"Main": 1050, "M": 300, "packets": 300, "M1": 300, "M2": 300, "C": 12}
PACKETS |= {"Main1": 300, "Main2": 300, "Control": 12, "A": 150, "B": 150, "D": 300, "S0": 150, "S1": 150}
BEGIN, SPAN, SLACK = datetime(2024, 1, 1, 10), 600, 20  # seconds
IN_MINUTES = {"Q2-1"}  # here ts is an integer that counts minutes
JOINS = {
    "Q3-1",
    "Q5-7",
    "Q5-8",
    "Q7-1",
    "Q7-2",
    "Q8-3",
    "Q8-4",
}  # here packets of few connections go one way, and come back
BACK = {"Main2", "M2", "C", "D", "S1"}  # the links on which they come back


def packets(link: str, count: int) -> pl.DataFrame:
    """Packets of a link as they arrive: each is delayed by up to SLACK seconds, and n numbers the arrivals."""
    rng = random.Random(link)
    sent = [rng.randrange(SPAN) for _ in range(count)]
    rows = []
    for n, ts in enumerate(sorted(sent, key=lambda t: t + rng.uniform(0, SLACK))):
        size = rng.choice([40, 52, 576, 1500])
        rows.append(
            {
                "srcIP": f"202.101.0.{min(rng.randrange(5) for _ in range(3))}",
                "srcPort": rng.randrange(1024, 65536),
                "destIP": f"202.102.0.{rng.randrange(4)}",
                "destPort": rng.choice([53, 80, 443]),
                "len": size,
                "length": size,
                "ts": BEGIN + timedelta(seconds=ts),
                "n": n,
            }
        )
    return pl.DataFrame(rows)


def connected(sent: pl.DataFrame, back: bool) -> pl.DataFrame:
    """The packets as those of a few connections, from the client to the server or back."""
    client = pl.format("202.101.0.{}", pl.col("n") % 2).alias("srcIP"), (1024 + pl.col("n") % 3).alias("srcPort")
    server = pl.lit("202.102.0.0").alias("destIP"), pl.lit(80, pl.Int64).alias("destPort")
    there = sent.with_columns(*client, *server)
    swapped = {"srcIP": "destIP", "srcPort": "destPort", "destIP": "srcIP", "destPort": "srcPort"}
    return there.rename(swapped).select(there.columns) if back else there


def links(number: str, count: dict[str, int] = PACKETS) -> dict[str, wr.Stream]:
    """The links as streams, for the query of this number."""
    frames = {link: packets(link, c) for link, c in count.items()}
    slack: str | int = f"{SLACK} seconds"
    if number in JOINS:
        frames = {link: connected(frame, link in BACK) for link, frame in frames.items()}
    if number in IN_MINUTES:
        minute = (pl.col("ts") - BEGIN).dt.total_minutes()
        frames, slack = {link: frame.with_columns(ts=minute) for link, frame in frames.items()}, 1
    return {link: wr.stream(f, progress="ts", slack=slack, row_num="n", name=link) for link, f in frames.items()}


def answer(query: wr.Stream, size: int = 50) -> pl.DataFrame:
    """The results, with the packets pushed in small batches from all links in turn."""
    run = query.run()
    frames = {link: source.data for link, source in query.sources.items()}
    for start in range(0, max(f.height for f in frames.values()), size):
        for link, frame in frames.items():
            run.push(link, frame[start : start + size])
    return run.end().results()


def main() -> bool:
    """Run every query, print the outcome, and return whether one was wrong."""
    wrong = False
    for number, sql in QUERIES.items():
        query = wr.sql(sql, **links(number))
        found, expected = answer(query), oracle(query)
        right = found.columns == expected.columns and sorted(found.rows(), key=repr) == sorted(
            expected.rows(), key=repr
        )
        wrong = wrong or not right
        print(f"{number} {found.height:5} rows {'right' if right else 'WRONG'}")
    return wrong


if __name__ == "__main__" and main():
    sys.exit(1)
