"""The page about the architecture: what it names exists, and its drawing shows the layers that are checked."""

import ast
import configparser
import re
from functools import cache
from pathlib import Path
from xml.etree import ElementTree

PROJECT = Path(__file__).parents[1]
DOCS = PROJECT / "docs"
PAGE = (DOCS / "architecture.md").read_text(encoding="utf-8")
PLACE = re.compile(r"((?:benchmarks|docs|js|papers|src|tests|tools)/[\w./-]*)(?::([\w.]+))?")
TEXT = "{http://www.w3.org/2000/svg}text"


def names(nodes):
    """What statements define: functions, classes with what is in them, and values."""
    for node in nodes:
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            yield node.name
            if isinstance(node, ast.ClassDef):
                yield from (f"{node.name}.{name}" for name in names(node.body))
        elif isinstance(node, ast.Assign | ast.AnnAssign):
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            yield from (target.id for target in targets if isinstance(target, ast.Name))


@cache
def defined(path):
    return set(names(ast.parse(path.read_text(encoding="utf-8")).body))


def test_every_file_and_name_on_the_page_exists():
    written = set(re.findall(r"`([^`\s]+/[^`\s]*)`", PAGE)) - {"10/km", "/v1/release"}
    assert len(written) > 80
    for place in written:
        found = PLACE.fullmatch(place)
        assert found, place
        path, name = PROJECT / found[1], found[2]
        assert path.exists(), place
        assert name is None or name in defined(path), place


def test_the_page_stays_one_page():
    assert len(PAGE.split()) <= 1300
    for journey in PAGE.split("\n### ")[1:]:
        assert len(re.findall(r"^\d+\. ", journey.partition("\n## ")[0], re.MULTILINE)) <= 12


def test_the_drawing_shows_the_layers_that_are_checked():
    checked = configparser.ConfigParser()
    checked.read(PROJECT / ".importlinter", encoding="utf-8")
    layers = checked["importlinter:contract:layers"]["layers"].strip().splitlines()
    drawing = ElementTree.parse(DOCS / "images" / "architecture.svg")
    drawn = ["".join(text.itertext()) for text in drawing.iter(TEXT) if "layer" in text.get("class").split()]
    assert drawn == layers
