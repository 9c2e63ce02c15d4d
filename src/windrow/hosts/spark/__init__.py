"""The Spark host: map side (stateless, vectorised), exchange by shard, shard (stateful, one graph)."""
