"""What newcomers read: the README's Python and every example run, links lead somewhere, the site builds."""

import os
import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import browsers
from metricdp import cli
from scripts import command, script

PROJECT = Path(__file__).parents[1]
EXAMPLES = [*sorted((PROJECT / "examples").glob("*.py")), *sorted((PROJECT / "examples" / "extend").glob("*.py"))]
APART = {"decomposed", "study"}  # they start processes, which import the file
PLACES = {PROJECT / "docs": "", PROJECT / "papers" / "docs": "papers/"}  # of pages, and where the site has them
PAGES = [
    PROJECT / "README.md",
    PROJECT / "papers" / "README.md",
    *(page for one in PLACES for page in sorted(one.rglob("*.md"))),
]


def run_python(*arguments, folder):
    """Run Python apart: for what starts processes of its own."""
    environment = {**os.environ, "PYTHONWARNINGS": "error"}
    return subprocess.run(
        [sys.executable, *arguments], cwd=folder, env=environment, capture_output=True, text=True, timeout=120
    )


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda path: path.stem)
def test_examples_run(example, tmp_path):
    if example.stem not in APART:
        assert script(example, tmp_path).strip()
        return
    done = run_python(str(example), folder=tmp_path)
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip()


GALLERY = sorted((PROJECT / "examples" / "gallery").glob("*.py"))
PICTURES = PROJECT / "docs" / "images" / "gallery"


def test_the_gallery_shows_every_example_with_its_picture():
    page = (PROJECT / "docs" / "gallery.md").read_text(encoding="utf-8")
    assert len(GALLERY) >= 20
    assert {path.stem for path in GALLERY} == {path.stem for path in PICTURES.glob("*.png")}
    for path in GALLERY:
        assert f"](images/gallery/{path.stem}.png)" in page
        assert path.read_text(encoding="utf-8") in page
        assert (PICTURES / f"{path.stem}.png").stat().st_size < 60_000


@pytest.mark.parametrize("example", GALLERY, ids=lambda path: path.stem)
def test_the_gallery_runs(example, tmp_path):
    """Each writes a picture of the size of the one that the page shows."""
    pyplot = pytest.importorskip("matplotlib.pyplot")
    pyplot.switch_backend("agg")
    try:
        script(example, tmp_path)
        made, shown = (pyplot.imread(folder / f"{example.stem}.png") for folder in (tmp_path, PICTURES))
    finally:
        pyplot.close("all")
    assert made.shape == shown.shape
    assert made.std() > 0.05  # something is on it


EXAMPLE = re.compile(r"<!-- example .*?<!-- end -->", re.DOTALL)


def test_the_phone_example_runs_on_a_device(tmp_path):
    node = browsers.node()
    if node is None:
        pytest.skip("Node 20 or newer is not installed (Debian: apt install nodejs)")
    script(PROJECT / "examples" / "phone.py", tmp_path)
    (tmp_path / "node_modules").mkdir()
    shutil.copytree(
        PROJECT / "js", tmp_path / "node_modules" / "metricdp", ignore=shutil.ignore_patterns("node_modules")
    )
    expected = {
        "phone.mjs": ("200 m apart along the roads by at most a factor of two", "OpenStreetMap", "report [ 41.1"),
        "avoid.mjs": ("report [ 41.1", "avoided false\ntrue\nholds"),
    }
    for name, said in expected.items():
        shutil.copy(PROJECT / "examples" / name, tmp_path)
        done = subprocess.run([node, name], cwd=tmp_path, capture_output=True, text=True, timeout=60, check=False)
        assert done.returncode == 0, done.stderr
        for words in said:
            assert words in done.stdout
    page = (PROJECT / "docs" / "how-to" / "phone.md").read_text(encoding="utf-8")
    for name in ("phone.py", *expected):
        assert (PROJECT / "examples" / name).read_text(encoding="utf-8") in page


def test_the_phone_page_runs(tmp_path):
    """The other blocks of the page: the command lines, and the Python that is no example file."""
    page = (PROJECT / "docs" / "how-to" / "phone.md").read_text(encoding="utf-8")
    lines = ["lat,lon", *(f"{41.1 + 0.002 * i},{-8.6 + 0.002 * j}" for i in range(4) for j in range(4))]
    (tmp_path / "cells.csv").write_text("\n".join(lines) + "\n")
    commands = [line for line in re.search(r"```sh\n(.*?)```", page, re.DOTALL)[1].splitlines() if line]
    assert len(commands) == 4
    for line in commands:
        name, *arguments = shlex.split(line)
        assert name == "metricdp"
        said = command(arguments, tmp_path)
    assert "Signature: good" in said
    assert "© the owner of the places" in said
    blocks = re.findall(r"```python\n(.*?)```", EXAMPLE.sub("", page), re.DOTALL)
    assert len(blocks) == 1
    script(blocks[0], tmp_path)
    assert (tmp_path / "position.mdp").stat().st_size < 1000


