-- Count the number of packets from each source IP for the past 4 minutes and update the result every minute.
SELECT count(*) [RANGE 4 minutes, SLIDE 1 minute, WA ts]
FROM packets
GROUP BY srcIP
