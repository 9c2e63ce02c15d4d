"""SQL to logical plans."""
