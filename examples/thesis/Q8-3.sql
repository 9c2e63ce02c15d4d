-- Find the network packet pairs from the union of A with B and the union of C with D that are in correponding NetFlow for
-- each 10-minute interval.
--
-- The sentence says 10 minutes, the SQL of the thesis 10 seconds. It prints "M1.destIP and M2.srcIP" for the equality,
-- and a comma before WHERE.
SELECT M1.srcIP, M1.destIP, M1.ts
FROM A UNION B as M1, C UNION D as M2
[RANGE TUMBLING 10 seconds, WA ts]
WHERE M1.srcIP = M2.destIP and M1.destIP = M2.srcIP and
      M1.srcPort = M2.destPort and M1.destPort = M2.srcPort
