"""Bad input gets a sentence that says what was expected, what came and what to do."""

import subprocess
import sys
from types import SimpleNamespace

import numpy as np
import pytest

import metricdp as mdp
from brute import grid
from metricdp.errors import InvalidInput, MetricdpError, OutOfDomain
from metricdp.mechanisms import Certificate


def space():
    return mdp.FiniteSpace(grid(3), mdp.Lp(2))


def distribution():
    return mdp.exponential(space(), 1.0)


def matrix_mechanism(matrix):
    promise = mdp.Guarantee(1.0, mdp.Lp(2))
    return mdp.mechanisms.MatrixMechanism(
        space(), space(), matrix, promise, Certificate(loss=0.0, lower_bound=0.0, method="test", epsilon=1.0)
    )


CALLS = {
    "NaN point": (lambda: mdp.FiniteSpace([[0, 1], [np.nan, 2]], mdp.Lp(2)), "nan at position (1, 0)"),
    "infinite point": (lambda: mdp.FiniteSpace([[0, 1], [np.inf, 2]], mdp.Lp(2)), "Remove or repair"),
    "no points": (lambda: mdp.FiniteSpace(np.zeros((0, 2)), mdp.Lp(2)), "at least one point"),
    "ragged points": (lambda: mdp.FiniteSpace([[1, 2], [3]], mdp.Lp(2)), "points"),
    "mixed points": (lambda: mdp.FiniteSpace([["a", 2.0], [None, 1]], mdp.Lp(2)), "must be numbers"),
    "duplicate points": (lambda: mdp.FiniteSpace([[1, 2], [1, 2]], mdp.Lp(2)), "rows 0 and 1"),
    "no metric": (lambda: mdp.FiniteSpace(grid(3), "l2"), "such as mdp.Lp(2)"),
    "metric class": (lambda: mdp.FiniteSpace(grid(3), mdp.Haversine), "metric"),
    "negative epsilon": (lambda: mdp.exponential(space(), -1.0), "`epsilon` must be a positive finite number, got -1"),
    "zero epsilon": (lambda: mdp.tight_constraints(space(), 0), "got 0"),
    "NaN epsilon": (lambda: mdp.truncated_exponential(space(), np.nan), "got nan"),
    "text epsilon": (lambda: mdp.madlib(space(), "high"), "got 'high'"),
    "negative claim": (lambda: mdp.audit(distribution(), epsilon=-1.0), "epsilon"),
    "prior sum": (lambda: mdp.Problem(space(), 1.0, prior=np.full(9, 0.2)), "summing to 1.8. Divide it by its sum"),
    "prior shape": (
        lambda: mdp.Problem(space(), 1.0, prior=np.full(8, 1 / 8)),
        "`prior` must be 9 non-negative numbers summing to 1, got shape (8,)",
    ),
    "prior sign": (lambda: mdp.Problem(space(), 1.0, prior=[2, -1, 0, 0, 0, 0, 0, 0, 0]), "minimum -1"),
    "prior NaN": (lambda: mdp.expected_loss(distribution(), prior=[np.nan] * 9), "`prior` must be finite"),
    "loss shape": (lambda: mdp.Problem(space(), 1.0, loss=np.zeros((9, 8))), "shape 9 x 9, got shape (9, 8)"),
    "loss NaN": (lambda: mdp.Problem(space(), 1.0, loss=np.full((9, 9), np.nan)), "finite"),
    "radius": (lambda: mdp.Problem(space(), 1.0, radius=-2), "`radius` must be a positive"),
    "inputs": (lambda: mdp.Problem(grid(3), 1.0), "`inputs` must be a FiniteSpace, got ndarray"),
    "outputs": (lambda: mdp.Problem(space(), 1.0, outputs=grid(3)), "`outputs` must be a FiniteSpace"),
    "weights": (lambda: mdp.weighted_exponential(space(), 1.0, weights=[1, 2]), "9 positive numbers"),
    "zero weight": (lambda: mdp.weighted_exponential(space(), 1.0, weights=np.zeros(9)), "positive"),
    "budget": (lambda: mdp.exponential(space(), 1.0, budget="all"), "'certified' or 'half', got 'all'"),
    "beta": (lambda: mdp.truncated_exponential(space(), 1.0, beta=1.5), "between 0 and 1, got 1.5"),
    "non-metric matrix": (lambda: mdp.Precomputed([[0, 1, 5], [1, 0, 1], [5, 1, 0]]), "shortest paths first"),
    "asymmetric matrix": (lambda: mdp.Precomputed([[0, 1], [3, 0]]), "np.maximum(d, d.T)"),
    "matrix sum": (lambda: matrix_mechanism(np.full((9, 9), 0.5)), "rows that sum to 1, got 4.5 in row 0"),
    "matrix sign": (lambda: matrix_mechanism(2 * np.eye(9) - 1 / 9), "row 0, column 1"),
    "matrix shape": (lambda: matrix_mechanism(np.eye(8)), "9 x 9 (inputs x outputs)"),
    "matrix NaN": (lambda: mdp.audit(np.full((2, 2), np.nan), distances=np.zeros((2, 2))), "finite"),
    "empty matrix": (lambda: mdp.audit(np.zeros((0, 0)), distances=np.zeros((0, 0))), "at least one row"),
    "vector for a matrix": (lambda: mdp.audit([0.5, 0.5], distances=[[0]]), "must be a matrix"),
    "secret code": (lambda: distribution().sample([9]), "codes from 0 to 8; at position 0 there is none"),
    "negative code": (lambda: distribution().sample([0, -1]), "at position 1 there is none"),
    "fractional code": (lambda: distribution().sample([0.5]), "whole numbers from 0 to 8"),
    "text code": (lambda: distribution().sample(["a"]), "whole numbers"),
    "NaN code": (lambda: distribution().sample([np.nan]), "whole numbers"),
    "generator": (lambda: distribution().sample([0], rng=7), "numpy Generator"),
    "NaN secret": (lambda: mdp.laplace(mdp.Lp(2), 1.0).sample([[0, np.nan]]), "finite"),
    "secret columns": (lambda: mdp.laplace(mdp.Lp(2), 1.0).sample([[0, 1, 2]]), "2 columns"),
    "text secret": (lambda: mdp.laplace(mdp.Lp(2), 1.0).sample([["a", "b"]]), "numbers"),
    "exchanged degrees": (lambda: mdp.laplace(mdp.Haversine(), 1.0).sample([[103.8, 1.35]]), "exchanged?"),
    "pitch": (lambda: mdp.laplace(mdp.Lp(2), 1.0, pitch=0), "`pitch` must be a positive"),
    "quantile": (lambda: mdp.auditing.quantile_loss(distribution(), 1.5), "(0, 1]"),
    "madlib metric": (lambda: mdp.madlib(mdp.FiniteSpace(["a", "b"], mdp.Levenshtein()), 1.0), "word vectors"),
    "value columns": (lambda: space().encode([[1.0, 2.0, 3.0]]), "2 columns"),
    "value NaN": (lambda: space().encode([[1.0, np.nan]]), "finite"),
}