def test_the_first_lines_of_the_page_about_cities_run(tmp_path):
    """Its command lines and its Python, on a small network in a GraphML file as osmnx writes it."""
    keys = [("d0", "node", "y"), ("d1", "node", "x"), ("d2", "edge", "length"), ("d3", "edge", "oneway")]
    lines = ['<?xml version="1.0" encoding="utf-8"?>', '<graphml xmlns="http://graphml.graphdrawing.org/xmlns">']
    lines += [f'<key id="{one}" for="{kind}" attr.name="{name}" attr.type="string"/>' for one, kind, name in keys]
    lines += ['<graph edgedefault="directed">']
    for i in range(5):
        place = f'<data key="d0">{41.9 + 0.001 * i}</data><data key="d1">{12.48 + 0.001 * (i % 2)}</data>'
        lines += [f'<node id="{i}">{place}</node>']
    lines += [
        f'<edge source="{i}" target="{i + 1}"><data key="d2">150</data><data key="d3">False</data></edge>'
        for i in range(4)
    ]
    (tmp_path / "rome.graphml").write_text("\n".join([*lines, "</graph></graphml>"]))
    page = (PROJECT / "docs" / "how-to" / "cities.md").read_text(encoding="utf-8")
    (commands,) = re.findall(r"```sh\n(.*?)```", page, re.DOTALL)
    for line in commands.splitlines():
        said = command(shlex.split(line)[1:], tmp_path)
    assert said.startswith("holds")
    (block,) = re.findall(r"```python\n(.*?)```", page, re.DOTALL)
    assert "Certificate" in script(block, tmp_path)


def test_readme_python_runs(tmp_path):
    blocks = re.findall(r"```python\n(.*?)```", (PROJECT / "README.md").read_text(encoding="utf-8"), re.DOTALL)
    assert len(blocks) == 1
    assert len([line for line in blocks[0].splitlines() if line.strip()]) <= 10
    said = script(blocks[0], tmp_path).splitlines()
    (shown,) = re.findall(r"```text\n(.*?)```", (PROJECT / "README.md").read_text(encoding="utf-8"), re.DOTALL)
    assert said[0] == shown.splitlines()[0]
    assert said[1].startswith(shown.splitlines()[1].split(";")[0])
    assert "holds" in said[1]


def test_the_readme_fits_on_a_screen():
    assert max(map(len, (PROJECT / "README.md").read_text(encoding="utf-8").splitlines())) <= 120


TUTORIALS = sorted((PROJECT / "docs" / "tutorials").glob("*.md"))
BLOCK = re.compile(r"```(python|sh)\n(.*?)```", re.DOTALL)
REFUSED, ENDS = "# refused", re.compile(r"# exit (\d)")


@pytest.mark.parametrize("page", TUTORIALS, ids=lambda path: path.stem)
def test_tutorials_run_from_top_to_bottom(page, tmp_path, monkeypatch):
    """Every block, in one folder that begins empty: what a reader types is what runs here."""
    pytest.importorskip("matplotlib")
    monkeypatch.chdir(tmp_path)
    for language, text in BLOCK.findall(page.read_text(encoding="utf-8")):
        if language == "python":
            script(text, tmp_path)
            continue
        for line in filter(None, text.splitlines()):
            name, *arguments = shlex.split(line, comments=True)
            assert name == "metricdp"
            ends = 2 if REFUSED in line else int(found[1]) if (found := ENDS.search(line)) else 0
            assert cli.main(arguments) == ends, line


def test_the_python_of_other_pages_runs(tmp_path):
    """Blocks that are no example file and need nothing around them."""
    said = []
    for name, needs in (
        ("cheatsheet", ()),
        ("extend", ()),
        ("how-to/policies", ()),
        ("how-to/text", ("duckdb", "pandas")),
    ):
        for need in needs:
            pytest.importorskip(need)
        page = (PROJECT / "docs" / f"{name}.md").read_text(encoding="utf-8")
        blocks = re.findall(r"```python\n(.*?)```", EXAMPLE.sub("", page), re.DOTALL)
        assert blocks, name
        said += [script(block, tmp_path) for block in blocks]
    assert "violated" in "".join(said)
    assert "holds" in "".join(said)


@pytest.mark.parametrize("page", PAGES, ids=lambda path: str(path.relative_to(PROJECT)))
def test_links_lead_somewhere(page):
    text = page.read_text(encoding="utf-8")
    for target in re.findall(r"\]\(([^)\s]+)\)", text):
        if not target.startswith(("http", "#")):
            assert (page.parent / target.split("#")[0]).exists(), target
    assert "--8<--" not in text  # a page shows its code wherever it is read


def test_every_page_is_in_the_navigation():
    config = (PROJECT / "zensical.toml").read_text(encoding="utf-8")
    for place, prefix in PLACES.items():
        for page in place.rglob("*.md"):
            assert f'"{prefix}{page.relative_to(place).as_posix()}"' in config


def test_pictures_are_small():
    for place in PLACES:
        for picture in (place / "images").iterdir():
            assert picture.stat().st_size < 300_000, picture.name


def test_the_site_builds(tmp_path):
    pytest.importorskip("zensical", reason="zensical is not installed: it comes with the tools of the check")
    for name in ("docs", "examples", "js", "papers", "src", "tools"):
        shutil.copytree(PROJECT / name, tmp_path / name, ignore=shutil.ignore_patterns("__pycache__", "node_modules"))
    shutil.copy(PROJECT / "zensical.toml", tmp_path)
    assert run_python(str(tmp_path / "tools" / "site.py"), folder=tmp_path).returncode == 0
    done = run_python("-W", "default", "-m", "zensical", "build", "--clean", folder=tmp_path)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "No issues found" in done.stdout + done.stderr
    start = (tmp_path / "site" / "index.html").read_text(encoding="utf-8")
    assert "Two commands" in start
    assert "epsilon_for" in start  # the example is in the page
    for name in ("try.js", "metricdp.js", "porto.json", "porto_100.mdp"):
        assert (tmp_path / "site" / "assets" / "try" / name).stat().st_size > 1000
    assert "../assets/try/try.js" in (tmp_path / "site" / "try" / "index.html").read_text(encoding="utf-8")
    assert "road_network" in (tmp_path / "site" / "api" / "index.html").read_text(encoding="utf-8")
