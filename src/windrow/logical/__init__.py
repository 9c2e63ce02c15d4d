"""Logical plans and the expressions in them."""
