-- For each source IP, find the maximum packet length of the past 1000 packets from the source IP; update the results
-- for every 10 packets from the source IP.
SELECT srcIP, max(length) [RANGE 1000 rows, SLIDE 10 rows, WA row-num, PA srcIP]
FROM Main
