"""Sources of our own."""
