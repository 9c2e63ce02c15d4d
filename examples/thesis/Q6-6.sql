-- Computes the total size of the packets in the past 10 seconds for each source IP and update the results every second.
SELECT srcIP, sum(len) [RANGE 10 seconds, SLIDE 1 second, WA ts]
FROM packets
GROUP BY srcIP
