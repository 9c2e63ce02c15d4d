"""The documentation executes: code prints what the page says, SQL parses, transcripts run, names and paths exist."""

from __future__ import annotations

import contextlib
import importlib
import inspect
import io
import re
import shlex
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import polars as pl
import pytest
import typer

import windrow
from windrow import testing
from windrow.cli import app
from windrow.sql.select import _parse

ROOT = Path(__file__).parents[1]
PAGES = [*(ROOT / p for p in ("README.md", "CHANGELOG.md", "tests/README.md")), *sorted((ROOT / "docs").rglob("*.md"))]
CARDS = ROOT / "docs" / "operators"
FIELDS = (
    "What it does",
    "Ordering",
    "Algebra",
    "Time",
    "Space",
    "State chunks",
    "Promises in -> out",
    "Paper",
    "File",
    "Test",
)
PYTHON, SPARK = "python", "python spark"
KNOWN = {PYTHON, SPARK, "text", "console", "sql", "yaml", "sh", "ebnf"}
MOST_SPARK_BLOCKS = 6  # each costs seconds


@dataclass(frozen=True)
class Block:
    """A fenced block: where it is, what it says it is, and its text. ``after`` is what lies between it and the last."""

    page: Path
    line: int
    info: str
    body: str
    after: str

    @property
    def where(self) -> str:
        return f"{self.page.relative_to(ROOT)}:{self.line}"


def name_of(value: object) -> str:
    if isinstance(value, Block):
        return value.where
    return str(value.relative_to(ROOT)) if isinstance(value, Path) else str(value)


def parsed(page: Path) -> Iterator[Block]:
    """The fenced blocks of a page in order."""
    between: list[str] = []
    fence: tuple[int, str] | None = None
    body: list[str] = []
    for number, line in enumerate(page.read_text().splitlines(), 1):
        if not line.startswith("```"):
            (between if fence is None else body).append(line)
        elif fence is None:
            fence, body = (number, line.removeprefix("```").strip()), []
        else:
            yield Block(page, fence[0], fence[1], "".join(b + "\n" for b in body), "\n".join(between))
            fence, between = None, []
    assert fence is None, f"{page}: the block of line {fence} has no end"


BLOCKS = [block for page in PAGES for block in parsed(page)]


def of_kind(*kinds: str) -> list[Block]:
    return [b for b in BLOCKS if b.info in kinds]


@cache
def prose(page: Path) -> str:
    """A page without its blocks."""
    return re.sub(r"^```.*?^```$", "", page.read_text(), flags=re.DOTALL | re.MULTILINE)


# -- code --------------------------------------------------------------------------------------------------------------
def execute(page: Path, kinds: tuple[str, ...], names: dict[str, object]) -> None:
    """Run the blocks of a page in one namespace; a ``text`` block right below one is what it prints."""
    blocks = list(parsed(page))
    for number, block in enumerate(blocks):
        if block.info not in kinds:
            continue
        printed = io.StringIO()
        code = compile("\n" * block.line + block.body, str(page), "exec")  # line numbers are those of the page
        with contextlib.redirect_stdout(printed), pl.Config(tbl_width_chars=110):
            exec(code, names)
        below = blocks[number + 1] if number + 1 < len(blocks) else None
        if below is not None and below.info == "text" and not below.after.strip():
            assert printed.getvalue() == below.body, block.where
        else:
            assert printed.getvalue() == "", f"{block.where} prints, and the page does not show what"


@pytest.mark.parametrize("page", sorted({b.page for b in of_kind(PYTHON)}), ids=name_of)
def test_python_blocks_print_what_the_page_shows(page, tmp_path, monkeypatch):
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    execute(page, (PYTHON,), {"__name__": "docs"})


@pytest.mark.spark
@pytest.mark.parametrize("page", sorted({b.page for b in of_kind(SPARK)}), ids=name_of)
def test_spark_blocks_print_what_the_page_shows(page, tmp_path, monkeypatch, spark):
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    execute(page, (PYTHON, SPARK), {"__name__": "docs", "spark": spark})


