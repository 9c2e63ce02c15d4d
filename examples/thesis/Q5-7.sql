-- Find the network packet pairs from Main1 and Main2, in which the source IP of the Main1 packet matches the destination
-- IP of the Main2 packet for each 5 minute interval.
--
-- Columns with the same name are renamed, and the comma before WHERE is left out.
SELECT Main1.srcIP, Main1.destIP, Main2.srcIP AS srcIP2, Main2.destIP AS destIP2, Main2.ts
FROM Main1, Main2
[RANGE TUMBLING 5 minutes, WA ts]
WHERE Main1.srcIP = Main2.destIP
