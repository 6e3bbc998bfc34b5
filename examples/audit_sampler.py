"""Audit a black box from its reports: noise that claims epsilon 1 and leaks 1.5, and a careful one."""

import numpy as np

import metricdp as mdp

rng = np.random.default_rng(0)


def hasty(x, count):
    """Laplace noise of the wrong scale, rounded to a public lattice."""
    return np.round(x + rng.laplace(scale=1 / 1.5, size=count), 6)


careful = mdp.laplace(mdp.Lp(1), 1.0, dimension=1)


def right(x, count):
    """Draw from a mechanism of ours."""
    return careful.sample(np.full((count, 1), x))


for draw in (hasty, right):
    report = mdp.audit_sampler(draw, secrets=[0.0, 1.0, 2.0], metric=mdp.Lp(1), epsilon=1.0, draws=20_000)
    print(report.verdict, f"after {report.draws} draws, at least epsilon {report.epsilon:.2f}")
    print(report.witness or report.power, *report.findings)
