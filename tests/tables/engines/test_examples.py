"""The examples of the engine pages; those of Spark and Ray run in their own tests, where the engine is up already."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

EXAMPLES = Path(__file__).parents[3] / "examples" / "engines"
PAGES = Path(__file__).parents[3] / "docs" / "engines"
ELSEWHERE = {"spark_frame", "ray_dataset"}


@pytest.mark.parametrize("name", sorted({path.stem for path in EXAMPLES.glob("*.py")} - ELSEWHERE))
def test_examples_run(name: str, tmp_path: Path) -> None:
    environment = {**os.environ, "PYTHONWARNINGS": "error"}
    done = subprocess.run(
        [sys.executable, str(EXAMPLES / f"{name}.py")],
        cwd=tmp_path,
        env=environment,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip()


def test_every_example_is_on_a_page() -> None:
    text = "".join(page.read_text(encoding="utf-8") for page in PAGES.glob("*.md"))
    for path in EXAMPLES.glob("*.py"):
        assert f"examples/engines/{path.name}" in text
