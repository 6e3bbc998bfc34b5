"""No canary comes out of a failing run: not in errors or those behind them, output, logs, warnings or files."""

from __future__ import annotations

from pathlib import Path

import pytest

from canaries import RUNNERS, cases, fits, found, in_files, mechanisms, run, temporary_files_in

SLOW = ("local", "spark", "ray", "spark frame", "ray data")  # benchmarks/canaries.py runs them all


@pytest.mark.parametrize("runner", [runner for runner in RUNNERS if runner not in SLOW])
def test_no_canary_comes_out(
    runner: str, tmp_path: Path, capfd: pytest.CaptureFixture[str], caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(0)
    mechanisms()
    for number, case in enumerate(cases(1)):
        if not fits(runner, case):
            continue
        inputs, out = tmp_path / f"in{number}", tmp_path / f"out{number}"
        with temporary_files_in(out / "temporary"):
            text = run(runner, case, inputs, out)
        text += "".join(capfd.readouterr()) + caplog.text
        assert len(text) > 40
        assert found(text, case.needles) == [], case.name
        assert in_files(out, case) == [], case.name


def test_a_worker_of_a_job_says_no_more(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    case = cases(2)[5]
    with temporary_files_in(tmp_path / "out"):
        text = run("local", case, tmp_path / "in", tmp_path / "out")
    assert "row 1" in text
    assert found(text + "".join(capfd.readouterr()), case.needles) == []
    assert in_files(tmp_path / "out", case) == []
    assert in_files(tmp_path / "in", case)  # the search finds them where they are
