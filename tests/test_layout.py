"""The tests themselves: what they share lies in helper modules, and no test imports another."""

from __future__ import annotations

import ast
from pathlib import Path

TESTS = Path(__file__).parent


def imported(path: Path) -> set[str]:
    """The modules a file imports, wherever in it."""
    names = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            names.add(node.module)
    return names


def test_no_test_imports_another_test() -> None:
    for path in TESTS.rglob("*.py"):
        last = {name.split(".")[-1] for name in imported(path)}
        assert not {name for name in last if name.startswith("test_") or name == "conftest"}, path
