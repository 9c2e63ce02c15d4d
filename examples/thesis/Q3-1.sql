-- Find network packets pairs from Main1 and Main2 links; the source IP of the Main1 packet should match the destination IP
-- of the Main2 packet; the ts attribute of the Main1 packet should be no more than 2 minutes later than the ts attribute
-- of the Main2 packet and the ts attribute of the Main2 packet should be no more than 3 minutes later than the ts
-- attribute of the Main1 packet.
--
-- The thesis selects * from both links, whose columns have the same names.
SELECT Main1.*, Main2.srcIP AS srcIP2, Main2.destIP AS destIP2, Main2.ts AS ts2
FROM Main1 [WA ts, RANGE 3 min],
Main2 [WA ts, RANGE 2 min]
WHERE Main1.srcIP = Main2.destIP
