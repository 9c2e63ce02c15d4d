-- Find the maximum packet length of packets for the past 5 minutes; update the result every tuple.
SELECT max(length) [RANGE 5 minutes, RATTR ts, SLIDE 1 row, SATTR row-num]
FROM Main
