"""Feed a query row by row in this process, and see what a promise releases."""

from datetime import datetime

import windrow as wr

NOTHING_YET: list[dict[str, object]] = [{"ts": datetime(2024, 1, 1), "sensor": "a", "degrees": 0.0}]

readings = wr.stream(NOTHING_YET, progress="ts", name="readings")
means = readings.window(range="1 minute").group_by("sensor").agg(mean=wr.avg("degrees"), n=wr.count())

run = means.run()
run.push("readings", [{"ts": datetime(2024, 1, 1, 10, 0, 30), "sensor": "a", "degrees": 20.0}])
run.push("readings", [{"ts": datetime(2024, 1, 1, 10, 0, 10), "sensor": "a", "degrees": 22.0}])  # out of order
print("before the promise:", run.results().height, "results")

run.promise("readings", datetime(2024, 1, 1, 10, 1))
print("after it:", run.results().rows())

run.push("readings", [{"ts": datetime(2024, 1, 1, 10, 0, 59), "sensor": "a", "degrees": 99.0}])
print("late rows:", run.counts["rows_late"])
