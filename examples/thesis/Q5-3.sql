-- For the past 1000 packets, find the maximum packet length from each source IP; update the result every 10 packets.
SELECT srcIP, max(length) [RANGE 1000 rows, SLIDE 10 rows, WA row-num]
FROM Main
GROUP BY srcIP
