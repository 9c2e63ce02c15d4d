"""Hosts feed graphs and take their output. They have no algorithm of their own."""
