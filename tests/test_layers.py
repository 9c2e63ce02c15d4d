"""Imports point only downward: the folder list is the architecture."""

import ast
from pathlib import Path

SOURCE = Path(__file__).parents[1] / "src" / "windrow"
LAYERS = [  # from the top down; a module may import what is below it, and its own folder
    ("cli",),
    ("testing",),
    ("serve",),
    ("bench",),
    ("sessions",),
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


# What the oracle may know of Windrow: the definitions. All else is what it checks.
DEFINITIONS = (
    "logical.nodes",
    "operators.kernels.key_hash",
    "spec.allocation",
    "spec.joining",
    "windows",
    "windows.multiway",
    "windows.pairing",
    "windows.widjoin",
    "progress",
    "errors",
    "spec.names",
    "aggregates.user",
)
OF_TYPES = ("api.stream", "spec.functions")  # imported for annotations alone


def modules(tree):
    """The modules of Windrow that a file imports."""
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and node.module and node.module.startswith("windrow"):
            yield node.module.removeprefix("windrow.")
        elif isinstance(node, ast.Import):
            yield from (a.name.removeprefix("windrow.") for a in node.names if a.name.startswith("windrow"))


def for_types(tree):
    """The same, inside of ``if TYPE_CHECKING``."""
    blocks = [n for n in ast.walk(tree) if isinstance(n, ast.If) and ast.unparse(n.test) == "TYPE_CHECKING"]
    return [m for block in blocks for m in modules(block)]


def test_the_oracle_shares_no_code_with_what_it_checks():
    files = sorted((SOURCE / "testing" / "oracle").rglob("*.py"))
    assert len(files) > 10
    wrong = []
    for path in files:
        tree = ast.parse(path.read_text())
        of_types = for_types(tree)
        for module in modules(tree):
            own = module.startswith("testing.oracle") or module == "testing.mismatch"
            if not own and module not in DEFINITIONS and not (module in OF_TYPES and module in of_types):
                wrong.append(f"{path.relative_to(SOURCE)} imports {module}")
    assert not wrong
