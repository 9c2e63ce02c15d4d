# ruff: noqa: E501 (the lines of Markdown tables are long)
"""Writes the pages of docs/reference/aggregates from the table below. Run it after you change an aggregate:

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
BAG = "every distinct value with its count, per pane and group: it grows with the data"
NUMBER = "a few numbers per pane and group"
ROW = '{{"t": {}, "x": {}}}'


@dataclass(frozen=True)
class Spec:
    """One page. ``x``: the values of the column in the example; ``query`` and ``call``: the same in SQL and Python."""

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
        meaning="The number of rows, or of values that are not NULL.",
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
        meaning="The number of distinct values, exactly.",
        sql="`count(DISTINCT x)`, `count_distinct(x)`; also `sum(DISTINCT x)` and `avg(DISTINCT x)`",
        python="`wr.count_distinct(x)`",
        takes=ANYTHING,
        result="BIGINT",
        null="skipped",
        nan="equal to itself: one value. 0.0 and -0.0 are one value",
        nothing="0",
        state=BAG,
        x=NUMBERS,
        query="SELECT count(DISTINCT x) AS n",
        call='n=wr.count_distinct("x")',
        more="""`sum(DISTINCT x)` and `avg(DISTINCT x)` are available in SQL. `min` and `max` with DISTINCT are `min` and `max`.
DISTINCT over several columns is not supported. For many values use
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
        nan="NaN and infinity as in IEEE arithmetic",
        nothing="NULL",
        state=NUMBER,
        x=NUMBERS,
        query="SELECT sum(x) AS total",
        call='total=wr.sum("x")',
        more="""A sum of integers beyond 64 bits, or of decimals beyond 38 digits, is an error that stops the query; it never wraps
around. Sums of floats are rounded: their last bits can depend on the order in which partials are merged.

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
        result="DOUBLE; for integers and decimals computed from the exact sum",
        null="skipped, and not counted",
        nan="NaN and infinity as in IEEE arithmetic",
        nothing="NULL",
        state=NUMBER,
        x=NUMBERS,
        query="SELECT avg(x) AS mean",
        call='mean=wr.avg("x")',
    ),
    Spec(
        file="min-max",
        title="min and max",
        meaning="The smallest and the greatest value.",
        sql="`min(x)`, `max(x)`",
        python="`wr.min(x)`, `wr.max(x)`",
        takes="numbers, decimals, text, timestamps, dates, booleans",
        result="the type of x",
        null="skipped",
        nan="greater than every number: `max` is NaN if one value is, `min` only if all are",
        nothing="NULL",
        state="one value per pane and group, and for floats the number of NaN values",
        x=NUMBERS,
        query="SELECT min(x) AS least, max(x) AS greatest",
        call='least=wr.min("x"), greatest=wr.max("x")',
        more="""Text is ordered by its UTF-8 bytes, as in Spark. `false` is less than `true`.

```python
words = wr.stream([{"t": 0, "x": "pear"}, {"t": 1, "x": "Plum"}], progress="t")
print(words.window(range=10).agg(least=wr.min("x"), greatest=wr.max("x")).collect().rows())
```
""",
    ),
    Spec(
        file="variance",
        title="variance and standard deviation",
        meaning="The variance, and its square root.",
        sql="`var_samp(x)`, `variance(x)`, `var_pop(x)`, `stddev(x)`, `stddev_samp(x)`, `std(x)`, `stddev_pop(x)`",
        python="`wr.var(x)`, `wr.var_pop(x)`, `wr.stddev(x)`, `wr.stddev_pop(x)`",
        takes="numbers",
        result="DOUBLE",
        null="skipped",
        nan="NaN and infinity as in IEEE arithmetic",
        nothing="NULL; the sample variants (divided by n - 1) are also NULL for a single value",
        state=NUMBER,
        x=("2", "4", "None", "4", "6"),
        query="SELECT var_samp(x) AS v, var_pop(x) AS vp, stddev(x) AS sd",
        call='v=wr.var("x"), vp=wr.var_pop("x"), sd=wr.stddev("x")',
        more="""Count, mean and squared distances are merged without cancellation. The last bits can depend on the order in which partials
are merged.
""",
    ),
    Spec(
        file="first-last",
        title="first and last",
        meaning="The value of the row with the smallest, or the greatest, progress value, regardless of arrival.",
        sql="`first(x)`, `first_value(x)`, `last(x)`, `last_value(x)`",
        python="`wr.first(x)`, `wr.last(x)`",
        takes=ANYTHING,
        result="the type of x",
        null="skipped: the first value that is not NULL. IGNORE NULLS is accepted and means the same",
        nan="a value like any other",
        nothing="NULL",
        state="one value and its progress value per pane and group",
        x=WORDS,
        query="SELECT first(x) AS earliest, last(x) AS latest",
        call='earliest=wr.first("x"), latest=wr.last("x")',
        more="""If several rows have the same progress value, `first` takes the smallest value and `last` the greatest, so that the order of
