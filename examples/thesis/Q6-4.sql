-- Over the past 10 minutes, find the srcIPs from which the number of packets received is greater than or equal to 5% of
-- the total number of packets received; update the result every minute.
--
-- The thesis gives the sentence without SQL.
SELECT heavy_hitters(srcIP, 0.05) [RANGE 10 minutes, SLIDE 1 minute, WA ts]
FROM packets
