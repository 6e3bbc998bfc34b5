"""Measure the code base: python tools/measure.py, from the top of the repository.

Prints a small table, or plain values with `--json`:

- decisions on a mechanism kind outside the kind's own file, counted on the syntax tree: `isinstance` and `issubclass`
  with the class of a kind or a union of them, `case` patterns of such a class, comparisons of `type(...)` with one,
  `hasattr` of a mechanism, and comparisons with the name of a kind; `--decisions` lists every one;
- decisions on a metric outside the metric's own file, counted in the same way, and `getattr` of a metric with a
  default, `given(..., under=...)` with its class, and dictionaries with the names of metrics for keys; `--metrics`
  lists every one;
- registrations for one class each (`register` of singledispatch or of the kinds) outside the kind's own file;
- lines of code (no blank lines, comments, docstrings, imports), files and lines of src, and of papers where it exists;
- imports of private modules and names in the tests;
- modules of metricdp that are loaded, and files whose functions are entered, by `metricdp perturb points.csv`.
"""

from __future__ import annotations

import argparse
import ast
import io
import json
import os
import subprocess
import sys
import tempfile
import tokenize
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass, field
from pathlib import Path

PROJECT = Path(__file__).resolve().parents[1]
SOURCES = ("src/metricdp", "papers/src", "papers/metricdp_papers")
# Words that are names of other things too: compared with what a kind is called they count, elsewhere not.
COMMON = {"matrix", "local", "kernel", "product", "nearest", "streets", "interpolated"}
SUBJECTS = ("mechanism", "noise", "part", "made", "held", "kind", "law")
METRIC_SUBJECTS = ("metric", "ground")
ENTERED = """
import sys, threading
seen = set()
package = sys.argv[1]
def trace(frame, event, arg):
    name = frame.f_code.co_filename
    if event == "call" and name.startswith(package) and frame.f_code.co_flags & 1:  # a function, no class or module
        seen.add(name)
sys.setprofile(trace)
threading.setprofile(trace)
sys.argv = ["metricdp", *sys.argv[2:]]
from metricdp.__main__ import main
try:
    main()
except SystemExit as ended:
    assert not ended.code, ended.code
finally:
    sys.setprofile(None)
    loaded = sum(name == "metricdp" or name.startswith("metricdp.") for name in sys.modules)
    print(f"\\n#{len(seen)} {loaded}")
"""


@dataclass
class Size:
    """How much there is below a folder."""

    files: int = 0
    lines: int = 0
    code: int = 0


@dataclass
class Measures:
    """Everything that is measured."""

    decisions: int = 0
    deciding_files: int = 0
    registrations: int = 0
    metric_decisions: int = 0
    metric_deciding_files: int = 0
    metric_registrations: int = 0
    sizes: dict[str, Size] = field(default_factory=dict)
    private_imports_in_tests: int = 0
    deep_imports_in_tests: int = 0
    entered_by_perturb: int = 0
    loaded_by_perturb: int = 0


def files_in(folder: Path) -> list[Path]:
    """Return the Python files below a folder."""
    return sorted(folder.rglob("*.py"))


def code_lines(text: str) -> int:
    """Return the number of lines that hold code: no blank lines, comments, docstrings, imports."""
    left_out: set[int] = set()
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Import | ast.ImportFrom) or (
            isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str)
        ):
            left_out.update(range(node.lineno, (node.end_lineno or node.lineno) + 1))
    held: set[int] = set()
    skipped = {tokenize.COMMENT, tokenize.NL, tokenize.NEWLINE, tokenize.INDENT, tokenize.DEDENT, tokenize.ENDMARKER}
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type not in skipped:
            held.update(range(token.start[0], token.end[0] + 1))
    return len(held - left_out)


def size_of(folder: Path) -> Size:
    """Return the size of everything below a folder."""
    found = Size()
    for path in files_in(folder):
        text = path.read_text(encoding="utf-8")
        found.files += 1
        found.lines += text.count("\n")
        found.code += code_lines(text)
    return found


def kinds() -> tuple[dict[str, str], set[str]]:
    """Return the classes of the mechanism kinds with the modules that define them, and the names of the kinds."""
    from metricdp.mechanisms import MECHANISMS
    from metricdp.text.mechanism import TextMechanism

    classes = [getattr(entry, "type", None) or entry.thing for entry in MECHANISMS]
    modules = {one.__name__: one.__module__ for one in [*classes, TextMechanism]}
    return modules, {entry.name for entry in MECHANISMS}


def metrics() -> tuple[dict[str, str], set[str]]:
    """Return the classes of the metrics with the modules that define them, and their names."""
    from metricdp.metrics import METRICS, FunctionMetric

    modules = {one.__name__: one.__module__ for one in [*(entry.thing for entry in METRICS), FunctionMetric]}
    return modules, set(modules)


