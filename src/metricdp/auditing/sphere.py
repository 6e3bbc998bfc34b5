"""How far reports of Laplace noise on the Earth lie from the truth: quantiles of the angle between them."""

from __future__ import annotations

import numpy as np


def sphere_quantile(rate: float, level: float) -> float:
    """Return the angle t with F(t) = level, F(t) = (1 - e^(-rate t) (rate sin t + cos t)) / (1 + e^(-pi rate)).

    That is the law of the angle between secret and report under the density e^(-rate t) sin t on [0, pi].
    """
    from scipy.optimize import brentq

    beyond = (1.0 - level) * (1.0 + np.exp(-np.pi * rate))

    def excess(t: float) -> float:
        # what is left beyond t: e^(-rate t) (rate sin t + cos t) + e^(-pi rate)
        return float(np.exp(-rate * t) * (rate * np.sin(t) + np.cos(t)) + np.exp(-np.pi * rate) - beyond)

    top = min(np.pi, (60.0 - 2.0 * np.log(1.0 - level)) / rate)  # e^-60 is left beyond
    return float(brentq(excess, 0.0, top, xtol=1e-16 * top, rtol=1e-14)) * (1.0 + 1e-12)
