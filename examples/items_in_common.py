"""How many kinds of items two stores have sold in common in the last ten minutes, in order (Hammad et al., section 1).

The paper asks it as

    SELECT COUNT(DISTINCT S.ItemType) FROM SensorReadings1 S, SensorReadings2 T
    WHERE S.ItemType = T.ItemType WINDOW 10 minutes

and runs a join, DISTINCT and COUNT one after another, each with the window. Its windows are inclusive, ours half open:
two sales exactly ten minutes apart are a pair there, and none here. With the bounds in WHERE, ``S.ts BETWEEN T.ts -
INTERVAL 10 minutes AND ..``, they would be one. A pair has the time of its later sale, and is counted for ten minutes.
"""

from datetime import datetime, timedelta

import windrow as wr

OPENING = datetime(2024, 1, 1, 9)
KINDS = ("cup", "jug", "pot", "pan", "lid")
QUERY = """
    SELECT window_end AS at, count(DISTINCT ItemType) AS kinds
    FROM (SELECT S.ItemType, greatest(S.ts, T.ts) AS ts
          FROM SensorReadings1 AS S [RANGE 10 minutes, WA ts], SensorReadings2 AS T [RANGE 10 minutes, WA ts]
          WHERE S.ItemType = T.ItemType
          ORDER BY ts) AS pairs
    [RANGE 10 minutes, SLIDE 5 minutes, WA ts]
    """


def sale(second: int, kind: str) -> dict[str, object]:
    """A tag that a checkout has read."""
    return {"ts": OPENING + timedelta(seconds=second), "ItemType": kind}


# The first store sells every kind in turn, one item in 40 seconds; the second one, one in 3 minutes, sells fewer kinds
# after half an hour. Its readings arrive 2 minutes late, so that the join has to put its results in order.
FIRST = [(second, sale(second, KINDS[second // 40 % 5])) for second in range(0, 3600, 40)]
SECOND = [
    (second + 120, sale(second, KINDS[second // 180 % (5 if second < 1800 else 2)])) for second in range(90, 3600, 180)
]

streams = {
    name: wr.stream([sale(0, "cup")], progress="ts", name=name) for name in ("SensorReadings1", "SensorReadings2")
}
run = wr.sql(QUERY, **streams).run()
arrivals = sorted(
    [(at, "SensorReadings1", row) for at, row in FIRST] + [(at, "SensorReadings2", row) for at, row in SECOND],
    key=lambda a: a[0],
)
for _, reader, row in arrivals:
    run.push(reader, [row])
    run.promise(reader, row["ts"])  # the readings of one store come in order
    for at, kinds in run.results().rows():
        print(f"{at:%H:%M}: {kinds} in common")
for at, kinds in run.end().results().rows():
    print(f"{at:%H:%M}: {kinds} in common, at the end")
