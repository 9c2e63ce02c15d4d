"""What scalar expressions mean: Spark's types, casts, arithmetic and texts, with ANSI rules, as Polars expressions."""
