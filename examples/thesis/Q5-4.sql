-- Count the number of packets from each source IP; update the results every minute.
SELECT srcIP, count(*) [RANGE ALL, SLIDE 1 minute, WA ts]
FROM Main1
GROUP BY srcIP
