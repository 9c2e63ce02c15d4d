"""Joins of two streams: rows in on two ports, pairs out."""