@pytest.mark.parametrize("name", CALLS)
def test_a_clear_error(name):
    call, part = CALLS[name]
    with pytest.raises(MetricdpError) as caught:
        call()
    assert isinstance(caught.value, InvalidInput)
    assert part in str(caught.value)
    assert len(str(caught.value)) < 400


def test_out_of_domain_names_the_row():
    with pytest.raises(OutOfDomain, match=r"row 1 is not a secret of this space: secrets are its 9 points"):
        space().encode([[0, 0], [9, 9]])


def test_every_public_name_is_there():
    for name in mdp.__all__:
        assert hasattr(mdp, name)


def test_import_is_quick():
    # Processor time: on a quiet machine it is the wall time, on a busy one the wall time measures the neighbours.
    code = "import time; t = time.process_time(); import metricdp; print(time.process_time() - t)"
    runs = [subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True) for _ in range(3)]
    assert min(float(run.stdout) for run in runs) < 0.5


def tensor(values, *, requires_grad=False, device="cpu", dtype="torch.float32"):
    """A stand-in for a tensor of PyTorch, which is not installed for the tests; it refuses numpy as PyTorch does."""

    def read(self, dtype=None, copy=None):
        if self.requires_grad:
            raise RuntimeError("Can't call numpy() on Tensor that requires grad.")
        if self.device.type != "cpu" or self.dtype == "torch.bfloat16":
            raise TypeError("cannot be converted")
        return np.asarray(values, dtype=dtype)

    def widen(self):
        return tensor(values, requires_grad=requires_grad, device=device)

    made = type("Tensor", (), {"__module__": "torch", "__array__": read, "float": widen})()
    made.requires_grad, made.device, made.dtype = requires_grad, SimpleNamespace(type=device), dtype
    return made


def test_tensors_are_read_or_refused_with_what_to_do():
    noise, secrets = mdp.laplace(mdp.Lp(2), 1.0), [[1.0, 2.0], [3.0, 4.0]]
    expected = noise.sample(np.array(secrets), rng=np.random.default_rng(1))
    for dtype in ("torch.float32", "torch.bfloat16"):
        drawn = noise.sample(tensor(secrets, dtype=dtype), rng=np.random.default_rng(1))
        np.testing.assert_array_equal(drawn, expected)
        rows = noise.sample([tensor(row, dtype=dtype) for row in secrets], rng=np.random.default_rng(1))
        np.testing.assert_array_equal(rows, expected)
    for given, advice in (({"requires_grad": True}, "detach"), ({"device": "cuda"}, "cpu")):
        for use in (noise.sample, lambda value: mdp.FiniteSpace(value, mdp.Lp(2))):
            with pytest.raises(mdp.MetricdpError, match=advice):
                use(tensor(secrets, **given))
            with pytest.raises(mdp.MetricdpError, match=advice):
                use([tensor(row, **given) for row in secrets])
