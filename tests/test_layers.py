"""Imports point only downward: the folder list is the architecture."""

import ast
from pathlib import Path

SOURCE = Path(__file__).parents[1] / "src" / "windrow"
LAYERS = [  # from the top down; a module may import what is below it, and its own folder
    ("testing", "cli"),
    ("bench",),
    ("sql",),
    ("api",),
    ("hosts",),
    ("sources", "sinks"),
    ("planner",),
    ("graph",),
    ("operators",),
    ("logical",),
    ("spec",),
    ("aggregates",),
    ("windows",),
    ("progress",),
    ("errors", "_threads"),
]
LEVEL = {name: level for level, names in enumerate(LAYERS) for name in names}


def imports(path):
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.ImportFrom) and node.module and node.module.startswith("windrow."):
            yield node.module.split(".")[1]
        elif isinstance(node, ast.Import):
            yield from (a.name.split(".")[1] for a in node.names if a.name.startswith("windrow."))


def test_imports_point_downward():
    wrong = []
    for path in sorted(SOURCE.rglob("*.py")):
        own = path.relative_to(SOURCE).parts[0].removesuffix(".py")
        if own == "__init__":
            continue
        for other in imports(path):
            if other != own and LEVEL[other] <= LEVEL[own]:
                wrong.append(f"{path.relative_to(SOURCE)} imports {other}")
    assert not wrong


def test_operators_know_no_host_no_clock_and_no_chance():
    forbidden = {"pyspark", "time", "random", "threading"}
    wrong = []
    for path in sorted((SOURCE / "operators").rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text())):
            names = [a.name for a in node.names] if isinstance(node, ast.Import) else []
            names += [node.module or ""] if isinstance(node, ast.ImportFrom) else []
            wrong += [f"{path.name} imports {n}" for n in names if n.split(".")[0] in forbidden]
    assert not wrong
