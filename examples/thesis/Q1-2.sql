-- Count the number of packets from three links, Control, Main1 and Main2, for every minute; update the result every
-- minute.
SELECT count (*) [RANGE 1 minute, SLIDE 1 minute, WA ts]
FROM Control union Main1 union Main2
