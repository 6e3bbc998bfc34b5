"""The examples of the page about engines; those of Spark and Ray run in their own tests, where the engine is up."""

from __future__ import annotations

from pathlib import Path

import pytest

from scripts import script

EXAMPLES = Path(__file__).parents[3] / "examples" / "engines"
PAGE = Path(__file__).parents[3] / "docs" / "how-to" / "engines.md"
ELSEWHERE = {"spark_frame", "ray_dataset"}


@pytest.mark.parametrize("name", sorted({path.stem for path in EXAMPLES.glob("*.py")} - ELSEWHERE))
def test_examples_run(name: str, tmp_path: Path) -> None:
    assert script(EXAMPLES / f"{name}.py", tmp_path).strip()


def test_every_example_is_on_the_page() -> None:
    text = PAGE.read_text(encoding="utf-8")
    for path in EXAMPLES.glob("*.py"):
        assert f"examples/engines/{path.name}" in text
