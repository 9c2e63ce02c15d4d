-- Count the number of packets from each source IP from the past 10 minutes; update the results every minute.
Select srcIP, count(*) [RANGE 10 minutes, SLIDE 1 minute, WA ts]
From Main
Group By srcIP
