-- Compute the total size of the packets from a network traffic link, Main, in the past 10 seconds for each source IP;
-- update the results every second.
--
-- The sentence says 10 seconds, the SQL of the thesis 1 second, a tumbling window. This file has the SQL as printed.
SELECT srcIP, sum(len) [RANGE 1 second, SLIDE 1 second, WA ts]
FROM Main
GROUP BY srcIP
