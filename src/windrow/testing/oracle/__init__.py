"""What a query means, computed the slow and obvious way from all rows at once.

Nothing here is shared with what it checks: no operator, no planner, no host, and no translation of expressions. Only
the definitions are: the nodes of the query, the window types, and what a promise is.
"""

from windrow.testing.oracle.query import bad_rows, meaning, oracle

__all__ = ["bad_rows", "meaning", "oracle"]
