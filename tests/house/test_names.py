"""Names and first words: a name says what it is or does, and a docstring starts with its verb or its noun."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Final

import pytest

ROOT: Final = Path(__file__).parents[2]
FILES: Final = [*sorted((ROOT / "agentkit").rglob("*.py")), *sorted((ROOT / "tools" / "agentkit_tools").rglob("*.py"))]
GLOSSARY: Final = (ROOT / "CONTRIBUTING.md").read_text().split("## Glossary\n")[1].split("\n## ")[0]

IRREGULAR: Final = {
    *(
        "begun",
        "broken",
        "built",
        "chosen",
        "come",
        "cut",
        "done",
        "drawn",
        "driven",
        "found",
        "given",
        "gone",
        "grown",
    ),
    *("heard", "held", "hidden", "kept", "known", "left", "lost", "made", "meant", "said", "seen", "sent", "settled"),
    *("shown", "stood", "taken", "thrown", "told", "understood", "worn", "written"),
}
"""Past participles that do not end with "ed"."""

NOUNS_AND_VERBS: Final = {"embed", "exceed", "feed", "need", "seed", "speed"}
"""Words with "ed" at the end that are not participles."""

ALLOWED: Final = {
    "Approved": "a decision, as in `result.decide(call, Approved())`",
    "Denied": "a decision",
    "Refused": "a decision of a guard",
    "Braced": "a part of a format's declaration: `Format(…, Braced(…))`",
    "Hidden": "a marker in `Annotated[…]`, as `Required` of typing",
}
"""Participles that remain as names, each with its reason."""


Definition = ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef


def definitions(node: ast.AST, public: bool = True) -> Iterator[tuple[Definition, bool]]:
    """Yield each class and function below a node, and True if other files may use it."""
    for child in ast.iter_child_nodes(node):
        if isinstance(child, Definition):
            seen = public and not child.name.startswith("_")
            yield child, seen
            yield from definitions(child, seen and isinstance(child, ast.ClassDef))
        elif not isinstance(child, ast.expr):
            yield from definitions(child, public)


@cache
def parsed(file: Path) -> ast.Module:
    return ast.parse(file.read_text())


def is_participle(name: str) -> bool:
    word = name.lower() if re.fullmatch(r"[A-Z]?[a-z]+", name) else ""
    return word in IRREGULAR or (word.endswith("ed") and word not in NOUNS_AND_VERBS)


def participles(file: Path) -> Iterator[str]:
    """Yield the bare participles among a file's name and its public names; one that returns `bool` names a state."""
    if is_participle(file.stem):
        yield file.stem
    for definition, public in definitions(parsed(file)):
        returns = getattr(definition, "returns", None)
        if public and is_participle(definition.name) and not (isinstance(returns, ast.Name) and returns.id == "bool"):
            yield definition.name


def test_no_name_is_a_bare_participle() -> None:
    found = {f"{file.relative_to(ROOT)}: {name}" for file in FILES for name in participles(file) if name not in ALLOWED}
    print("allowed:", ", ".join(ALLOWED))
    assert found == set()


@pytest.mark.parametrize("name", ["told", "escaped", "settled"])
def test_a_bare_participle_is_noticed(name: str, tmp_path: Path) -> None:
    file = tmp_path / "values.py"
    file.write_text(f"class Value:\n    def {name}(self) -> str: ...\n    def _{name}(self): ...\n")
    assert list(participles(file)) == [name]


def test_no_docstring_starts_without_its_noun() -> None:
    trees = {file: parsed(file) for file in FILES}
    nodes = [(file, node) for file, tree in trees.items() for node in (tree, *(each for each, _ in definitions(tree)))]
    first = [(file, (ast.get_docstring(node) or "").partition("\n")[0]) for file, node in nodes]
    assert [(file, line) for file, line in first if re.match(r"(What|Whether|Those|Itself|The same)\b", line)] == []


def rows() -> list[list[str]]:
    """Return the cells of the glossary's rows, without its head."""
    return [
        [cell.strip() for cell in line[1:-1].split("|")] for line in GLOSSARY.splitlines() if line.startswith("| ")
    ][1:]


def test_the_glossary_is_short_and_each_term_is_a_name_of_the_code() -> None:
    words = {word.lower() for file in FILES for word in re.findall(r"[A-Z]?[a-z]+", file.read_text())}
    terms = [row[0].strip("`") for row in rows()]
    assert 20 <= len(terms) <= 60
    assert sorted(set(terms)) == sorted(terms)
    assert [term for term in terms if not {word.lower() for word in re.findall(r"[A-Z]?[a-z]+", term)} <= words] == []


def test_no_name_has_a_word_that_the_glossary_replaces() -> None:
    replaced = {word.strip("`") for row in rows() for word in row[2].split(", ") if word.strip("`")}
    found = set()
    for file in FILES:
        for name in (file.stem, *(definition.name for definition, public in definitions(parsed(file)) if public)):
            parts = {word.lower() for word in re.findall(r"[A-Z]?[a-z]+", name)}
            found |= {f"{file.relative_to(ROOT)}: {name}" for _ in parts & replaced}
    assert found == set()
