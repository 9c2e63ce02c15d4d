-- Count the number of packets from each source IP for the past 10 minutes; update the results every minute.
SELECT srcIP, count(*) [RANGE 10 minutes, SLIDE 1 minute, WA ts]
FROM M
GROUP BY srcIP
