-- Count the number of packets from each source IP in the Main link for the past 10 minutes; update the results every
-- minute.
Select srcIP, count(*) [RANGE 10 minutes, SLIDE 1 minute, WATTR ts]
From Main
Group By srcIP
