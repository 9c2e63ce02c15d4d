-- A case can hold one product, and there might be more than one packing case waiting when a product arrives: the earliest
-- packing case is used.
--
-- One product per case: both are used once. The paper keeps cases forever; here one that has waited for an hour has left
-- the line.
SELECT p.ts, p.line, p.tag AS product, c.tag AS packing_case
FROM products p LEFT FOLLOWING CHRONICLE cases c ON p.line = c.line
WITHIN 1 HOUR
