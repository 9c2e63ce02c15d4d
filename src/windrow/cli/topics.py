"""Topics of Kafka on the command line: ``kafka:BROKERS/TOPIC``, with options as in the query of a URL."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl

from windrow.api.kafka import read_kafka
from windrow.api.stream import Stream
from windrow.errors import QueryError, listing
from windrow.sinks.kafka import KafkaSink

FORMATS = {
    "kafka": "json",
    "kafka-csv": "csv",
    "kafka-avro": "avro",
    "kafka-avro-confluent": "avro-confluent",
}
OF_SOURCES = ("starting", "max_rows", "on_loss", "patience", "attributes", "prefix")
OF_SINKS = ("key", "id")
LISTS = ("attributes", "key")
SETTINGS = "settings"  # a file
EXAMPLE = "kafka:broker1:9092,broker2:9092/packets?max_rows=100000"


@dataclass(frozen=True)
class Place:
    """A topic, and the options for it. Those with a dot are settings of the client."""

    brokers: str
    topic: str
    options: dict[str, Any]
    settings: dict[str, str]


def place(text: str, known: tuple[str, ...]) -> Place:
    """BROKERS/TOPIC?NAME=VALUE&..

    >>> place("a:1,b:2/t?max_rows=5&security.protocol=SSL", OF_SOURCES)
    Place(brokers='a:1,b:2', topic='t', options={'max_rows': '5'}, settings={'security.protocol': 'SSL'})
    """
    where, _, query = text.partition("?")
    brokers, _, topic = where.rpartition("/")
    if not brokers or not topic:
        raise QueryError(f"{text!r} is not BROKERS/TOPIC, as in {EXAMPLE}")
    options: dict[str, Any] = {}
    settings: dict[str, str] = {}
    for name, value in parse_qsl(query, keep_blank_values=True, strict_parsing=bool(query)):
        if name == SETTINGS:
            settings |= _read(value)
        elif "." in name:
            settings[name] = value
        elif name in known:
            options[name] = tuple(each.strip() for each in value.split(",")) if name in LISTS else value
        else:
            more = f"{listing((*known, SETTINGS))}, and the client's own, which have a dot"
            raise QueryError(f"{text!r}: unknown option {name!r}; available: {more}")
    return Place(brokers, topic, options, settings)


def _read(path: str) -> dict[str, str]:
    """Settings of the client from a file with lines NAME=VALUE, so that no password is on a command line."""
    if not Path(path).is_file():
        raise QueryError(f"settings={path}: there is no such file")
    lines = [line.strip() for line in Path(path).read_text().splitlines()]
    pairs = [line.partition("=") for line in lines if line and not line.startswith("#")]
    if odd := [name for name, equals, _ in pairs if not equals]:
        raise QueryError(f"settings={path}: {odd[0]!r} is not NAME=VALUE")
    return {name.strip(): value.strip() for name, _, value in pairs}


def source(kind: str, text: str, name: str, schema: str | None, streaming: bool, given: dict[str, Any]) -> Stream:
    """The stream over a topic."""
    at = place(text, OF_SOURCES)
    options: dict[str, Any] = dict(at.options)
    if "max_rows" in options:
        if not options["max_rows"].isdigit():
            raise QueryError(f"max_rows={options['max_rows']} is not a number of rows")
        options["max_rows"] = int(options["max_rows"]) if streaming else None
    if not streaming:
        options.pop("starting", None)
    columns = _schema(schema)
    options |= {"streaming": streaming, "name": name, "settings": at.settings, **given}
    return read_kafka(at.brokers, at.topic, schema=columns, format=FORMATS[kind], **options)


def _schema(given: str | None) -> Any:
    """The columns, or for Avro a schema: as text or as @FILE."""
    if given is None or not given.startswith("@"):
        return given
    if not Path(given[1:]).is_file():
        raise QueryError(f"--schema {given}: there is no such file")
    text = Path(given[1:]).read_text()
    try:
        found = json.loads(text)
    except ValueError:
        return text
    return text if "type" in found else found


def sink(text: str, role: str) -> KafkaSink:
    """The sink that writes to a topic; ``role``: which output of the query it is."""
    at = place(text, OF_SINKS)
    return KafkaSink(at.brokers, at.topic, at.options.get("key", ()), at.settings, at.options.get("id", role))
