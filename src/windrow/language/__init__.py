"""The two languages, SQL and Python, for one logical plan."""
