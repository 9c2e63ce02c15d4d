"""Rows that follow each other: as-of joins, and sequences of any number of steps."""
