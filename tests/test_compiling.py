"""Where compiled loops are kept: beside the source, else in a folder of one's own, else nowhere."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("numba")
compiling = pytest.importorskip("metricdp.compiling")


@pytest.fixture(autouse=True)
def forgotten(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(compiling.numba.config, "CACHE_DIR", "")
    chosen = compiling.compiled_cache
    chosen.cache_clear()
    yield
    chosen.cache_clear()


def test_a_folder_of_ones_own_is_made_for_its_owner_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setattr(sys, "platform", "linux")
    real = os.access
    package = str(Path(compiling.__file__).parent)
    monkeypatch.setattr(os, "access", lambda path, mode: str(path) != package and real(path, mode))  # read-only
    found = compiling.compiled_cache()
    assert found == tmp_path / "metricdp" / "compiled"
    assert found.stat().st_mode & 0o777 == 0o700
    twice = compiling.njit()(lambda x: x + 1)
    assert twice(1) == 2
    assert list(found.rglob("*.nbi"))
    assert compiling.numba.config.CACHE_DIR == ""  # functions of others go where they went before


def test_a_folder_that_others_can_write_to_is_not_run_from(tmp_path: Path) -> None:
    open_to_all = tmp_path / "open"
    open_to_all.mkdir()
    open_to_all.chmod(0o777)
    assert compiling.private_folder(open_to_all) is None
    (tmp_path / "file").write_text("")
    assert compiling.private_folder(tmp_path / "file") is None
    (tmp_path / "link").symlink_to(open_to_all)
    assert compiling.private_folder(tmp_path / "link") is None
    assert compiling.private_folder(tmp_path / "file" / "below") is None


def test_without_any_folder_it_compiles_all_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(compiling, "compiled_cache", lambda: None)
    heard: list[str] = []
    with compiling.progress.listen(heard.append):
        assert compiling.njit()(lambda x: 2 * x)(21) == 42
    assert heard == [compiling.EVERY_TIME, ""]


def test_compiling_is_said_once_and_the_stage_around_it_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(compiling, "compiled_cache", lambda: tmp_path)
    heard: list[str] = []
    triple = compiling.njit()(lambda x: 3 * x + 0.5)
    with compiling.progress.listen(heard.append), compiling.progress.report_task("solving"):
        triple(2.0)
        triple(3.0)
    assert heard == ["solving", compiling.ONCE, "solving", ""]


def test_a_second_start_compiles_nothing(tmp_path: Path) -> None:
    code = (
        "import numpy as np\nfrom metricdp import progress\nheard = []\n"
        "with progress.listen(heard.append):\n"
        "    from metricdp.solvers.repair.compiled import _max_times\n"
        "    _max_times(np.ones((2, 2)), np.ones((2, 2)), np.ones((2, 2)))\n"
        "print(len(heard))"
    )
    where = {**os.environ, "NUMBA_CACHE_DIR": str(tmp_path)}
    starts = [
        subprocess.run([sys.executable, "-c", code], env=where, capture_output=True, text=True, check=True).stdout
        for _ in range(2)
    ]
    assert starts == ["2\n", "0\n"]
