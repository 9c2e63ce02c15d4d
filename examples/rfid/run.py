"""The packing line of Bai et al., section 5: which product is in which case, in SQL and in Python."""

import random
from datetime import datetime, timedelta
from pathlib import Path

import polars as pl

import windrow as wr

HERE = Path(__file__).parent
QUERIES = {name: (HERE / f"{name}.sql").read_text() for name in ("containment", "one_per_case")}
BEGIN, SLACK = datetime(2024, 1, 1, 8), 30  # seconds
# What the readers of two packing lines see: the second, the line, the tag.
CASES = [(0, 1, "C1"), (5, 2, "C2"), (60, 1, "C3"), (70, 1, "C4"), (80, 2, "C5")]
PRODUCTS = [(10, 1, "cup"), (20, 1, "jug"), (60, 1, "pot"), (65, 2, "pan"), (75, 1, "lid"), (90, 1, "mug")]
PRODUCTS += [(2, 2, "tin"), (85, 2, "can")]


def readings(rows: list[tuple[int, int, str]], seed: int = 1) -> pl.DataFrame:
    """As they arrive: each reading is delayed by up to SLACK seconds."""
    rng = random.Random(seed)
    arrived = sorted(rows, key=lambda row: row[0] + rng.uniform(0, SLACK))
    return pl.DataFrame([{"ts": BEGIN + timedelta(seconds=t), "line": line, "tag": tag} for t, line, tag in arrived])


def readers(seed: int = 1) -> dict[str, wr.Stream]:
    """Both readers as streams."""
    frames = {"cases": readings(CASES, seed), "products": readings(PRODUCTS, seed + 1)}
    return {name: wr.stream(f, progress="ts", slack=f"{SLACK} seconds", name=name) for name, f in frames.items()}


def in_sql(name: str, streams: dict[str, wr.Stream]) -> wr.Stream:
    """A query of this folder."""
    return wr.sql(QUERIES[name], **streams)


def in_python(name: str, streams: dict[str, wr.Stream]) -> wr.Stream:
    """The same query."""
    products, cases = streams["products"], streams["cases"]
    if name == "containment":
        both = products.following(cases, on="line", how="left", max_keys=100)
    else:
        both = products.following(cases, on="line", matching="chronicle", within="1 hour", how="left")
    return both.select("ts", "line", product="tag", packing_case="tag_right")


def answer(query: wr.Stream) -> list[tuple[str, str | None]]:
    """Products and their cases in the order of time, with the readings pushed one by one."""
    run = query.run()
    for name, source in query.sources.items():
        for row in source.data.to_dicts():
            run.push(name, [row])
    return run.end().results().sort("ts", "product").select("product", "packing_case").rows()


def main() -> None:
    """Print what both queries say."""
    for name in QUERIES:
        found = answer(in_sql(name, readers()))
        assert found == answer(in_python(name, readers()))
        print(f"{name}: " + ", ".join(f"{product} in {case or 'no case'}" for product, case in found))


if __name__ == "__main__":
    main()
