"""Spark's state store in memory, as a stateful processor sees it: what a micro-batch writes counts once it commits."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from windrow.testing.mismatch import Mismatch

KINDS: dict[str, type] = {"STRING": str, "BINARY": bytes, "BIGINT": int, "INT": int}
Value = tuple[Any, ...]


@dataclass
class StateStore:
    """The state of one stateful operator: for each grouping key and variable its value, or its map."""

    values: dict[tuple[Value, str], Value] = field(default_factory=dict)
    maps: dict[tuple[Value, str], dict[Value, Value]] = field(default_factory=dict)

    def draft(self) -> StateStore:
        """A copy for a micro-batch to write to; it replaces this one if the micro-batch commits."""
        return StateStore(dict(self.values), {name: dict(entries) for name, entries in self.maps.items()})


class Handle:
    """What ``StatefulProcessor.init`` gets. Variables exist from ``init`` on, and are those of the current key."""

    def __init__(self, store: StateStore) -> None:
        self.store = store
        self.key: Value | None = None  # None while there is no group, as in ``init``

    def getValueState(self, name: str, schema: str) -> ValueState:  # noqa: N802 (Spark's names, here and below)
        self._check_init(name)
        return ValueState(self, name, schema)

    def getMapState(self, name: str, key_schema: str, value_schema: str) -> MapState:  # noqa: N802
        self._check_init(name)
        return MapState(self, name, key_schema, value_schema)

    def at(self, name: str) -> tuple[Value, str]:
        """Where the state of the current key is."""
        if self.key is None:
            raise Mismatch(f"state variable {name!r} is used outside handleInputRows")
        return self.key, name

    def _check_init(self, name: str) -> None:
        if self.key is not None:
            raise Mismatch(f"state variable {name!r} is created outside init")


class ValueState:
    """One value of a group."""

    def __init__(self, handle: Handle, name: str, schema: str) -> None:
        self.handle, self.name, self.schema = handle, name, schema

    def exists(self) -> bool:
        return self.get() is not None

    def get(self) -> Value | None:
        return self.handle.store.values.get(self.handle.at(self.name))

    def update(self, value: Value) -> None:
        self.handle.store.values[self.handle.at(self.name)] = fitting(value, self.schema)

    def clear(self) -> None:
        self.handle.store.values.pop(self.handle.at(self.name), None)


class MapState:
    """A map of a group."""

    def __init__(self, handle: Handle, name: str, key_schema: str, value_schema: str) -> None:
        self.handle, self.name = handle, name
        self.key_schema, self.value_schema = key_schema, value_schema

    @property
    def _entries(self) -> dict[Value, Value]:
        return self.handle.store.maps.setdefault(self.handle.at(self.name), {})

    def exists(self) -> bool:
        return bool(self._entries)

    def getValue(self, key: Value) -> Value | None:  # noqa: N802
        return self._entries.get(fitting(key, self.key_schema))

    def containsKey(self, key: Value) -> bool:  # noqa: N802
        return fitting(key, self.key_schema) in self._entries

    def updateValue(self, key: Value, value: Value) -> None:  # noqa: N802
        self._entries[fitting(key, self.key_schema)] = fitting(value, self.value_schema)

    def iterator(self) -> Iterator[tuple[Value, Value]]:
        return iter(sorted(self._entries.items()))  # RocksDB has its keys in order

    def keys(self) -> Iterator[Value]:
        return iter(sorted(self._entries))

    def values(self) -> Iterator[Value]:
        return (value for _, value in self.iterator())

    def removeKey(self, key: Value) -> None:  # noqa: N802
        self._entries.pop(fitting(key, self.key_schema), None)

    def clear(self) -> None:
        self._entries.clear()


def fitting(value: Value, schema: str) -> Value:
    """The value, if it is a tuple of the types of the schema; Spark would fail to convert any other."""
    kinds = [KINDS[part.split()[1].upper()] for part in schema.split(",")]
    if len(value) != len(kinds) or any(v is not None and type(v) is not k for v, k in zip(value, kinds, strict=True)):
        raise Mismatch(f"state of the columns {schema!r} cannot hold {value!r}")
    return tuple(value)
