-- Find the network packet pairs from Main1 and Main2 in which the source IP of the Main1 packet matches the destination
-- IP of the Main2 packet; the Main1 packet should follow the Main2 packet within 2 minutes, and the Main2 packet should
-- follow the Main1 within 3 minutes.
--
-- Columns with the same name are renamed.
SELECT Main1.srcIP, Main1.destIP, Main2.srcIP AS srcIP2, Main2.destIP AS destIP2, Main2.ts
FROM Main1 [RANGE 3 minutes, WA ts], Main2 [RANGE 2 minutes, WA ts]
WHERE Main1.srcIP = Main2.destIP
