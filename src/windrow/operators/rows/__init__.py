"""Operators on rows: selections, projections, order, duplicates."""
