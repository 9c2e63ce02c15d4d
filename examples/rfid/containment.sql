-- Each arriving product is packed into the waiting packing case. Which product is packed into which case?
--
-- Many products per case: a product belongs to the latest case before it. A product that no case was waiting for comes out
-- without one. The paper has one packing line; with several, a product and its case are on the same one.
SELECT p.ts, p.line, p.tag AS product, c.tag AS packing_case
FROM products p LEFT FOLLOWING RECENT cases c ON p.line = c.line
KEYS 100
