"""A builder of one's own: the exponential mechanism mixed with the uniform distribution."""

import time

import numpy as np

import metricdp as mdp
from metricdp.design import BUILDERS, Builder, certify


def mixed(problem: mdp.Problem, *, strength: float = 0.5) -> mdp.mechanisms.MatrixMechanism:
    """Build strength * exponential + (1 - strength) * uniform: mixing never leaks more than either part."""
    started = time.perf_counter()
    sharp = mdp.exponential(problem.inputs, problem.epsilon).matrix
    matrix = strength * sharp + (1 - strength) * np.full(sharp.shape, 1 / sharp.shape[1])
    return certify(problem, matrix, method=f"mixed, strength {strength:g}", started=started)


BUILDERS.declare(
    Builder(
        "mixed",
        mixed,
        "the exponential mechanism mixed with the uniform distribution",
        options=("prior",),
        own={"strength": float},
    )
)

if __name__ == "__main__":
    print(mdp.mixed(mdp.Problem(mdp.grid((3, 3)), 1.0), strength=0.9).certificate.loss)