def test_blocks_say_what_they_are_and_few_need_spark():
    assert [(b.where, b.info) for b in BLOCKS if b.info not in KNOWN] == []
    assert len(of_kind(SPARK)) <= MOST_SPARK_BLOCKS
    assert [b.where for b in of_kind(PYTHON, SPARK) if max(map(len, b.body.splitlines())) > 120] == []


@pytest.mark.parametrize("block", of_kind("sql"), ids=name_of)
def test_sql_blocks_parse(block):
    statements = [s for s in block.body.split(";") if s.strip()]
    assert statements
    for statement in statements:
        _parse(statement)


@pytest.mark.parametrize("block", of_kind("yaml"), ids=name_of)
def test_transcripts_hold(block, tmp_path):
    file = tmp_path / "page.yaml"
    file.write_text(block.body)
    for transcript in testing.load(file):
        assert transcript.error or any("expect" in step for step in transcript.steps), "it expects nothing"
        testing.run_local(transcript)
        testing.run_batch(transcript)


# -- commands ----------------------------------------------------------------------------------------------------------
COMMANDS = {
    name: [p for each in (command, *getattr(command, "commands", {}).values()) for p in each.params]
    for name, command in typer.main.get_command(app).commands.items()
}
TARGETS = set(re.findall(r"^([a-z]+):", (ROOT / "Makefile").read_text(), re.MULTILINE))


def options_of(command: str) -> set[str]:
    return {o for p in COMMANDS[command] for o in p.opts if o.startswith("-")}


def command_lines(block: Block) -> Iterator[list[str]]:
    for line in block.body.replace("\\\n", " ").splitlines():
        if words := shlex.split(line, comments=True):
            yield words


@pytest.mark.parametrize("block", of_kind("sh"), ids=name_of)
def test_commands_and_their_options_exist(block):
    for words in command_lines(block):
        program, *arguments = words
        if program == "make":
            assert set(arguments) <= TARGETS, words
        elif Path(program).name == "windrow":
            assert arguments[0] in COMMANDS, words
            given = {a.partition("=")[0] for a in arguments if a.startswith("-")}
            assert given <= options_of(arguments[0]) | {"--help", "-h"}, words


@pytest.mark.parametrize("command", COMMANDS)
def test_the_command_reference_has_every_option(command):
    sections = (ROOT / "docs/reference/cli.md").read_text().split("\n## ")
    section = next((s for s in sections if s.startswith(f"windrow {command}\n")), "")
    assert {o for o in options_of(command) if f"`{o}" not in section} == set()


def test_commands_in_prose_exist():
    for page in PAGES:
        for command in re.findall(r"`windrow ([a-z]+)", prose(page)):
            assert command in COMMANDS, f"{page}: windrow {command}"
        for target in re.findall(r"`make ([a-z]+)", prose(page)):
            assert target in TARGETS, f"{page}: make {target}"


# -- names -------------------------------------------------------------------------------------------------------------
def test_the_python_reference_has_every_public_name():
    text = (ROOT / "docs/reference/python.md").read_text()
    own = {n for n, _ in inspect.getmembers(windrow.Stream) if not n.startswith("_")} - {"node", "sources"}
    wanted = [*windrow.__all__, *testing.__all__, *sorted(own)]
    assert [n for n in wanted if not re.search(rf"\b{n}\b", text)] == []


LINK = re.compile(r"\[[^\]]*\]\(([^)\s]+)\)")
PATH = re.compile(r"`([\w.-]+(?:/[\w.*-]+)*/?)`")
FOLDERS = ("src", "tests", "docs", "examples", ".ci")
SUFFIXES = (".py", ".md", ".toml", ".lock")


LINKS = [(page, link) for page in PAGES for link in LINK.findall(prose(page)) if "://" not in link]


def target(page: Path, link: str) -> Path:
    path = link.partition("#")[0]
    return (page.parent / path).resolve() if path else page


@cache
def anchors(page: Path) -> set[str]:
    """The anchors of a page's headings, as GitHub makes them."""
    headings = re.findall(r"^#+ (.*)$", page.read_text(), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.strip().lower()).replace(" ", "-") for heading in headings}


