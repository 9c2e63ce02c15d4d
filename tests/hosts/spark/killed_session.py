"""The program that test_session_kills.py kills: a session whose queries come and go while it reads FOLDER/in.

Run as ``python killed_session.py FOLDER SEED``. What it has to do is drawn from the seed; what it has done is in the
folder. Files are moved to FOLDER/in as changes go on, so that a change comes AHEAD micro-batches after its moment at
the latest, however fast the machine is.
"""

import json
import os
import random
import sys
import time
from pathlib import Path

import windrow as wr

SLACK = "3.2 seconds"
FILES = 14
QUERIES = 20
AHEAD = 2


def statements():
    """The queries by name, of every kind; q0 is the only one in Python, and fails some time."""
    texts = []
    for n in range(QUERIES):
        size, slide = 20 + n % 3 * 20, 10
        texts.append(
            [
                f"SELECT src_ip, count(*) AS n, max(len) AS longest FROM packets [RANGE '{size} seconds', SLIDE "
                f"'{slide} seconds', WA ts] WHERE len > {600 if n < 10 else 900} GROUP BY src_ip",
                f"SELECT src_ip, sum(len) AS total FROM packets [RANGE '{size} seconds', SLIDE '{size} seconds', WA ts]"
                f" WHERE len > 600 GROUP BY src_ip",
                f"SELECT src_ip, count(*) AS n FROM packets [SESSION '{n % 4 + 1} seconds', WA ts] WHERE len > 1300 "
                f"GROUP BY src_ip",
                f"SELECT max(n) AS most FROM (SELECT src_ip, count(*) AS n FROM packets [RANGE '10 seconds', SLIDE "
                f"'10 seconds', WA ts] GROUP BY src_ip) [RANGE '{size} seconds', SLIDE '20 seconds', WA window_end]",
                "SELECT a.ts, a.src_ip, b.len FROM packets AS a [RANGE '2 seconds'] JOIN packets AS b "
                f"[RANGE '2 seconds'] ON a.src_ip = b.src_ip WHERE a.len > 1480 AND b.len < {42 + n}",
            ][n % 5]
        )
    return {f"q{n}": text for n, text in enumerate(texts)}


def brittle(packets):
    """A query that fails on a window of its second file or a later one."""

    def lower(state):
        if state > 100_000:
            raise ValueError("more than it can take")
        return state

    most = wr.aggregate("seen", lambda _: 1, lambda a, b: a + b, lower, state="BIGINT", result="BIGINT")
    return packets.where("len > 800").window("10 minutes", "10 seconds").agg(n=most("len"))


def changes(seed):
    """What happens, with the number of micro-batches before it: names to add, or to drop."""
    rng = random.Random(seed)
    names = list(statements())
    rng.shuffle(names)
    found = []
    while names:
        count = rng.choice([1, 2, 3, 4])
        new, names = names[:count], names[count:]
        begin = rng.randrange(FILES - 4)
        found.append((begin, "add", new))
        found += [(begin + rng.randrange(1, 6), "drop", [name]) for name in new if name != "q0" and rng.random() < 0.5]
    return sorted(found)


def publish(folder, count):
    """Let the session see so many files, whole at once."""
    (folder / "in").mkdir(exist_ok=True)
    for file in sorted((folder / "rows").glob("*.parquet"))[:count]:
        if not (folder / "in" / file.name).exists():
            os.link(file, folder / "in" / file.name)


def main(folder, seed):
    publish(folder, AHEAD)
    wr.session("killed", log=folder / "spark.log", **{"spark.sql.shuffle.partitions": 2})
    packets = wr.read_parquet(folder / "in", "ts", slack=SLACK, streaming=True, max_files=1)
    session = wr.Session(folder=folder / "session", shards=2, packets=packets)
    python = {"q0": brittle(session.streams["packets"])}
    session.start(queries=python)
    for moment, action, names in changes(seed):
        publish(folder, moment + AHEAD)
        while session.batches < min(moment, FILES) and session.error() is None:
            time.sleep(0.01)
        known = standing(folder)
        if action == "add" and names[0] not in known:
            session.add(**{name: python.get(name, statements()[name]) for name in names})
        elif action == "drop" and known[names[0]]["status"] != "dropped":
            session.drop(*names)
    publish(folder, FILES)
    session.process_available()
    session.stop()


def standing(folder):
    """All queries that there were, by name, as the record of the session has them."""
    record = json.loads((folder / "session" / "session.json").read_text())
    return {q["name"]: q for q in [*record["ended"], *(q for group in record["groups"] for q in group["queries"])]}


if __name__ == "__main__":
    main(Path(sys.argv[1]), int(sys.argv[2]))
