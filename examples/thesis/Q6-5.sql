-- Count the number of packets from each source IP for the past 5 minutes; update the result every 1 minute
SELECT srcIP, count(*) [RANGE 5 minutes, SLIDE 1 minute, WA ts]
FROM M1
GROUP BY srcIP
