# ruff: noqa: E501 (the lines of Markdown tables are long)
"""Writes the pages of docs/reference/aggregates from the table below. Run it after a change of an aggregate:

python docs/reference/generate.py
"""

from __future__ import annotations

import contextlib
import io
import sys
from dataclasses import dataclass
from pathlib import Path

import polars as pl
from datasketches import kll_doubles_sketch

from windrow.aggregates.sketches import FREQUENT_LG, HLL_LG_K, KLL_K

FOLDER = Path(__file__).parent / "aggregates"
SKETCHES = "`src/windrow/aggregates/sketches.py`"
ANYTHING = "anything that can be a group key: no structs"
BAG = "every different value with its count, per pane and group: it grows with the data"
NUMBER = "a few numbers per pane and group"
ROW = '{{"t": {}, "x": {}}}'


@dataclass(frozen=True)
class Spec:
    """One page. ``x``: the values of the example's column; ``query`` and ``call``: the same in two languages."""

    file: str
    title: str
    meaning: str
    sql: str
    python: str
    takes: str
    result: str
    null: str
    nan: str
    nothing: str
    state: str
    x: tuple[str, ...]
    query: str
    call: str
    more: str = ""
    error: str = ""


NUMBERS = ("4", "1", "None", "1", "8")
WORDS = ('"b"', '"a"', "None", '"a"', '"c"')
HLL = f"{1.04 / 2 ** (HLL_LG_K / 2):.1%}".replace("%", " %")
KLL = f"{kll_doubles_sketch(KLL_K).normalized_rank_error(False):.2%}".replace("%", " %")
FREQUENT = f"{3.5 / 2**FREQUENT_LG:.3%}".replace("%", " %")

