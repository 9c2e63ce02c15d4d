"""Users' functions of one row, as the oracle calls them."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any

from windrow.spec.functions import as_declared, as_given
from windrow.testing.oracle.values import Row, Schema, frame_of, in_python, values_of

if TYPE_CHECKING:
    from windrow.spec.functions import Function


def called(function: Function, schema: Schema, row: Row) -> Any:
    """What a function gives for one row; raises what it raises."""
    if function.vectorized:
        found = function.call(*(frame_of([row], {c: schema[c]})[c] for c in function.columns))
        values = as_given(found, 1, function.returns)
    else:
        given = [in_python([row[c]], schema[c])[0] for c in function.columns]
        values = as_declared([function.call(*given)], function.returns)
    return values_of(values)[0]


def failure(function: Function, error: Exception) -> str:
    """Why a row or a pair is bad for which a function raised."""
    return f"{function.name} failed: {type(error).__name__}: {error}"


def passes(test: Function | None, schema: Schema, row: Row, bad: Counter[str]) -> bool:
    """Whether a user's condition is true of joined rows; those for which it fails are bad, and are no partners."""
    if test is None:
        return True
    try:
        return called(test, schema, row) is True
    except Exception as error:  # whatever the user's function raises, the row is bad
        bad[failure(test, error)] += 1
        return False
