"""Rings of processes: their connections, their state in files, and simulated ones."""
