-- Find the maximum packet size for the past 4 minutes and update the result every 1 minute.
SELECT max(length) [RANGE 4 minutes, SLIDE 1 minute, WA ts]
FROM Main