SPECS = (
    Spec(
        file="count",
        title="count",
        meaning="How many rows, or how many values that are not NULL.",
        sql="`count(*)`, `count(x)`",
        python="`wr.count()`, `wr.count(x)`",
        takes="anything",
        result="BIGINT",
        null="`count(*)` counts the row, `count(x)` does not",
        nan="a value like any other",
        nothing="0",
        state="one number per pane and group",
        x=NUMBERS,
        query="SELECT count(*) AS n, count(x) AS given, count(*) FILTER (WHERE x > 3) AS large",
        call='n=wr.count(), given=wr.count("x"), large=wr.count().filter("x > 3")',
    ),
    Spec(
        file="count-distinct",
        title="count distinct",
        meaning="How many different values, exactly.",
        sql="`count(DISTINCT x)`, `count_distinct(x)`; also `sum(DISTINCT x)` and `avg(DISTINCT x)`",
        python="`wr.count_distinct(x)`",
        takes=ANYTHING,
        result="BIGINT",
        null="skipped",
        nan="equal to itself: one value. The two zeros are one value",
        nothing="0",
        state=BAG,
        x=NUMBERS,
        query="SELECT count(DISTINCT x) AS n",
        call='n=wr.count_distinct("x")',
        more="""`sum(DISTINCT x)` and `avg(DISTINCT x)` exist in SQL. `min` and `max` with DISTINCT are `min` and `max`.
DISTINCT over several columns is refused. For many values there is
[approx_count_distinct](approx-count-distinct.md).

```python
query = "SELECT sum(DISTINCT x) AS total, avg(DISTINCT x) AS mean FROM s [TUMBLING 10, WA t]"
print(wr.sql(query, s=s).collect().rows())
```
""",
    ),
    Spec(
        file="sum",
        title="sum",
        meaning="The sum.",
        sql="`sum(x)`",
        python="`wr.sum(x)`",
        takes="numbers",
        result="integers: BIGINT, exact; decimals: DECIMAL(38, s) with the scale of x, exact; floats: DOUBLE",
        null="skipped",
        nan="NaN and infinity as IEEE arithmetic has them",
        nothing="NULL",
        state=NUMBER,
        x=NUMBERS,
        query="SELECT sum(x) AS total",
        call='total=wr.sum("x")',
        more="""A sum of integers beyond 64 bits, or of decimals beyond 38 digits, is an error that stops the query, never a
wrapped number. Sums of floats are rounded: their last bits can depend on the order in which partials meet.

```python
from decimal import Decimal

money = wr.stream([{"t": 0, "x": Decimal("0.10")}, {"t": 1, "x": Decimal("0.20")}], progress="t")
print(money.window(range=10).agg(total=wr.sum("x")).collect().rows())
```
""",
    ),
    Spec(
        file="avg",
        title="avg",
        meaning="The mean.",
        sql="`avg(x)`, `mean(x)`",
        python="`wr.avg(x)`",
        takes="numbers",
        result="DOUBLE; of integers and decimals from the exact sum",
        null="skipped: they are not counted either",
        nan="NaN and infinity as IEEE arithmetic has them",
        nothing="NULL",
        state=NUMBER,
        x=NUMBERS,
        query="SELECT avg(x) AS mean",
        call='mean=wr.avg("x")',
    ),
    Spec(
        file="min-max",
        title="min and max",
        meaning="The least and the greatest value.",
        sql="`min(x)`, `max(x)`",
        python="`wr.min(x)`, `wr.max(x)`",
        takes="numbers, decimals, text, timestamps, dates, booleans",
        result="the type of x",
        null="skipped",
        nan="greater than every number: `max` is NaN if one value is, `min` only if all are",
        nothing="NULL",
        state="one value per pane and group, and with floats the number of NaN",
        x=NUMBERS,
        query="SELECT min(x) AS least, max(x) AS greatest",
        call='least=wr.min("x"), greatest=wr.max("x")',
        more="""Text is ordered by its bytes in UTF-8, as in Spark. `false` is less than `true`.

```python
words = wr.stream([{"t": 0, "x": "pear"}, {"t": 1, "x": "Plum"}], progress="t")
print(words.window(range=10).agg(least=wr.min("x"), greatest=wr.max("x")).collect().rows())
```
""",
    ),
    Spec(
        file="variance",
        title="variance and standard deviation",
        meaning="How far the values are from their mean: the variance, and its root.",
        sql="`var_samp(x)`, `variance(x)`, `var_pop(x)`, `stddev(x)`, `stddev_samp(x)`, `std(x)`, `stddev_pop(x)`",
        python="`wr.var(x)`, `wr.var_pop(x)`, `wr.stddev(x)`, `wr.stddev_pop(x)`",
        takes="numbers",
        result="DOUBLE",
        null="skipped",
        nan="NaN and infinity as IEEE arithmetic has them",
        nothing="NULL; the sample ones (divided by n - 1) are NULL for one value, too",
        state=NUMBER,
        x=("2", "4", "None", "4", "6"),
        query="SELECT var_samp(x) AS v, var_pop(x) AS vp, stddev(x) AS sd",
        call='v=wr.var("x"), vp=wr.var_pop("x"), sd=wr.stddev("x")',
        more="""Count, mean and squared distances are merged in a way that does not cancel. The last bits can depend on the
order in which partials meet.
""",
    ),
    Spec(
        file="first-last",
        title="first and last",
        meaning="The value of the row with the least, or the greatest, progress value. Not the first to arrive.",
        sql="`first(x)`, `first_value(x)`, `last(x)`, `last_value(x)`",
        python="`wr.first(x)`, `wr.last(x)`",
        takes=ANYTHING,
        result="the type of x",
        null="skipped: the first value that is not NULL. IGNORE NULLS says the same",
        nan="a value like any other",
        nothing="NULL",
        state="one value and its progress value per pane and group",
        x=WORDS,
        query="SELECT first(x) AS earliest, last(x) AS latest",
        call='earliest=wr.first("x"), latest=wr.last("x")',
        more="""Of several rows with the same progress value `first` takes the least value and `last` the greatest, so that
the order of arrival does not show. In windows of rows the row number is the progress value.
""",
    ),
    Spec(
        file="collect",
        title="collect_list and collect_set",
        meaning="All values as a list, or the different ones.",
        sql="`collect_list(x)`, `array_agg(x)`, `collect_set(x)`",
        python="`wr.collect_list(x)`, `wr.collect_set(x)`",
        takes=ANYTHING,
        result="ARRAY of the type of x",
        null="skipped",
        nan="a value like any other; in a set there is one, at the end",
        nothing="an empty list",
        state="`collect_list`: every value with its progress value; `collect_set`: every different value. Both grow with the data",
        x=("4", "1", "None", "4"),
        query="SELECT collect_list(x) AS all_values, collect_set(x) AS different",
        call='all_values=wr.collect_list("x"), different=wr.collect_set("x")',
        more="""A list is in the order of progress, equal progress values in the order of the values. A set is in the order of the
values. So both are the same for every arrival.
""",
    ),
    Spec(
        file="median-quantile",
        title="median and quantile",
        meaning="The value at a share of the order, exactly. The median is the quantile of 0.5.",
        sql="`median(x)`, `quantile(x, p)`, `percentile(x, p)`; p is a number from 0 to 1",
        python="`wr.median(x)`, `wr.quantile(x, p)`",
        takes="numbers",
        result="DOUBLE",
        null="skipped",
        nan="greater than every number, so at the end of the order",
        nothing="NULL",
        state=BAG,
        x=NUMBERS,
        query="SELECT median(x) AS middle, quantile(x, 0.9) AS high",
        call='middle=wr.median("x"), high=wr.quantile("x", 0.9)',
        more="""The place in the order is p * (n - 1), from 0. Between two values the result is between them in proportion, as
SQL's `percentile_cont`: of 1, 1, 4, 8 the place 1.5 is halfway from 1 to 4. For many values there is
[approx_quantile](approx-quantile.md).
""",
    ),
    Spec(
        file="mode",
        title="mode",
        meaning="The most frequent value; of several the least.",
        sql="`mode(x)`",
        python="`wr.mode(x)`",
        takes=ANYTHING,
        result="the type of x",
        null="skipped",
        nan="a value like any other",
        nothing="NULL",
        state=BAG,
        x=WORDS,
        query="SELECT mode(x) AS usual",
        call='usual=wr.mode("x")',
    ),
    Spec(
        file="top-k",
        title="top_k",
        meaning="The k most frequent values with their counts, exactly.",
        sql="`top_k(x, k)`; k is a whole number from 1",
        python="`wr.top_k(x, k)`",
        takes=ANYTHING,
        result="ARRAY of STRUCT (value, count), the most frequent first, equal counts by value",
        null="skipped",
        nan="a value like any other",
        nothing="an empty list",
        state=BAG,
        x=WORDS,
        query="SELECT top_k(x, 2) AS top",
        call='top=wr.top_k("x", 2)',
        more="""`top_k` is one list per window and group. The first groups of a window are
[ORDER BY .. LIMIT](../sql.md#order-by-and-limit).
""",
    ),
    Spec(
        file="heavy-hitters",
        title="heavy_hitters",
        meaning="The values of at least a share of all rows, with their counts, exactly.",
        sql="`heavy_hitters(x, p)`; p is a number from 0 to 1",
        python="`wr.heavy_hitters(x, p)`",
        takes=ANYTHING,
        result="ARRAY of STRUCT (value, count), the most frequent first, equal counts by value",
        null="never a heavy hitter. Its row counts: the share is of all rows of the window and group",
        nan="a value like any other",
        nothing="an empty list",
        state=BAG,
        x=WORDS,
        query="SELECT heavy_hitters(x, 0.4) AS heavy",
        call='heavy=wr.heavy_hitters("x", 0.4)',
        more="""The share is the number that was written: 0.4 of 5 rows is 2 rows, without rounding. With FILTER
the share is of the values that pass it and are not NULL. For many values there is
[approx_heavy_hitters](approx-heavy-hitters.md).
""",
    ),
    Spec(
        file="approx-count-distinct",
        title="approx_count_distinct",
        meaning="About how many different values, in little memory (HyperLogLog).",
        sql="`approx_count_distinct(x)`",
        python="`wr.approx_count_distinct(x)`",
        takes=ANYTHING,
        result="BIGINT",
        null="skipped",
        nan="one value",
        nothing="0",
        state=f"one sketch per pane and group, of at most about {2**HLL_LG_K // 1024} kB",
        error=f"relative standard error {HLL}: two of three results are as near, 19 of 20 twice as far. "
        f"Constant `HLL_LG_K` = {HLL_LG_K} in {SKETCHES}",
        x=NUMBERS,
        query="SELECT approx_count_distinct(x) AS n",
        call='n=wr.approx_count_distinct("x")',
        more="""Small numbers are exact, or nearly so.

```python
many = wr.stream(pl.DataFrame({"t": range(20_000), "x": [i % 10_000 for i in range(20_000)]}), progress="t")
[(_, _, n)] = many.window(range=20_000).agg(n=wr.approx_count_distinct("x")).collect().rows()
print(abs(n - 10_000) / 10_000 < 0.05)
```
""",
    ),
    Spec(
        file="approx-quantile",
        title="approx_quantile",
        meaning="About the value at a share of the order, in little memory (KLL).",
        sql="`approx_quantile(x, p)`, `approx_percentile(x, p)`, `percentile_approx(x, p)`; p is a number from 0 to 1",
        python="`wr.approx_quantile(x, p)`",
        takes="numbers",
        result="DOUBLE: one of the values, never between two",
        null="skipped",
        nan="skipped: it has no rank",
        nothing="NULL",
        state="one sketch per pane and group, of a few kB",
        error=f"rank error {KLL} at 99 % confidence: the result has a place in the order that is off by at most this share "
        f"of all values. Constant `KLL_K` = {KLL_K} in {SKETCHES}",
        x=NUMBERS,
        query="SELECT approx_quantile(x, 0.5) AS middle",
        call='middle=wr.approx_quantile("x", 0.5)',
        more="""The sketch draws random bits, so above a few hundred values two runs can differ, within the bound. Below that the
result is the value at that place in the order, without going between two values.

```python
many = wr.stream(pl.DataFrame({"t": range(20_000), "x": range(20_000)}), progress="t")
[(_, _, high)] = many.window(range=20_000).agg(high=wr.approx_quantile("x", 0.9)).collect().rows()
print(abs(high - 18_000) / 20_000 < 0.03)
```
""",
    ),
    Spec(
        file="approx-heavy-hitters",
        title="approx_heavy_hitters",
        meaning="The values of about a share of all rows, in little memory (frequent items). None is missing.",
        sql="`approx_heavy_hitters(x, p)`; p is a number from 0 to 1",
        python="`wr.approx_heavy_hitters(x, p)`",
        takes="text or integers",
        result="ARRAY of STRUCT (value, count), the most frequent first, equal counts by value",
        null="never a heavy hitter. Its row counts: the share is of all rows of the window and group",
        nan="not possible: floats are refused",
        nothing="an empty list",
        state=f"one sketch per pane and group, of at most {2**FREQUENT_LG} values",
        error=f"no value of at least the share is missing; a value in the list can be rarer than the share by at most "
        f"{FREQUENT} of all rows, and counts are off by at most as much. Constant `FREQUENT_LG` = {FREQUENT_LG} in {SKETCHES}",
        x=WORDS,
        query="SELECT approx_heavy_hitters(x, 0.4) AS heavy",
        call='heavy=wr.approx_heavy_hitters("x", 0.4)',
        more=f"""With at most {2**FREQUENT_LG * 3 // 4} different values it is exact.
""",
    ),
)

