"""The values of messages: each format reads what fits its columns, and one message never spoils another."""

import base64
import io
import json
from datetime import UTC, date, datetime
from decimal import Decimal

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

import windrow as wr
from windrow.api.messages import messages
from windrow.errors import DataError, PlanError, QueryError
from windrow.operators import Decode
from windrow.operators.rows.values import csv as csv_module
from windrow.operators.rows.values.avro import AvroValues
from windrow.operators.rows.values.csv import CsvValues
from windrow.operators.rows.values.json import JsonValues
from windrow.spec import avro, extras
from windrow.spec.messages import RAW

TYPES = {
    "d": pl.Date(),
    "b": pl.Binary(),
    "m": pl.Decimal(10, 2),
    "f": pl.Float64(),
    "o": pl.Boolean(),
    "i": pl.Int8(),
    "n": pl.Datetime("us"),
    "z": pl.Datetime("us", "UTC"),
    "s": pl.String(),
}
ROW = {
    "d": date(2024, 1, 2),
    "b": b"abc",
    "m": Decimal("1.25"),
    "f": 1.5,
    "o": True,
    "i": -5,
    "n": datetime(2024, 1, 1, 10, 0, 0, 5),
    "z": datetime(2024, 1, 1, 10, 0, 0, 5, tzinfo=UTC),
    "s": 'say "hi", twice',
}
NULLS = dict.fromkeys(TYPES)


def text(value):
    if isinstance(value, bytes):
        return base64.b64encode(value).decode()
    if isinstance(value, datetime):
        return value.isoformat().replace("+00:00", "Z")
    return str(value).lower() if isinstance(value, bool) else str(value)


def in_json(row):
    keep = (bool, int, float, type(None))
    return json.dumps({k: v if isinstance(v, keep) else text(v) for k, v in row.items()}).encode()


def in_csv(row):
    out = io.StringIO()
    csv_module.csv.writer(out).writerow(["" if v is None else text(v) for v in row.values()])
    return out.getvalue().encode()


@pytest.mark.parametrize(("made", "values"), [(in_json, JsonValues(TYPES)), (in_csv, CsvValues(TYPES))])
def test_every_type_is_read(made, values):
    rows, bad = values.rows([made(ROW), made(NULLS)])
    assert bad == {}
    assert rows.schema == TYPES
    assert rows.to_dicts() == [ROW, NULLS]


@pytest.mark.parametrize(
    ("stamp", "read"),
    [
        ("2024-01-01T00:00:00Z", datetime(2024, 1, 1, tzinfo=UTC)),
        ("2024-01-01T00:00:00", datetime(2024, 1, 1, tzinfo=UTC)),
        ("2024-01-01T02:00:00+02:00", datetime(2024, 1, 1, tzinfo=UTC)),
        ("2024-01-01T00:00:00.123456789Z", datetime(2024, 1, 1, 0, 0, 0, 123456, tzinfo=UTC)),
    ],
)
def test_timestamps_are_those_of_iso_8601(stamp, read):
    for values, value in (
        (JsonValues({"z": TYPES["z"]}), json.dumps({"z": stamp}).encode()),
        (CsvValues({"z": TYPES["z"]}), stamp.encode()),
    ):
        assert values.rows([value])[0]["z"].to_list() == [read]


ODD_JSON = [
    b"",
    b" ",
    b"null",
    b"5",
    b"[1]",
    b"{",
    b'{"x": 1',
    b'"x": 2}',
    b'{"x": 1} {"x": 2}',
    b'{"x": 1}}\n{"i":1,"v":{"x": 2}',
    b'{"x": 1}}\n{"i":2,"v":{"x": 2}',
    b'{"x": 1.5}',
    b'{"x": 1.0}',
    b'{"x": "1"}',
    b'{"x": true}',
    b'{"x": {}}',
    b'{"x": [1]}',
    b'{"x": 9223372036854775808}',
    b'{"x": NaN}',
    b'{"x": 1, "x": 2}',
    b'{"s": 5}',
    b'{"s": "\xff"}',
    b'{"s": "\\ud800"}',
    b'{"z": "soon"}',
    b'{"z": 5}',
    b'{"d": "2024-13-01"}',
    b"\x00",
    b'{"x": 1}\x00',
    b"\xff\xfe",
]
ODD_CSV = [
    b"",
    b"1",
    b"1,a,b",
    b"1.5,a",
    b"x,a",
    b'1,"a',
    b'1,"a"b',
    b"\xff,a",
    b"9223372036854775808,a",
    b'1,"a\nb"\n2',
]


@pytest.mark.parametrize("odd", ODD_JSON)
def test_json_that_does_not_fit_is_bad_and_spoils_nothing(odd):
    fields = {"x": pl.Int64(), "s": pl.String(), "z": TYPES["z"], "d": pl.Date()}
    rows, bad = JsonValues(fields).rows([b'{"x": 7}', odd, b'{"x": 8, "y": 0}'])
    assert list(bad) == [1]
    assert bad[1]
    assert rows["x"].to_list()[::2] == [7, 8]


