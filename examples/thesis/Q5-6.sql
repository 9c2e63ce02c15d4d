-- Count the number of packets for the past 5 minutes; update the result for every 5 tuples as defined by the ts
-- attribute order.
SELECT count(*) [RANGE 5 minutes, RATTR ts, SLIDE 5 rows, SATTR rank(ts)]
FROM Main
