-- Count the number of SYN, SYN_ACK pairs (SYN_ACK arrives after SYN for no more than 2 minutes) for network connections
-- between S_0 and S_1 for each time period, i.e., each pair of timestamps, (S_0.ts, S_1.ts).
--
-- The text has no SQL for it. It names the band, which is symmetric, and the groups. The packets here have no flags: those
-- of S0 stand for SYN, those of S1 for SYN_ACK.
SELECT S0.ts AS ts0, S1.ts AS ts1, count(*)
FROM S0, S1
WHERE S1.ts BETWEEN S0.ts - INTERVAL 2 minutes AND S0.ts + INTERVAL 2 minutes and
      S0.srcIP = S1.destIP and S0.destIP = S1.srcIP and S0.srcPort = S1.destPort and S0.destPort = S1.srcPort
GROUP BY S0.ts, S1.ts
