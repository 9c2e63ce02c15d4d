"""Topics of Kafka: what is there, which offsets a step reads, and the messages at them. No Spark here."""
