"""Operators on progress: what enters a query, how promises are made, joined and changed."""
