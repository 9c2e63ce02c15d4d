-- Count the number of network packets in the Main1 link from source IP 202.101.0.0 and 202.101.0.1 in every minute.
--
-- Here ts is in minutes, an integer: every value of it is a group that ends when the stream has passed it.
SELECT srcIP, ts, count (*)
FROM Main1
WHERE srcIP = "202.101.0.0" or srcIP = "202.101.0.1"
GROUP BY srcIP, ts