USER = """# User-defined aggregates

Your own aggregate, from three functions in Python. Windrow does the windows, the out-of-order rows and the checkpoints.

| function | takes | gives |
|---|---|---|
| `lift(value)` | one value, never NULL | a state |
| `combine(a, b)` | two states | the state of both. `combine=None`: [states cannot be merged](#without-combine) |
| `lower(state)` | the state of a window and group | the result |
| `inverse(a, b)` (optional) | a state and one that is in it | the state without it. Windows then slide by one `combine` and one `inverse` per pane |

| | |
|---|---|
| **Definition** | `wr.aggregate(name, lift, combine, lower, *, state, result, inverse=None)` |
| **Python** | what it gives is called with an expression: `spread("x")` |
| **SQL** | `wr.sql(query, spread, s=s)`, where the query has `spread(x)` |
| **Of** | anything |
| **Types** | `state` and `result` are SQL types. A STRUCT is a dict, an ARRAY a list. States are kept in checkpoints as values of this type |
| **NULL** | skipped: `lift` never sees it |
| **Without a value** | NULL: `lower` is not called |
| **Must hold** | `combine` is associative and commutative, and changes neither argument. Otherwise results depend on arrival |
| **State** | one state per pane and group |
| **Speed** | Python, value by value: slower than the built-in aggregates by far |

```python
import polars as pl

import windrow as wr

rows = [{"t": 1, "x": 3}, {"t": 2, "x": 8}, {"t": 3, "x": None}, {"t": 12, "x": 1}]
s = wr.stream(rows, progress="t", name="s")
spread = wr.aggregate(
    "spread",
    lift=lambda x: {"low": x, "high": x},
    combine=lambda a, b: {"low": min(a["low"], b["low"]), "high": max(a["high"], b["high"])},
    lower=lambda state: state["high"] - state["low"],
    state="STRUCT<low: BIGINT, high: BIGINT>",
    result="BIGINT",
)
print(pl.DataFrame(rows))
print(s.window(range=10, slide=5).agg(width=spread("x")).collect())
print(wr.sql("SELECT spread(x) AS width FROM s [TUMBLING 10, WA t]", spread, s=s).collect().rows())
```

## Without combine

Some aggregates need all values of a window at once. With `combine=None` rows are kept until their window closes, and `lower`
gets the list of their states, in the order of progress. Sliding and tumbling windows then run by the algorithm
[buffering](../../operators/buffering.md), and `explain` says so.

```python
from itertools import pairwise

way = wr.aggregate(
    "way",
    lift=int,
    combine=None,
    lower=lambda states: sum(abs(a - b) for a, b in pairwise(states)),
    state="BIGINT",
    result="BIGINT",
)
query = s.window(range=10).agg(way=way("x"))
print(query.collect().rows())
print(next(line.strip() for line in query.explain().splitlines() if "algorithm" in line))
```

EMIT EARLY, LATE REVISE and WITH EMPTY need partials, and are refused. On Spark rows cross the exchange, not partials.

## When a function fails

| fails in | what happens |
|---|---|
| `lift` | the row is a bad row, with the reason. Under LATE ERROR it stops the query |
| `combine`, `lower`, `inverse` | a `ResultError` that names the aggregate, the group and the window |

```python
inverted = wr.aggregate("inverted", lambda x: 1 / (x - 3), max, float, state="DOUBLE", result="DOUBLE")
query = s.window(range=10).agg(most=inverted("x"))
print(query.collect().rows())
print(query.bad_rows().rows())


def broken(a, b):
    raise ValueError("no idea")


try:
    s.window(range=10).agg(n=wr.aggregate("n", int, broken, int, state="BIGINT", result="BIGINT")("x")).collect()
except wr.ResultError as error:
    print(error)
```

The operator that calls `lift` is [lift](../../operators/lift.md).

On Spark the functions are sent to the workers with cloudpickle. Functions that you define in a module of your own must be
importable there. A checkpoint knows an aggregate by its name: change the name when you change what a state means.
"""


