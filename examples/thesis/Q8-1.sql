-- Count the number of packets from each source and destination IP pair in the Main link for the past minute; update the
-- results every minute.
SELECT srcIP, destIP, count(*) [RANGE 1 minute, SLIDE 1 minute, WA ts]
FROM Main
GROUP BY srcIP, destIP
