"""The busiest minute of every ten: a window over the results of a window, in one query."""

import windrow as wr

packets = wr.stream([{"second": s, "bytes": 40 + s % 7} for s in range(0, 1800, 3)], progress="second")
busiest = wr.sql(
    """
    SELECT max(total) AS busiest_minute, sum(total) AS total
    FROM (SELECT sum(bytes) AS total FROM packets [RANGE 60, SLIDE 60, WA second])
    [RANGE 600, SLIDE 600]
    """,
    packets=packets,
)
for start, end, minute, total in busiest.collect().rows():
    print(f"{start:5} to {end:5}: {minute} of {total} bytes")
