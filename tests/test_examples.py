"""Every example runs and prints what it always printed."""

import runpy
from pathlib import Path

import pytest

FOLDER = Path(__file__).parents[1] / "examples"
EVERY_FIVE_MINUTES = [f"09:{minute:02}" for minute in range(5, 60, 5)]
PRINTS = {
    "feed_by_hand.py": [
        "before the promise: 0 results",
        "after it: [('a', datetime.datetime(2024, 1, 1, 10, 0), datetime.datetime(2024, 1, 1, 10, 1), 21.0, 2)]",
        "late rows: 1",
    ],
    "items_in_common.py": [
        *(f"{at}: {kinds} in common" for at, kinds in zip(EVERY_FIVE_MINUTES, [2, 3, *[5] * 6, 4, 2, 2], strict=True)),
        "10:00: 2 in common, at the end",
        "10:05: 2 in common, at the end",
    ],
    "windows_over_windows.py": [
        "    0 to   600: 863 of 8599 bytes",
        "  600 to  1200: 863 of 8598 bytes",
        " 1200 to  1800: 863 of 8604 bytes",
    ],
}


@pytest.mark.parametrize("name", sorted(p.name for p in FOLDER.glob("*.py")))
def test_an_example_prints_what_it_always_printed(name, capsys):
    runpy.run_path(str(FOLDER / name), run_name="__main__")
    assert capsys.readouterr().out.splitlines() == PRINTS[name]