@pytest.mark.parametrize("odd", ODD_CSV)
def test_csv_that_does_not_fit_is_bad_and_spoils_nothing(odd):
    rows, bad = CsvValues({"x": pl.Int64(), "s": pl.String()}).rows([b"7,a", odd, b'8,"b, c"'])
    assert list(bad) == [1]
    assert rows.rows()[::2] == [(7, "a"), (8, "b, c")]


@given(st.lists(st.sampled_from([b'{"x": 1}', b'{"x": 2}\n', *ODD_JSON]), max_size=12))
def test_json_is_read_as_if_each_message_were_alone(values):
    reader = JsonValues({"x": pl.Int64(), "s": pl.String()})
    rows, bad = reader.rows(values)
    alone = [reader.rows([value]) for value in values]
    assert sorted(bad) == [i for i, (_, odd) in enumerate(alone) if odd]
    good = [row for i, row in enumerate(rows.rows()) if i not in bad]
    assert good == [found.row(0) for found, odd in alone if not odd]


def test_nested_values():
    fields = {"l": pl.List(pl.Int64()), "s": pl.Struct({"a": pl.String()})}
    rows, bad = JsonValues(fields).rows([b'{"l": [1, null], "s": {"a": "x", "b": 1}}', b'{"l": [1.5]}', b'{"s": 1}'])
    assert rows.row(0) == ([1, None], {"a": "x"})
    assert sorted(bad) == [1, 2]


# -- Avro --------------------------------------------------------------------------------------------------------------
SCHEMA = {
    "type": "record",
    "name": "packet",
    "fields": [
        {"name": "ts", "type": {"type": "long", "logicalType": "timestamp-micros"}},
        {"name": "k", "type": ["null", "string"]},
        {"name": "n", "type": "int"},
        {"name": "price", "type": {"type": "bytes", "logicalType": "decimal", "precision": 6, "scale": 2}},
        {"name": "day", "type": {"type": "int", "logicalType": "date"}},
        {"name": "tags", "type": {"type": "array", "items": "string"}},
        {"name": "inner", "type": {"type": "record", "name": "inner", "fields": [{"name": "x", "type": "double"}]}},
        {"name": "id", "type": {"type": "string", "logicalType": "uuid"}},
    ],
}
RECORD = {
    "ts": datetime(2024, 1, 1, tzinfo=UTC),
    "k": None,
    "n": 7,
    "price": Decimal("12.34"),
    "day": date(2024, 1, 2),
    "tags": ["a", "b"],
    "inner": {"x": 1.5},
    "id": "12345678-1234-5678-1234-567812345678",
}


def in_avro(record, schema=None):
    out = io.BytesIO()
    library = extras.avro()
    library.schemaless_writer(out, library.parse_schema(schema or SCHEMA), record)
    return out.getvalue()


def test_avro_records_are_read_and_must_be_used_up():
    fields = avro.fields(json.dumps(SCHEMA))
    value = in_avro(RECORD)
    rows, bad = AvroValues(fields, {0: json.dumps(SCHEMA)}, False).rows([value, value[:-3], value + b"x", b"", value])
    assert rows.to_dicts()[::4] == [RECORD, RECORD]
    assert sorted(bad) == [1, 2, 3]
    assert bad[2].endswith("1 bytes are left after it")


def test_values_with_a_header_name_their_schema():
    """Those of an older one are read as the newest: a field that came later has its default."""
    old = {"type": "record", "name": "r", "fields": [{"name": "t", "type": "int"}]}
    new = {**old, "fields": [{"name": "t", "type": "long"}, {"name": "k", "type": "string", "default": "none"}]}
    read = messages("avro-confluent", {3: old, 12: json.dumps(new)})
    assert read.schema == {"t": pl.Int64(), "k": pl.String(), "partition": pl.Int32(), "offset": pl.Int64()}

    def headed(number, record, schema):
        return b"\0" + number.to_bytes(4, "big") + in_avro(record, schema)

    values = [
        headed(3, {"t": 1}, old),
        headed(12, {"t": 2, "k": "b"}, new),
        headed(4, {"t": 3}, old),
        in_avro({"t": 4}, old),
        b"",
    ]
    batch = pl.DataFrame({"value": values, "partition": 0, "offset": range(5)}).cast({"partition": pl.Int32})
    rows, bad = Decode(read).on_batch(0, batch)
    assert rows.select("t", "k").rows() == [(1, "none"), (2, "b")]
    assert bad.rows["offset"].to_list() == [2, 3, 4]
    assert "schema 4, and those given are [3, 12]" in bad.rows["reason"][0]


def test_schemas_without_columns_are_refused():
    for schema, why in (
        ("{", "not an Avro schema"),
        ('"string"', "of a record"),
        ({**SCHEMA, "fields": [{"name": "x", "type": ["int", "string"]}]}, "several types"),
        ({**SCHEMA, "fields": [{"name": "x", "type": {"type": "map", "values": "int"}}]}, "of type map"),
    ):
        with pytest.raises(QueryError, match=why):
            messages("avro", schema)
    with pytest.raises(QueryError, match="by their number"):
        messages("avro-confluent", SCHEMA)


