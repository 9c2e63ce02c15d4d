"""Sinks of our own: what Spark has no exactly-once sink for."""
