"""The researcher: compares mechanisms on a messy file of points, is interrupted, goes on, and opens the page.

Every line that is printed on the way was read as that person; the tests hold on to the ones that matter.
"""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from browsers import CHROMIUM_OPTIONS, chromium
from metricdp.places import bundled_trips
from scripts import main

pytest.importorskip("matplotlib")

SLOW = '''
"""A builder of one's own, which takes its time until a file called go is there."""
import time
from pathlib import Path
from metricdp.design import BUILDERS, Builder
from metricdp.design.exponential import exponential

def patient(space, epsilon, *, prior=None):
    if not Path("go").exists():
        print("waiting", flush=True)
        time.sleep(120)
    return exponential(space, epsilon, prior=prior, budget="half")

BUILDERS.declare(Builder("patient", patient, "half of the budget, slowly", "space", ("prior",)))
'''


@pytest.fixture
def desk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Points of simulated trips as people keep them: other columns, one place twice, Windows line ends, a BOM."""
    monkeypatch.chdir(tmp_path)
    rows = bundled_trips(trips=3, seed=7).slice(0, 14).to_pylist()
    lines = ["id,Latitude,Longitude,note"]
    lines += [f'{number},{row["lat"]:.4f},{row["lon"]:.4f},"a, b"' for number, row in enumerate(rows)]
    lines.append(lines[1].replace("0,", "99,", 1))  # the same place again
    Path("my points.csv").write_bytes("\r\n".join(["\ufeff" + lines[0], *lines[1:], ""]).encode())
    Path("patient.py").write_text(SLOW)
    return tmp_path


COMMAND = [
    *("compare", "--points", "my points.csv", "--epsilon", "5/km,10/km", "--objective", "expected,worst"),
    *("--builders", "exponential,laplace,optimal,patient,product", "--gap", "0.05", "--draws", "2000"),
    *("-o", "study.html", "-o", "study.png", "--plugin", "patient.py"),
]


def test_a_comparison_is_interrupted_goes_on_and_becomes_a_page(desk: Path, capsys: pytest.CaptureFixture[str]) -> None:
    # A first try without a unit: the answer says how to write it.
    assert main(["compare", "--points", "my points.csv", "--epsilon", "5", "-o", "study.html"]) == 2
    said = capsys.readouterr()
    assert "epsilon 5 has no unit" in said.err
    assert "10/km" in said.err
    assert not said.out
    # A name with a typing error.
    assert main([*COMMAND[:5], "--builders", "optmal", "-o", "study.html"]) == 2
    assert "optimal" in capsys.readouterr().err

    # The real one takes long, and is stopped with Ctrl-C.
    start = "import sys; from metricdp.cli import main; sys.exit(main(sys.argv[1:]))"
    process = subprocess.Popen(
        [sys.executable, "-c", start, *COMMAND], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        env=os.environ,
    )  # fmt: skip
    assert process.stdout is not None
    assert process.stdout.readline() == "waiting\n"
    process.send_signal(signal.SIGINT)
    _, complaint = process.communicate(timeout=60)
    assert process.returncode == 130
    assert complaint.strip().endswith(
        "interrupted: 3 figures are done and kept in study.html.unfinished; the same command again goes on from there"
    )
    assert not Path("study.html").exists()

    # The same command again.
    Path("go").touch()
    assert main(COMMAND) == 0
    out, err = capsys.readouterr()
    assert "14 points" in out or "13 points" in out
    assert "Continued: 3 figures were there from an earlier run." in out
    assert "Expected loss: the distance from the truth to the report, in km." in out
    assert "Worst loss of any secret" in out
    assert "± is half of an interval that holds the loss with 95 %: it was measured on draws." in out
    assert "Left out: product: it joins several mechanisms" in err
    assert "Traceback" not in out + err
    assert "Written: study.html, study.png, study.csv." in out
    first = next(line for line in out.splitlines() if line.startswith("optimal"))
    assert re.match(r"optimal +5 +\d+ m +\d+ m +[\d.]+ % +", first), first
    assert not Path("study.html.unfinished").exists()

    # A second run would replace results: it has to be asked for.
    assert main(COMMAND) == 2
    assert "--overwrite" in capsys.readouterr().err

    # The page: it opens, fits a phone, and needs no network.
    page = Path("study.html").read_text(encoding="utf-8")
    assert "http" not in page
    assert "Not compared, and why" in page
    if chromium() is None:
        return
    Path("frame.html").write_text(
        '<iframe src="study.html" style="width:360px;height:600px;border:0"></iframe><script>onload = () => {'
        'const page = document.querySelector("iframe").contentDocument; document.title = JSON.stringify('
        '[page.documentElement.scrollWidth <= 360, page.querySelectorAll(".bar").length]); };</script>'
    )
    options = [*CHROMIUM_OPTIONS, "--allow-file-access-from-files", f"--user-data-dir={desk / 'profile'}", "--dump-dom"]
    done = subprocess.run(
        [str(chromium()), *options, f"file://{desk}/frame.html"],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    found = re.search(r"<title>(.*?)</title>", done.stdout)
    assert found is not None
    assert json.loads(found[1]) == [True, 2 * 2 * 4]


def test_the_numbers_are_those_of_the_mechanisms(desk: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """What the researcher would check by hand: the loss of the exponential mechanism, from its matrix."""
    import metricdp as mdp

    assert main([*COMMAND[:5], "--builders", "exponential", "-o", "study.json"]) == 0
    capsys.readouterr()
    rows = json.loads(Path("study.json").read_text())["rows"]
    lines = Path("my points.csv").read_text(encoding="utf-8-sig").split("\n")[1:15]
    points = np.unique(np.array([[float(cell) for cell in line.split(",")[1:3]] for line in lines]), axis=0)
    for row in rows:
        mechanism = mdp.exponential(mdp.FiniteSpace(points, mdp.Haversine()), row["epsilon"])
        distribution = mechanism.matrix / mechanism.matrix.sum(axis=1, keepdims=True)
        a, b = np.radians(points[:, None]), np.radians(points[None])
        half = np.sin((a - b)[..., 0] / 2) ** 2
        half += np.cos(a[..., 0]) * np.cos(b[..., 0]) * np.sin((a - b)[..., 1] / 2) ** 2
        apart = 2 * 6371.009 * np.arcsin(np.sqrt(half))
        assert row["loss"] == pytest.approx((distribution * apart).sum(axis=1).mean(), rel=1e-6)
