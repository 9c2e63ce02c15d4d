"""Sinks: formats for which Spark has no exactly-once sink."""
