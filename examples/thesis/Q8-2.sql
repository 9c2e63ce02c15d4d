-- Count the number of packets from each source and destination IP pair in M1 and M2 links for the past minute; update
-- the results every minute.
SELECT srcIP, destIP, count(*) [RANGE 1 minute, SLIDE 1 minute, WA ts]
FROM M1 UNION M2
GROUP BY srcIP, destIP
