-- Count the number of packets in M1, M2 and C links for the past 5 minutes; update the results every minute.
SELECT count(*) [RANGE 5 minutes, SLIDE 1 minute, WA ts]
FROM M1 UNION M2 UNION C