def page(spec: Spec) -> str:
    """A page without the output of its code."""
    facts = [
        ("SQL", spec.sql),
        ("Python", spec.python),
        ("Of", spec.takes),
        ("Result", spec.result),
        ("NULL", spec.null),
        ("NaN", spec.nan),
        ("Without a value", spec.nothing),
        ("State", spec.state),
        ("Error", spec.error),
    ]
    table = "\n".join(f"| **{name}** | {text} |" for name, text in facts if text)
    rows = ", ".join(ROW.format(t, x) for t, x in enumerate(spec.x))
    query = f"{spec.query} FROM s [TUMBLING 10, WA t]"
    return f"""# {spec.title}

{spec.meaning}

| | |
|---|---|
{table}

```sql
{query}
```

## Example

```python
import polars as pl

import windrow as wr

rows = [{rows}]
s = wr.stream(rows, progress="t", name="s")
print(pl.DataFrame(rows))
```

In SQL:

```python
query = "{query}"
print(wr.sql(query, s=s).collect())
```

In Python:

```python
print(s.window(range=10).agg({spec.call}).collect().rows())
```

{spec.more}
All aggregates take any expression as argument, and FILTER (WHERE ..) or `.filter(..)` after it: see
[the index](README.md).
"""


INDEX = """# Aggregates

A page per aggregate: meaning, types, NULL and NaN, state, an input and its output.

| page | gives | exact | state |
|---|---|---|---|
{rows}
| [user-defined](user-defined.md) | what you want | as you write it | yours |

| rule | |
|---|---|
| argument | a column or any expression: `sum(len * 8)`, `wr.sum("len * 8")` |
| some rows only | `sum(x) FILTER (WHERE k = 'a')`, `wr.sum("x").filter("k = 'a'")` |
| NULL | skipped; `count(*)` counts the row |
| the same for every arrival | all of them, but for the last bits of sums, means and variances of floats, and approximate ones within their bound |
| one state for several | aggregates of the same argument share what they keep: `sum(x)`, `avg(x)` and `count(x)` cost as much as one |

The pages are written by `docs/reference/generate.py`.
"""