def names_in(node: ast.AST) -> set[str]:
    """Return the names and the last words of attributes that stand in an expression."""
    return {one.id for one in ast.walk(node) if isinstance(one, ast.Name)} | {
        one.attr for one in ast.walk(node) if isinstance(one, ast.Attribute)
    }


def unions(trees: dict[Path, ast.Module], classes: set[str]) -> set[str]:
    """Return names that stand for several kinds: assigned a union or a tuple of their classes, at any remove."""
    found: set[str] = set()
    while True:
        more = set()
        for tree in trees.values():
            for node in ast.walk(tree):
                if isinstance(node, ast.Assign) and isinstance(node.value, ast.BinOp | ast.Tuple | ast.Name):
                    inside = names_in(node.value)
                    if inside and inside <= classes | found:
                        more |= {one.id for one in node.targets if isinstance(one, ast.Name)}
        if more <= found:
            return found - classes
        found |= more


Decides = Callable[[ast.AST, set[str], set[str]], bool]
Found = tuple[Path, int, str, bool]


def decisions(project: Path = PROJECT) -> Iterator[Found]:
    """Yield every decision on a mechanism kind outside its own file: file, line, expression, and False; or a
    registration and True.
    """
    return decided(project, *kinds(), decides)


def metric_decisions(project: Path = PROJECT) -> Iterator[Found]:
    """Yield every decision on a metric outside its own file, and every registration."""
    return decided(project, *metrics(), decides_on_metric)


def decided(project: Path, modules: dict[str, str], names: set[str], decides: Decides) -> Iterator[Found]:
    """Yield what decides on one of some classes outside the file that defines it."""
    folder = project / SOURCES[0]
    trees = {path: ast.parse(path.read_text(encoding="utf-8")) for part in SOURCES for path in files_in(project / part)}
    classes = set(modules)
    several = unions(trees, classes)
    for path, tree in trees.items():
        own = (
            ".".join(("metricdp", *path.relative_to(folder).with_suffix("").parts))
            if path.is_relative_to(folder)
            else ""
        )
        foreign = {name for name, module in modules.items() if module != own} | several
        for node in ast.walk(tree):
            registered = registers(node, foreign)
            if registered or decides(node, foreign, names):
                line, text = getattr(node, "lineno", 0), ast.unparse(node).splitlines()[0]
                yield path.relative_to(project), line, text, registered


def decides(node: ast.AST, classes: set[str], names: set[str]) -> bool:
    """Tell whether a node of the syntax tree is a decision on a mechanism kind."""
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and len(node.args) >= 2:
        if node.func.id in ("isinstance", "issubclass"):
            return bool(names_in(node.args[1]) & classes)
        return node.func.id == "hasattr" and is_about(node.args[0], SUBJECTS)
    if on_class(node, classes):
        return True
    if isinstance(node, ast.Compare):
        sides = [node.left, *node.comparators]
        words = set().union(*(words_in(side) for side in sides))
        other = set().union(*(names_in(side) for side in sides))
        return bool(words & (names - COMMON)) or (
            bool(words & names) and bool(other & {"kind", "name", "type"}) and bool({"kind"} & other)
        )
    return False


def decides_on_metric(node: ast.AST, classes: set[str], names: set[str]) -> bool:
    """Tell whether a node of the syntax tree is a decision on a metric."""
    if isinstance(node, ast.Call):
        function = node.func.id if isinstance(node.func, ast.Name) else ""
        if function in ("isinstance", "issubclass"):
            return bool(names_in(node.args[1]) & classes)
        if function == "hasattr" or (function == "getattr" and len(node.args) == 3):
            return is_about(node.args[0], METRIC_SUBJECTS)
        return any(one.arg == "under" and bool(names_in(one.value) & classes) for one in node.keywords)
    if on_class(node, classes):
        return True
    if isinstance(node, ast.Dict):
        return any(key is not None and bool(words_in(key) & names) for key in node.keys)
    if isinstance(node, ast.Compare):
        sides = [node.left, *node.comparators]
        named = any(names_in(side) and names_in(side) <= classes for side in sides)
        return named or any(words_in(side) & names for side in sides)
    return False


def on_class(node: ast.AST, classes: set[str]) -> bool:
    """Tell whether a node chooses by class: the keys of a dictionary, a `case`, a comparison of `type(...)`."""
    if isinstance(node, ast.Dict):
        return any(key is not None and names_in(key) & classes for key in node.keys)
    if isinstance(node, ast.MatchClass):
        return bool(names_in(node.cls) & classes)
    if isinstance(node, ast.Compare):
        sides = [node.left, *node.comparators]
        if any(isinstance(one, ast.Call) and isinstance(one.func, ast.Name) and one.func.id == "type" for one in sides):
            return any(names_in(one) & classes for one in sides)
    return False