# -- messages ----------------------------------------------------------------------------------------------------------
def raw(values, **columns):
    rows = {"value": values, "partition": [0] * len(values), "offset": range(len(values)), **columns}
    return pl.DataFrame(rows).cast({"value": pl.Binary, "partition": pl.Int32, "offset": pl.Int64})


def test_rows_in_messages_that_are_in_memory():
    rows = raw([b'{"t": 1, "k": "a"}', b'{"t": 12, "k": "b"}', b"oops"], key=[b"x", None, None])
    stream = wr.stream(rows, "t", value="json", schema="t BIGINT, k STRING", attributes="key", name="s")
    assert list(stream.schema) == ["t", "k", "partition", "offset", "key"]
    query = stream.window(10).agg(n=wr.count(), keys=wr.count("key"))
    assert query.collect().rows() == [(0, 10, 1, 1), (10, 20, 1, 0)]
    assert query.bad_rows()["offset"].to_list() == [2]
    run = query.run()
    run.push("s", [{"value": b'{"t": 3}', "partition": 0, "offset": 9}])
    assert (run.counts["rows_in"], run.counts["rows_bad"]) == (1, 0)
    assert run.end().results().rows() == [(0, 10, 1, 0)]


def test_a_session_in_process_takes_messages():
    stream = wr.stream(raw([b'{"t": 1}']), "t", value="json", schema="t BIGINT", slack=0, partitions=1, name="p")
    session = wr.Session(p=stream)
    session.add("counts", "SELECT count(*) AS n FROM p [RANGE 10, SLIDE 10, WA t]")
    values = [b'{"t": %d}' % t for t in range(25)]
    session.push("p", raw([*values, b"oops"]))
    assert session.results("counts")["n"].to_list() == [10, 10]
    assert session.bad_rows("counts")["offset"].to_list() == [25]


def test_pushed_messages_promise_by_partition():
    rows = raw([b'{"t": 1}'])
    stream = wr.stream(rows, "t", value="json", schema="t BIGINT", slack=0, partitions=2, name="s")
    run = stream.window(10).agg(n=wr.count()).run()

    def push(part, *times):
        values = [{"value": b'{"t": %d}' % t, "partition": part, "offset": t} for t in times]
        return run.push("s", values).results()["n"].to_list()

    assert push(0, 1, 25) == []
    assert push(1, 5, 11) == [2]


@pytest.mark.parametrize(
    ("options", "why"),
    [
        ({"value": "xml", "schema": "t BIGINT"}, "format='xml' is unknown"),
        ({"value": "json"}, "give schema='ts TIMESTAMP"),
        ({"value": "json", "schema": "t BIGINT, offset BIGINT"}, "prefix='kafka_'"),
        ({"value": "json", "schema": "t BIGINT", "attributes": "size"}, "nothing that a message has"),
        ({"value": "json", "schema": "t BIGINT", "slack": 5}, "say partitions="),
        ({"value": "csv", "schema": "t BIGINT, l ARRAY<INT>"}, "column l of type"),
        ({"value": "json", "schema": "t BIGINT, l ARRAY<DATE>"}, "column l of type"),
        ({"schema": "t BIGINT"}, "give value=, their format"),
    ],
)
def test_what_cannot_be_is_refused(options, why):
    with pytest.raises(QueryError, match=why):
        wr.stream(raw([]), "t", **options)


def test_messages_need_the_columns_of_sparks_connector():
    with pytest.raises(DataError, match=r"have no offset; they have: partition, value"):
        wr.stream(raw([]).drop("offset"), "t", value="json", schema="t BIGINT")
    with pytest.raises(DataError, match="bytes or texts"):
        wr.stream(raw([]).with_columns(value=pl.lit(5)), "t", value="json", schema="t BIGINT")


def test_the_columns_are_those_of_sparks_connector():
    assert list(RAW) == ["key", "value", "topic", "partition", "offset", "timestamp", "timestampType", "headers"]


@pytest.mark.parametrize(
    ("options", "why"),
    [
        ({"max_rows": 0}, "max_rows must be at least 1"),
        ({"streaming": False, "starting": "latest"}, "are for streaming=True"),
        ({"starting": "now"}, "starting='now' is unknown"),
        ({"on_loss": "ignore"}, "on_loss='ignore' is unknown"),
        ({"settings": {"group.id": "x"}}, "Windrow sets it itself"),
    ],
)
def test_options_of_a_topic_are_checked(options, why):
    with pytest.raises(QueryError, match=why):
        wr.read_kafka("b:9092", "p", "t", schema="t BIGINT", **options)


def test_the_client_is_asked_for_by_name(monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, "confluent_kafka", None)
    with pytest.raises(PlanError, match=r"pip install 'windrow\[kafka\]'"):
        wr.read_kafka("b:9092", "p", "t", schema="t BIGINT")


def test_secrets_are_not_shown():
    stream = wr.read_kafka("b:9092", "p", "t", schema="t BIGINT", settings={"sasl.password": "secret"})
    assert "secret" not in repr(stream)
