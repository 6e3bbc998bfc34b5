"""The studies give the rows that were written down, and golden rows that do not hold are seen."""

from __future__ import annotations

from pathlib import Path

import pytest

import golden

FILES = sorted(golden.FOLDER.glob("*.csv"))


@pytest.fixture
def bundled(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Only the data that comes with the package, as on a stranger's machine."""
    monkeypatch.setenv("METRICDP_DATA", str(tmp_path))


@pytest.mark.usefixtures("bundled")
@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_a_study_gives_its_golden_rows(path: Path) -> None:
    assert golden.check(path) == []


def test_golden_rows_notice_what_has_moved() -> None:
    rows = [
        {"method": "EM", "epsilon": 1.0, "measure": "loss", "corrected": 0.5, "note": "x"},
        {"method": "LP", "epsilon": 1.0, "measure": "loss", "corrected": None},
    ]
    row = {"method": "EM", "epsilon": "1", "measure": "loss"}
    assert golden.differences([{**row, "corrected": "0.5"}], rows) == []
    assert golden.differences([{**row, "corrected": "0.4..0.6", "note": "y", "bound": ""}], rows) == []
    for text in ("0.500001", "0.51..0.6", "half"):
        (said,) = golden.differences([{**row, "corrected": text}], rows)
        assert "corrected" in said
    assert golden.differences([{**row, "method": "LP", "corrected": "0.5"}], rows)
    assert golden.differences([{**row, "corrected": "inf"}], rows)
    endless = [{"method": "EM", "corrected": float("inf")}]
    assert golden.differences([{"method": "EM", "corrected": "inf"}], endless) == []
    assert golden.differences([{"method": "EM", "corrected": "0.5"}], endless)
    assert golden.differences([{**row, "method": "AIPO", "corrected": "0.5"}], rows)
    assert golden.differences([{"measure": "loss", "corrected": "0.5"}], rows)  # two rows are about that
