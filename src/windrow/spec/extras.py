"""Packages that only some queries need."""

from __future__ import annotations

from types import ModuleType

from windrow.errors import PlanError

MISSING = "{} needs the package {}: pip install 'windrow[kafka]'"


def kafka() -> ModuleType:
    """The client of Kafka."""
    try:
        import confluent_kafka
        import confluent_kafka.admin
    except ImportError:
        raise PlanError(MISSING.format("Kafka", "confluent-kafka")) from None
    found: ModuleType = confluent_kafka
    return found


def avro() -> ModuleType:
    """What reads values in Avro."""
    try:
        import fastavro
    except ImportError:
        raise PlanError(MISSING.format("Avro", "fastavro")) from None
    found: ModuleType = fastavro
    return found
