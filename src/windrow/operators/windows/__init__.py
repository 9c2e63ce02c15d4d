"""Window aggregation: one file per algorithm, and what they share."""
