"""The bound of a concentrated promise that benchmarks/concentrated.py holds losses against, by closed forms."""

import math
import runpy
from pathlib import Path

import numpy as np
import pytest
from scipy.optimize import brentq

BENCHMARKS = Path(__file__).resolve().parents[2] / "benchmarks"


@pytest.fixture(scope="module")
def study():
    with pytest.MonkeyPatch.context() as patched:
        patched.syspath_prepend(str(BENCHMARKS))
        return runpy.run_path(str(BENCHMARKS / "concentrated.py"))


@pytest.mark.parametrize("rho", [0.02, 0.3, 1.5])
def test_of_two_secrets_the_bound_is_the_best_coin(study, rho):
    """By symmetry the best is to tell the truth but for a chance p; order 2 asks for the larger p of the two."""

    def first(p):
        return (1 - 2 * p) * math.log((1 - p) / p) - rho

    def second(p):
        return math.log((1 - p) ** 2 / p + p**2 / (1 - p)) - 2 * rho

    p = max(brentq(one, 1e-9, 0.5 - 1e-12) for one in (first, second))
    apart = np.array([[0.0, 1.0], [1.0, 0.0]])
    found, best = study["least_loss"](apart, apart, rho)
    assert float((best * apart).sum() / 2) == pytest.approx(p, rel=1e-5)
    assert found == pytest.approx(p, rel=1e-5)
    assert found <= p * (1 + 1e-9)


def test_no_mechanism_that_keeps_all_orders_is_below_it_and_every_verdict_is_that_of_brute_force(study):
    for seed in range(5000, 5003):
        found = study["one_space"](seed) | study["best_of_space"](seed)
        for name, one in found.items():
            if isinstance(one, dict):
                assert one["holds"], (seed, name)
                assert one["refuted"], (seed, name)
                assert one["above"] >= -1e-9, (seed, name)
                assert abs(one["missed"]) < 1e-2


def test_the_delta_of_laplace_noise_in_the_plane_is_that_of_draws(study):
    rng, rate = np.random.default_rng(0), 10.0
    size, turn = rng.gamma(2, 1 / rate, 200_000), rng.uniform(0, 2 * np.pi, 200_000)
    place = np.stack([size * np.cos(turn), size * np.sin(turn)], axis=1)
    for epsilon, apart in ((0.0, 0.1), (0.5, 0.1), (1.0, 0.3)):
        logs = rate * (np.linalg.norm(place - [apart, 0.0], axis=1) - size)
        gain = np.maximum(1 - np.exp(epsilon - logs), 0.0)
        found = study["laplace_delta"](epsilon, apart, rate)
        assert abs(gain.mean() - found) < 5 * gain.std() / math.sqrt(len(gain))
    assert study["laplace_delta"](1.0, 0.1, rate) == 0.0  # up to epsilon / rate its promise is pure
