"""What newcomers read: the README's Python and every example run, links lead somewhere, the site builds."""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

PROJECT = Path(__file__).parents[1]
EXAMPLES = sorted((PROJECT / "examples").glob("*.py"))
PAGES = [PROJECT / "README.md", *sorted((PROJECT / "docs").rglob("*.md"))]


def run_python(*arguments, folder):
    environment = {**os.environ, "PYTHONWARNINGS": "error"}
    return subprocess.run(
        [sys.executable, *arguments], cwd=folder, env=environment, capture_output=True, text=True, timeout=120
    )


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda path: path.stem)
def test_examples_run(example, tmp_path):
    done = run_python(str(example), folder=tmp_path)
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip()


def test_readme_python_runs(tmp_path):
    blocks = re.findall(r"```python\n(.*?)```", (PROJECT / "README.md").read_text(encoding="utf-8"), re.DOTALL)
    assert len(blocks) == 1
    assert len([line for line in blocks[0].splitlines() if line.strip()]) <= 10
    done = run_python("-c", blocks[0], folder=tmp_path)
    assert done.returncode == 0, done.stderr
    assert "holds" in done.stdout


def test_the_python_of_the_trajectory_page_runs(tmp_path):
    (block,) = re.findall(
        r"```python\n(.*?)```", (PROJECT / "docs" / "contextual.md").read_text(encoding="utf-8"), re.DOTALL
    )
    before = """
import pyarrow.parquet, numpy
from metricdp.experiments._cities import simulated_city
from metricdp.places import bundled_trips
pyarrow.parquet.write_table(bundled_trips(trips=40), "points.parquet")
city = simulated_city(places=5, trips=40)
places, allowed, detours = city.places, city.allowed, city.detours
from metricdp.mobility import histories_of
domain = histories_of(allowed, 2)
sizes = 1 + domain[:, 0] % 2
now, before, earlier = domain[3]
"""
    after = "print(mdp.audit(mechanism), len(report))"
    done = run_python("-c", before + block + after, folder=tmp_path)
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("holds")


@pytest.mark.parametrize("page", PAGES, ids=lambda path: str(path.relative_to(PROJECT)))
def test_links_lead_somewhere(page):
    text = page.read_text(encoding="utf-8")
    for target in re.findall(r"\]\(([^)\s]+)\)", text):
        if not target.startswith(("http", "#")):
            assert (page.parent / target.split("#")[0]).exists(), target
    for snippet in re.findall(r'--8<-- "([^"]+)"', text):
        assert (PROJECT / snippet).is_file(), snippet


def test_every_page_is_in_the_navigation():
    config = (PROJECT / "zensical.toml").read_text(encoding="utf-8")
    for page in (PROJECT / "docs").rglob("*.md"):
        assert f'"{page.relative_to(PROJECT / "docs").as_posix()}"' in config


def test_pictures_are_small():
    for picture in (PROJECT / "docs" / "images").iterdir():
        assert picture.stat().st_size < 300_000, picture.name


def test_the_site_builds(tmp_path):
    pytest.importorskip("zensical", reason="zensical is not installed: it comes with the tools of the check")
    for name in ("docs", "examples", "src"):
        shutil.copytree(PROJECT / name, tmp_path / name, ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copy(PROJECT / "zensical.toml", tmp_path)
    done = run_python("-W", "default", "-m", "zensical", "build", "--clean", folder=tmp_path)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "No issues found" in done.stdout + done.stderr
    start = (tmp_path / "site" / "index.html").read_text(encoding="utf-8")
    assert "Two commands" in start
    assert "epsilon_for" in start  # the example is in the page
    assert "road_network" in (tmp_path / "site" / "api" / "index.html").read_text(encoding="utf-8")
