"""Published draws of noise and of kernels (tests/data): words in, reports out, for every language the same."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np

import metricdp as mdp
from metricdp.mechanisms import BagLaplace, HyperbolicLaplace, OutlineLaplace
from metricdp.mechanisms.kinds.hyperbolic import ball_points
from metricdp.mechanisms.noise.distributions import draw_cells

DATA = Path(__file__).parent / "data"
NOISE: list[dict[str, Any]] = json.loads((DATA / "noise.json").read_text(encoding="utf-8"))["laws"]
KERNELS: list[dict[str, Any]] = json.loads((DATA / "kernels.json").read_text(encoding="utf-8"))["kernels"]


class Listed:
    """The words of one row: by attempt, uniform and number."""

    def __init__(self, words: list[list[list[str]]]) -> None:
        self._words, self.width = words, len(words[0])

    def first(self, attempt: int, start: int, stop: int) -> np.ndarray[Any, Any]:
        return np.array([[int(uniform[0], 16) for uniform in self._words[attempt]]], dtype=np.uint64)

    def digits(self, row: int) -> Any:
        return lambda attempt, uniform, count: int("".join(self._words[attempt][uniform][:count]), 16)


def noise_of(distribution: dict[str, Any]) -> Any:
    """Return the noise that an entry describes; without a pitch, on the lattice that is usual."""
    given = {"dimension": distribution["dimension"], "pitch": distribution.get("pitch")}
    if "sigma" in distribution:
        return mdp.gaussian(_metric(distribution), sigma=distribution["sigma"], **given)
    epsilon = distribution["epsilon"]
    if "projection" in distribution:
        return mdp.laplace(mdp.Lp(2), epsilon, projection=distribution["projection"], pitch=given["pitch"])
    if distribution["metric"] == "fisher":
        return mdp.von_mises_fisher(mdp.Lp(2), epsilon, normalise=True, **given)
    if distribution["metric"] == "angular":
        return mdp.laplace(mdp.Angular(distribution["unit"]), epsilon, normalise=True, **given)
    if "of" in distribution:  # rows of vectors of so many coordinates
        rows = {"bags": mdp.metrics.Bags, "frechet": mdp.Frechet}[distribution["rows"]]
        return mdp.laplace(rows(_metric(distribution), distribution["of"]), epsilon, **given)
    return mdp.laplace(_metric(distribution), epsilon, **given)


def report_of(mechanism: Any, secret: list[float], words: Any, *, exactly: bool = False) -> list[float]:
    """Return what is reported of a secret with these words; those of a bag come vector by vector."""
    part = getattr(mechanism, "part", None)
    if isinstance(mechanism, BagLaplace):
        size = part.inputs.dimension
        vectors = [secret[at : at + size] for at in range(0, len(secret), size)]
        pairs = zip(vectors, words, strict=True)
        return [x for report in sorted(report_of(part, *pair, exactly=exactly) for pair in pairs) for x in report]
    if isinstance(mechanism, OutlineLaplace):
        return report_of(part, mechanism.outline([secret])[0].tolist(), words, exactly=exactly)
    distribution, row, listed = mechanism.distribution, np.array([secret]), Listed(words)
    cells = (
        np.array([distribution.exactly(row[0], listed.digits(0))], float)
        if exactly
        else draw_cells(row, distribution, listed)
    )
    places = mechanism.lattice.values(cells)
    return (ball_points(places) if isinstance(mechanism, HyperbolicLaplace) else places)[0].tolist()


def kernel_of(entry: dict[str, Any]) -> mdp.mechanisms.KernelMechanism:
    """Return the kernel that an entry describes; 2 a is promised, which every kernel of rate a keeps."""
    space = mdp.FiniteSpace(np.array(entry["points"]), _metric(entry))
    logs = None if entry["log_weights"] is None else np.array(entry["log_weights"])
    cap = np.inf if entry["cap"] is None else entry["cap"]
    apart = np.minimum(space.distances, cap)
    powers = -entry["inner"] * apart + (0.0 if logs is None else logs)
    totals = np.log(np.exp(powers).sum(axis=1))
    promise = mdp.Guarantee(2.0 * entry["inner"], space.metric, basis="certificate")
    proof = mdp.Certificate(loss=0.0, lower_bound=0.0, method="published", epsilon=2.0 * entry["inner"])
    return mdp.mechanisms.KernelMechanism(space, entry["inner"], logs, cap, totals, promise, proof)


def _metric(entry: dict[str, Any]) -> Any:
    name = entry["metric"]
    if name == "mahalanobis" or "covariance" in entry:
        return mdp.Mahalanobis(entry["covariance"])
    if name in ("angular", "haversine"):
        return {"angular": mdp.Angular, "haversine": mdp.Haversine}[name](entry["unit"])
    others = {"hyperbolic": mdp.Hyperbolic, "levenshtein": mdp.Levenshtein, "hamming": mdp.Hamming}
    return others[name]() if name in others else mdp.Lp(float(name[1:]))