def executed(text: str) -> str:
    """A page with what its Python blocks print in a text block below each."""
    names: dict[str, object] = {"__name__": "docs"}
    parts = text.split("```python\n")
    done = [parts[0]]
    for part in parts[1:]:
        code, _, after = part.partition("```\n")
        printed = io.StringIO()
        with contextlib.redirect_stdout(printed), pl.Config(tbl_width_chars=110):
            exec(compile(code, "page", "exec"), names)
        output = f"```text\n{printed.getvalue()}```\n" if printed.getvalue() else ""
        done.append(f"```python\n{code}```\n{output}{after}")
    return "".join(done).replace("\n\n\nAll aggregates", "\n\nAll aggregates")


def pages() -> dict[str, str]:
    """All files by name."""
    found = {f"{spec.file}.md": executed(page(spec)) for spec in SPECS}
    found["user-defined.md"] = executed(USER)
    lines = []
    for spec in SPECS:
        exact = "within a bound" if spec.error else "yes"
        lines.append(
            f"| [{spec.title}]({spec.file}.md) | {spec.meaning.split('. ')[0].rstrip('.')} | {exact} | {_kind(spec)} |"
        )
    found["README.md"] = INDEX.format(rows="\n".join(lines))
    return found


def _kind(spec: Spec) -> str:
    return "grows" if "grow" in spec.state else "a sketch" if "sketch" in spec.state else "fixed"


def main(folder: Path = FOLDER) -> None:
    """Write all pages into a folder."""
    folder.mkdir(parents=True, exist_ok=True)
    for name, text in pages().items():
        (folder / name).write_text(text)


if __name__ == "__main__":
    main(*map(Path, sys.argv[1:]))