arrival makes no difference. In windows of rows the row number is the progress value.
""",
    ),
    Spec(
        file="collect",
        title="collect_list and collect_set",
        meaning="All values as a list, or the distinct ones.",
        sql="`collect_list(x)`, `array_agg(x)`, `collect_set(x)`",
        python="`wr.collect_list(x)`, `wr.collect_set(x)`",
        takes=ANYTHING,
        result="ARRAY of the type of x",
        null="skipped",
        nan="a value like any other; in a set it occurs once, at the end",
        nothing="an empty list",
        state="`collect_list`: every value with its progress value; `collect_set`: every distinct value. Both grow with the data",
        x=("4", "1", "None", "4"),
        query="SELECT collect_list(x) AS all_values, collect_set(x) AS different",
        call='all_values=wr.collect_list("x"), different=wr.collect_set("x")',
        more="""A list is in order of progress; values with equal progress values are in order of value. A set is in order of value. So both are
the same for every order of arrival.
""",
    ),
    Spec(
        file="median-quantile",
        title="median and quantile",
        meaning="The p-quantile, exactly. The median is the 0.5-quantile.",
        sql="`median(x)`, `quantile(x, p)`, `percentile(x, p)`; p is a number from 0 to 1",
        python="`wr.median(x)`, `wr.quantile(x, p)`",
        takes="numbers",
        result="DOUBLE",
        null="skipped",
        nan="greater than every number, so last in the order",
        nothing="NULL",
        state=BAG,
        x=NUMBERS,
        query="SELECT median(x) AS middle, quantile(x, 0.9) AS high",
        call='middle=wr.median("x"), high=wr.quantile("x", 0.9)',
        more="""The position in the sorted values is p * (n - 1), from 0. Between two values the result is interpolated, as in SQL's
`percentile_cont`: in 1, 1, 4, 8 the position 1.5 is halfway from 1 to 4. For many values use
[approx_quantile](approx-quantile.md).
""",
    ),
    Spec(
        file="mode",
        title="mode",
        meaning="The most frequent value; the smallest if there are several.",
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
        more="""`top_k` gives one list per window and group. For the first groups of a window use