def words_in(node: ast.AST) -> set[str]:
    """Return the texts that stand in an expression."""
    return {one.value for one in ast.walk(node) if isinstance(one, ast.Constant) and isinstance(one.value, str)}


def registers(node: ast.AST, classes: set[str]) -> bool:
    """Tell whether a node registers something for one class of mechanism."""
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "register":
        return bool(node.args) and bool(names_in(node.args[0]) & classes)
    if isinstance(node, ast.FunctionDef):
        typed = [one for one in node.decorator_list if isinstance(one, ast.Attribute) and one.attr == "register"]
        first = node.args.args[0].annotation if node.args.args else None
        return bool(typed) and first is not None and bool(names_in(first) & classes)
    return False


def is_about(node: ast.AST, subjects: tuple[str, ...]) -> bool:
    """Tell whether an expression is named as a mechanism is, or as a metric."""
    return any(word in subjects for name in names_in(node) for word in name.lower().split("_"))


def imports_of_tests(project: Path = PROJECT) -> tuple[int, int]:
    """Return how many names tests import that start with an underscore, and how many from inside a package."""
    private = deep = 0
    for path in files_in(project / "tests"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.ImportFrom) and (node.module or "").split(".")[0] == "metricdp":
                parts = (node.module or "").split(".")
                names = [one.name for one in node.names]
                private += sum(any(part.startswith("_") for part in (*parts, name)) for name in names)
                deep += len(parts) > 2
    return private, deep


def entered() -> tuple[int, int]:
    """Return how many files of metricdp the command enters that protects a table, and how many modules it loads."""
    with tempfile.TemporaryDirectory() as folder:
        Path(folder, "points.csv").write_text("lat,lon\n41.15,-8.61\n41.16,-8.62\n", encoding="utf-8")
        command = [sys.executable, "-c", ENTERED, str(PROJECT / "src" / "metricdp"),
                   "perturb", "points.csv", "--epsilon", "10/km", "-o", "out.csv"]  # fmt: skip
        setting = os.environ | {"PYTHONPATH": str(PROJECT / "src")}
        told = subprocess.run(command, cwd=folder, env=setting, capture_output=True, text=True, check=False)
        if told.returncode:
            raise SystemExit(told.stderr)
        files, modules = told.stdout.rsplit("#", 1)[1].split()
        return int(files), int(modules)


def measured() -> Measures:
    """Return everything that is measured."""
    counts: list[int] = []
    for found in (list(decisions()), list(metric_decisions())):
        paths = [path for path, *_, registered in found if not registered]
        counts += [len(paths), len(set(paths)), len(found) - len(paths)]
    private, deep = imports_of_tests()
    files, modules = entered()
    sizes = {part: size_of(PROJECT / part) for part in ("src", "papers", "tests") if (PROJECT / part).is_dir()}
    return Measures(*counts, sizes, private, deep, files, modules)


def main() -> None:
    """Print what is measured."""
    reader = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    reader.add_argument("--json", action="store_true", help="print plain values")
    reader.add_argument("--decisions", action="store_true", help="list every decision on a mechanism kind")
    reader.add_argument("--metrics", action="store_true", help="list every decision on a metric")
    asked = reader.parse_args()
    if asked.decisions or asked.metrics:
        for path, line, text, registered in decisions() if asked.decisions else metric_decisions():
            if not registered:
                print(f"{path}:{line}: {text}")
        return
    found = measured()
    if asked.json:
        print(json.dumps(asdict(found), indent=2))
        return
    rows = [
        ("decisions on a kind outside its file", found.decisions),
        ("files that decide", found.deciding_files),
        ("registrations for a kind outside its file", found.registrations),
        ("decisions on a metric outside its file", found.metric_decisions),
        ("files that decide on a metric", found.metric_deciding_files),
        ("registrations for a metric outside its file", found.metric_registrations),
    ]
    for part, size in found.sizes.items():
        rows += [(f"{part}: files", size.files), (f"{part}: lines", size.lines), (f"{part}: code lines", size.code)]
    rows += [
        ("private names imported by tests", found.private_imports_in_tests),
        ("imports from inside a package in tests", found.deep_imports_in_tests),
        ("files entered by perturb", found.entered_by_perturb),
        ("modules loaded by perturb", found.loaded_by_perturb),
    ]
    width = max(len(name) for name, _ in rows)
    for name, value in rows:
        print(f"{name:<{width}}  {value:>9,}")


if __name__ == "__main__":
    main()
