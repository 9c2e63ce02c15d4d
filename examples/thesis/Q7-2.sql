-- Count the number of network packet pairs in each minute from M1 and M2, in the same Netflow but in the opposite
-- direction.
--
-- The thesis varies the window of the join from 1 to 9 seconds. It prints "M1.destIP and M2.srcIP" for the equality.
SELECT count(*) [RANGE 1 minute, SLIDE 1 minute, WA M1.ts]
FROM M1 [RANGE 9 seconds, WA ts], M2 [RANGE 9 seconds, WA ts]
WHERE M1.srcIP = M2.destIP and M1.destIP = M2.srcIP and M1.srcPort = M2.destPort and M1.destPort = M2.srcPort