[ORDER BY .. LIMIT](../sql.md#order-by-and-limit).
""",
    ),
    Spec(
        file="heavy-hitters",
        title="heavy_hitters",
        meaning="The values with at least a share p of all rows, with their counts, exactly.",
        sql="`heavy_hitters(x, p)`; p is a number from 0 to 1",
        python="`wr.heavy_hitters(x, p)`",
        takes=ANYTHING,
        result="ARRAY of STRUCT (value, count), the most frequent first, equal counts by value",
        null="never a heavy hitter, but its row counts: the share is of all rows of the window and group",
        nan="a value like any other",
        nothing="an empty list",
        state=BAG,
        x=WORDS,
        query="SELECT heavy_hitters(x, 0.4) AS heavy",
        call='heavy=wr.heavy_hitters("x", 0.4)',
        more="""The share is exact: 0.4 of 5 rows is 2 rows, without rounding. With FILTER
the share is of the values that pass it and are not NULL. For many values use
[approx_heavy_hitters](approx-heavy-hitters.md).
""",
    ),
    Spec(
        file="approx-count-distinct",
        title="approx_count_distinct",
        meaning="The approximate number of distinct values, in little memory (HyperLogLog).",
        sql="`approx_count_distinct(x)`",
        python="`wr.approx_count_distinct(x)`",
        takes=ANYTHING,
        result="BIGINT",
        null="skipped",
        nan="one value",
        nothing="0",
        state=f"one sketch per pane and group, of at most about {2**HLL_LG_K // 1024} kB",
        error=f"relative standard error {HLL}: two of three results are within it, 19 of 20 within twice as much. "
        f"Constant `HLL_LG_K` = {HLL_LG_K} in {SKETCHES}",
        x=NUMBERS,
        query="SELECT approx_count_distinct(x) AS n",
        call='n=wr.approx_count_distinct("x")',
        more="""Small counts are exact, or nearly so.

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
        meaning="The approximate p-quantile, in little memory (KLL).",
        sql="`approx_quantile(x, p)`, `approx_percentile(x, p)`, `percentile_approx(x, p)`; p is a number from 0 to 1",
        python="`wr.approx_quantile(x, p)`",
        takes="numbers",
        result="DOUBLE: one of the values, never interpolated",
        null="skipped",
        nan="skipped: it has no rank",
        nothing="NULL",
        state="one sketch per pane and group, of a few kB",
        error=f"rank error {KLL} at 99 % confidence: the position of the result in the sorted values is off by at most this share "
        f"of all values. Constant `KLL_K` = {KLL_K} in {SKETCHES}",
        x=NUMBERS,
        query="SELECT approx_quantile(x, 0.5) AS middle",
        call='middle=wr.approx_quantile("x", 0.5)',
        more="""The sketch uses random bits, so above a few hundred values two runs can differ, within the bound. Below that the
result is the value at that position, without interpolation.

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
        meaning="The values with about a share p of all rows, in little memory (frequent items). None is missing.",
        sql="`approx_heavy_hitters(x, p)`; p is a number from 0 to 1",
        python="`wr.approx_heavy_hitters(x, p)`",
        takes="text or integers",
        result="ARRAY of STRUCT (value, count), the most frequent first, equal counts by value",
        null="never a heavy hitter, but its row counts: the share is of all rows of the window and group",
        nan="not possible: floats are refused",
        nothing="an empty list",
        state=f"one sketch per pane and group, of at most {2**FREQUENT_LG} values",
        error=f"no value with at least the share is missing; a value in the list can be below the share by at most "
        f"{FREQUENT} of all rows, and counts are off by at most as much. Constant `FREQUENT_LG` = {FREQUENT_LG} in {SKETCHES}",
        x=WORDS,
        query="SELECT approx_heavy_hitters(x, 0.4) AS heavy",
        call='heavy=wr.approx_heavy_hitters("x", 0.4)',
        more=f"""With at most {2**FREQUENT_LG * 3 // 4} distinct values it is exact.
""",
    ),
)

USER = """# User-defined aggregates

Your own aggregate, from three functions in Python. Windrow handles windows, out-of-order rows and checkpoints.

| function | takes | returns |
|---|---|---|
| `lift(value)` | one value, never NULL | a state |
| `combine(a, b)` | two states | the merged state. `combine=None`: [states cannot be merged](#without-combine) |
| `lower(state)` | the state of a window and group | the result |
| `inverse(a, b)` (optional) | a state and one that was merged into it | the state without it. Windows then slide with one `combine` and one `inverse` per pane |

| | |
|---|---|
| **Definition** | `wr.aggregate(name, lift, combine, lower, *, state, result, inverse=None)` |
| **Python** | call it with an expression: `spread("x")` |
| **SQL** | `wr.sql(query, spread, s=s)`, with `spread(x)` in the query |
| **Of** | anything |
| **Types** | `state` and `result` are SQL types. A STRUCT is a dict, an ARRAY a list. States are stored in checkpoints as values of this type |
| **NULL** | skipped: `lift` never sees it |
| **Without a value** | NULL: `lower` is not called |
| **Requirements** | `combine` is associative and commutative, and modifies neither argument. Otherwise results depend on arrival |
| **State** | one state per pane and group |
| **Speed** | Python, value by value: much slower than the built-in aggregates |

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
gets the list of their states, in order of progress. Sliding and tumbling windows then run by the algorithm
[buffering](../../operators/buffering.md), as `explain` shows.

```python
from itertools import pairwise

path = wr.aggregate(
    "path",
    lift=int,
    combine=None,
    lower=lambda states: sum(abs(a - b) for a, b in pairwise(states)),
    state="BIGINT",
    result="BIGINT",
)
query = s.window(range=10).agg(path=path("x"))
print(query.collect().rows())
print(next(line.strip() for line in query.explain().splitlines() if "algorithm" in line))
```

EMIT EARLY, LATE REVISE and WITH EMPTY need partials, and are refused. On Spark rows cross the exchange, not partials.

## When a function fails

| failure in | what happens |
|---|---|
| `lift` | the row is a bad row, with the reason. Under LATE ERROR the query stops |
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

On Spark the functions are sent to the workers with cloudpickle. Functions from a module of your own must be
importable there. A checkpoint identifies an aggregate by its name: change the name when you change the meaning of a state.
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
All aggregates take any expression as their argument, and FILTER (WHERE ..) or `.filter(..)` after it: see
[the index](README.md).
"""


INDEX = """# Aggregates

A page per aggregate: meaning, types, NULL and NaN, state, and an example.

| page | gives | exact | state |
|---|---|---|---|
{rows}
| [user-defined](user-defined.md) | whatever you need | up to you | up to you |

| rule | |
|---|---|
| argument | a column or any expression: `sum(len * 8)`, `wr.sum("len * 8")` |
| only some rows | `sum(x) FILTER (WHERE k = 'a')`, `wr.sum("x").filter("k = 'a'")` |
| NULL | skipped; `count(*)` counts the row |
| independent of arrival | all of them, except the last bits of sums, means and variances of floats; approximate ones within their bounds |
| shared state | aggregates of the same argument share their state: `sum(x)`, `avg(x)` and `count(x)` cost as much as one |

These pages are generated by `docs/reference/generate.py`.
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
