-- Count the number of the packets from three network traffic links, Main1, Main2 and Control, in the past 10 seconds
-- for each source IP, and update the results every second.
--
-- The thesis writes the union with its sign: FROM (Main2 ∪ (Main1 ∪ Control)).
SELECT count(*) [RANGE 10 sec, SLIDE 1 sec, WA ts]
FROM (Main2 UNION (Main1 UNION Control))
GROUP BY srcIP
