"""The shape of the house: no cycle even lazily, pages of readable length, tests that mirror the source, alone."""

from __future__ import annotations

import ast
from graphlib import TopologicalSorter
from pathlib import Path

TESTS = Path(__file__).parent
SOURCE = TESTS.parent / "src"
LONGEST = 700  # lines


def imports(path: Path) -> list[tuple[str, str]]:
    """What a file imports, wherever in it, as (module, name); what only the type checker sees is left out."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    unseen = {
        id(inner)
        for node in ast.walk(tree)
        if isinstance(node, ast.If) and isinstance(node.test, ast.Name) and node.test.id == "TYPE_CHECKING"
        for inner in ast.walk(node)
    }
    found = []
    for node in ast.walk(tree):
        if isinstance(node, ast.Import) and id(node) not in unseen:
            found += [(alias.name, "") for alias in node.names]
        elif isinstance(node, ast.ImportFrom) and node.module and id(node) not in unseen:
            found += [(node.module, alias.name) for alias in node.names]
    return found


def modules() -> dict[str, Path]:
    """Every module of the package and its file."""
    found = {}
    for path in SOURCE.rglob("*.py"):
        parts = path.relative_to(SOURCE).with_suffix("").parts
        found[".".join(parts[:-1] if parts[-1] == "__init__" else parts)] = path
    return found


def test_no_import_goes_round_in_a_circle_even_inside_functions() -> None:
    known = modules()
    graph = {
        module: {
            found
            for name, part in imports(path)
            if (found := f"{name}.{part}" if f"{name}.{part}" in known else name) in known and found != module
        }
        for module, path in known.items()
    }
    TopologicalSorter(graph).prepare()  # raises with the circle where there is one


def test_nobody_asks_a_space_for_its_class() -> None:
    """What differs between spaces they say themselves (`Space`); `given` alone checks the kind of an argument."""
    kinds = {path.stem: path for path in (SOURCE / "metricdp" / "spaces").glob("*.py")}
    written = [node for path in kinds.values() for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))]
    made = [node for node in written if isinstance(node, ast.ClassDef)]
    classes = {node.name for node in made if any(getattr(part, "name", "") == "admit" for part in node.body)} - {
        "Space"
    }
    classes |= {node.name for node in made if any(getattr(base, "id", "") in classes for base in node.bases)}
    assert len(classes) >= 6
    for path in modules().values():
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Call) and getattr(node.func, "id", "") in ("isinstance", "issubclass"):
                asked = {part.id for part in ast.walk(node.args[1]) if isinstance(part, ast.Name)}
                assert not asked & classes, f"{path}:{node.lineno} asks whether a space is a {asked & classes}"


def test_every_page_can_be_read_in_one_go() -> None:
    lengths = {name: len(path.read_text(encoding="utf-8").splitlines()) for name, path in modules().items()}
    assert not {name: length for name, length in lengths.items() if length >= LONGEST}


def test_every_room_has_its_tests_where_one_looks_for_them() -> None:
    rooms = {path.name for path in (SOURCE / "metricdp").iterdir() if (path / "__init__.py").is_file()}
    assert not {room for room in rooms if not list((TESTS / room).glob("test_*.py"))}


def test_no_test_imports_another_test() -> None:
    for path in TESTS.rglob("*.py"):
        last = {module.split(".")[-1] for module, _ in imports(path)}
        assert not {name for name in last if name.startswith("test_") or name == "conftest"}, path
