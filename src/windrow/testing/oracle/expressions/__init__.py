"""Expressions by the oracle: each tree becomes a Python function of one row."""