def test_links_lead_somewhere():
    missing = [f"{name_of(page)}: {link}" for page, link in LINKS if not target(page, link).exists()]
    assert missing == []
    anchored = [(page, link) for page, link in LINKS if "#" in link]
    wrong = [(p, link) for p, link in anchored if link.partition("#")[2] not in anchors(target(p, link))]
    assert [f"{name_of(page)}: {link}" for page, link in wrong] == []


def test_paths_in_prose_exist():
    missing = []
    for page in PAGES:
        for path in set(PATH.findall(prose(page))):
            if path.split("/")[0] not in FOLDERS and not path.endswith(SUFFIXES):
                continue
            if not any(list(folder.glob(path.rstrip("/"))) for folder in (ROOT, page.parent)):
                missing.append(f"{name_of(page)}: {path}")
    assert missing == []


def test_every_page_can_be_reached():
    reached, todo = set(), [ROOT / "README.md"]
    while todo:
        page = todo.pop()
        if page not in reached and page.suffix == ".md":
            reached.add(page)
            todo += [target(page, link) for link in LINK.findall(prose(page)) if "://" not in link]
    assert [name_of(page) for page in PAGES if page not in reached] == []


# -- words -------------------------------------------------------------------------------------------------------------
TERMS = {
    "promise",
    "punctuation",
    "progress",
    "pane",
    "extent",
    "shard",
    "late",
    "slack",
    "marker",
    "witness",
    "judge",
    "evidence",
    "audit",
    "marks",
    "stage",
    "arm",
    "port",
    "route",
    "fragment",
    "level",
    "exchange",
    "blob",
    "chunk",
    "run",
    "lift",
    "meld",
    "merge",
    "gate",
    "version",
    "revise",
    "retract",
    "window id",
    "live copy",
    "side output",
    "last instant",
    "checkpoint identity",
    "as-of join",
    "tie",
    "final",
    "sequence",
    "matching",
}


def test_the_glossary_has_every_term_once():
    defined = re.findall(r"^\| \*\*(.+?)\*\* \|", (ROOT / "docs/glossary.md").read_text(), re.MULTILINE)
    assert TERMS - set(defined) == set()
    assert len(defined) == len(set(defined))


# -- cards -------------------------------------------------------------------------------------------------------------
@cache
def operator_files() -> list[Path]:
    """The files that define an operator: a class that takes batches and can be snapshotted."""
    found = []
    for file in sorted((ROOT / "src/windrow/operators").rglob("[!_]*.py")):
        module = importlib.import_module(".".join(file.relative_to(ROOT / "src").with_suffix("").parts))
        own = [c for _, c in inspect.getmembers(module, inspect.isclass) if c.__module__ == module.__name__]
        takes = [c for c in own if hasattr(c, "on_batch") and hasattr(c, "snapshot") and not inspect.isabstract(c)]
        if any(not getattr(c, "_is_protocol", False) for c in takes):
            found.append(file)
    return found


def test_there_are_operators_and_no_cards_without_one():
    names = {f.stem for f in operator_files()}
    assert {"select", "paned", "meld"} <= names
    assert {p.stem for p in CARDS.glob("*.md")} - {"README"} == names


def test_the_index_of_operators_has_each_card_once():
    listed = re.findall(r"^\| \[(\w+)\]\(\1\.md\)", (CARDS / "README.md").read_text(), re.MULTILINE)
    assert sorted(listed) == sorted(file.stem for file in operator_files())


@pytest.mark.parametrize("file", operator_files(), ids=name_of)
def test_every_operator_has_a_card_with_all_fields(file):
    card = (CARDS / f"{file.stem}.md").read_text()
    rows = dict(re.findall(r"^\| \*\*(.+?)\*\* \| (.+) \|$", card, re.MULTILINE))
    assert tuple(rows) == FIELDS
    assert all(value.strip() for value in rows.values())
    assert f"`{file.relative_to(ROOT)}`" in rows["File"]
    assert "`tests/operators/" in rows["Test"]
