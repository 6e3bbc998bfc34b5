"""The page docs/try.md in real headless Chromium: its script draws from its own files, and asks nobody else."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from pathlib import Path

import pytest

import browsers
import metricdp as mdp

PROJECT = Path(__file__).parents[2]
ASSETS = PROJECT / "docs" / "assets" / "try"


def test_the_page_draws_in_chromium(tmp_path: Path) -> None:
    """The element and the script of the page as they stand there, at the address that the site gives them."""
    program = browsers.chromium()
    if program is None:
        pytest.skip("Chromium is not installed")
    page = (PROJECT / "docs" / "try.md").read_text(encoding="utf-8")
    parts = re.findall(r"^<(?:div|script).*>$", page, re.MULTILINE)
    assert len(parts) == 2
    shutil.copytree(ASSETS, tmp_path / "assets" / "try")
    shutil.copy(PROJECT / "js" / "dist" / "metricdp.js", tmp_path / "assets" / "try")
    (tmp_path / "try").mkdir()
    policy = "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'self'; style-src 'unsafe-inline'\">"
    text = f"<!doctype html><meta charset='utf-8'>{policy}{''.join(parts)}"
    (tmp_path / "try" / "index.html").write_text(text, encoding="utf-8")
    with browsers.serving(tmp_path) as address:
        options = [*browsers.CHROMIUM_OPTIONS, f"--user-data-dir={tmp_path / 'profile'}", "--virtual-time-budget=20000"]
        done = subprocess.run(
            [program, *options, "--dump-dom", f"{address}/try/"],
            capture_output=True,
            text=True,
            timeout=120,
            check=True,
        )
    assert "data-failed" not in done.stdout, done.stdout[:1000]
    (found,) = re.findall(r'data-drawn="([^"]*)"', done.stdout)
    drawn = json.loads(found.replace("&quot;", '"'))
    assert drawn["reports"] == 200
    assert 5 < drawn["different"] <= 100
    assert done.stdout.count('fill="#0b7a6f"') == drawn["different"]
    assert "200 reports fell on" in done.stdout


@pytest.mark.parametrize("metres", [100, 300])
def test_its_files_hold_what_the_page_says(metres: int) -> None:
    mechanism = mdp.load(ASSETS / f"porto_{metres}.mdp")
    places = json.loads((ASSETS / "porto.json").read_text(encoding="utf-8"))["places"]
    assert mechanism.guarantee.epsilon == pytest.approx(mdp.epsilon_for(2, metres / 1000))
    assert mdp.audit(mechanism).verdict == "holds"
    assert mechanism.inputs.coordinates.round(6).tolist() == places
