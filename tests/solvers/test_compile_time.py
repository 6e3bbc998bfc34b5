"""Compiling counts: a loop that is not compiled yet is used only where compiling it fits into the time that is left."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import metricdp as mdp
from metricdp import deadlines
from metricdp.solvers.repair.closure import upper_closure

pytest.importorskip("numba")
compiling = pytest.importorskip("metricdp.compiling")

CODE = """
import numpy as np, metricdp as mdp
space = mdp.FiniteSpace(np.random.default_rng(2).random((60, 2)), mdp.Lp(2))
made = mdp.optimal(mdp.Problem(space, 3.0), gap=5e-2, seconds=0.4)
assert mdp.audit(made).verdict == "holds"
"""


def test_a_first_run_with_little_time_compiles_nothing(tmp_path: Path) -> None:
    where = {**os.environ, "NUMBA_CACHE_DIR": str(tmp_path)}
    subprocess.run([sys.executable, "-c", CODE], env=where, check=True)
    assert not list(tmp_path.rglob("*.nbi"))


def test_a_loop_is_used_where_it_is_compiled_or_where_time_is_left(monkeypatch: pytest.MonkeyPatch) -> None:
    loop = compiling.numba.njit(lambda x: x + 1)
    assert compiling.fits_deadline(loop)  # without a deadline there is time for all
    with deadlines.time_limit(0.4):
        assert not compiling.fits_deadline(loop)
    with deadlines.time_limit(300.0):
        assert compiling.fits_deadline(loop)
    loop(1)
    with deadlines.time_limit(0.4):
        assert compiling.fits_deadline(loop)


def test_the_closure_is_the_same_without_the_loop(monkeypatch: pytest.MonkeyPatch) -> None:
    matrix = np.random.default_rng(1).random((20, 30))
    places = np.arange(20.0)
    log_ratios = np.abs(places[:, None] - places)
    compiled = upper_closure(matrix, log_ratios)
    monkeypatch.setattr(compiling, "is_compiled", lambda loop: False)
    monkeypatch.setattr("metricdp.solvers.repair.compiled._max_times", None)  # not called
    with deadlines.time_limit(0.4):
        assert np.array_equal(upper_closure(matrix, log_ratios), compiled)


def test_the_first_order_method_gives_way_where_no_time_is_left_to_compile(monkeypatch: pytest.MonkeyPatch) -> None:
    space = mdp.FiniteSpace(np.random.default_rng(2).random((40, 2)), mdp.Lp(2))
    monkeypatch.setattr(compiling, "is_compiled", lambda loop: False)
    made = mdp.optimal(mdp.Problem(space, 3.0), solver=mdp.solvers.FirstOrder(), seconds=1.0)
    assert mdp.audit(made).verdict == "holds"
    assert "limit" in made.certificate.note
