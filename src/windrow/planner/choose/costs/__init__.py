"""Cost models, one file per paper."""
