-- Find the network packet pairs from the M1, and the union of M2 and C, that are in corresponding NetFlows for each 1
-- minute interval.
SELECT M1.srcIP, M1.destIP, M1.ts
FROM M1, M2 Union C as M3
[RANGE TUMBLING 1 minute, WA ts]
WHERE M1.srcIP = M3.destIP and M1.destIP = M3.srcIP and
      M1.srcPort = M3.destPort and M1.destPort = M3.srcPort
