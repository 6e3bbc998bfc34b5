"""Quantiles, and the sentences about what an estimate is worth."""

from __future__ import annotations

import math

SKEWED = 0.3  # skewness of an estimate beyond which a normal interval rests on too few reports
BLURRED = 0.01  # an effective size below this share of the reports is called small
BOUNDED = (
    "Intervals enclose whatever the secrets are, the price of what the noise cannot distinguish in them, so "
    "that they are usually wider than they need be; masses are the likeliest ones."
)
WITHIN = {
    "anywhere": "Secrets may lie anywhere in their cells: nothing is assumed but that they lie in the grid.",
    "cell": "Assumed: secrets lie anywhere in each cell with equal probability. If not, the intervals may miss.",
    "point": "Assumed: secrets lie at the points of the cells themselves.",
}
WHEREVER = "Secrets may lie anywhere in their cells or outside them all: nothing is assumed about them."
FREE = "Decoding is post-processing: it spends no budget and tells nothing about a person beyond the guarantee."


def error_probability(confidence: float, count: int = 1) -> float:
    """Return the probability with which either end of an interval may be wrong, so that all of `count` hold together.

    Sidak's inequality for Gaussians of any correlation.
    """
    return 0.5 * -math.expm1(math.log(confidence) / count)


def quantile(probability: float) -> float:
    """Return z with Pr[Z > z] = probability."""
    from scipy.special import ndtri

    return float(-ndtri(probability))


def effective_size_note(reports: int, effective: float, condition: float | None) -> str:
    """Return how many secrets without noise the reports are worth, and how much the distribution blurs."""
    share = effective / reports
    shown = f"{effective:,.0f}" if effective >= 10 else f"{effective:.2g}"
    blur = "" if condition is None else f" (condition number of the distribution {condition:.3g})"
    text = f"{reports:,} reports tell as much about the cells as {shown} secrets reported without noise{blur}."
    if share < BLURRED:
        text += " That is little: take larger cells or regions, more reports, or a larger epsilon next time."
    return text


def misfit_note(cells: int) -> str:
    """Say that the reports do not look as if this distribution had made them."""
    return (
        f"{cells} cells lie below 0 by more than chance allows: the reports are not of this mechanism, were altered or "
        "selected, or come from secrets outside the cells."
    )


def skewness_note(cells: int, of: int) -> str:
    """Say where normal intervals rest on few reports."""
    return (
        f"The intervals of {cells:,} of {of:,} cells rest on few reports each: their coverage is approximate there. "
        "Sum over larger regions."
    )


def iteration_note(steps: int, left: float, *, fits: bool) -> str:
    """Say that iterative Bayes was stopped before the likeliest masses, and why."""
    if fits:
        return (
            f"Iterative Bayes ended after {steps:,} steps, where its masses fit the reports as well as the true ones "
            "would on average: further steps fit chance."
        )
    return (
        f"Iterative Bayes was stopped after {steps:,} steps, at most {left:.3g} nats below the largest log-likelihood: "
        "its masses are a little smoother than the likeliest ones."
    )


def elsewhere(share: tuple[float, float, float], confidence: float, wider: str) -> str:
    """Say how many secrets lie outside the cells, and which grid would hold them."""
    mass, lower, upper = (min(max(value, 0.0), 1.0) for value in share)
    text = f"Elsewhere, outside all cells: {mass:.2%} of the secrets, {lower:.2%} to {upper:.2%} ({confidence:.0%})."
    return text + (wider if lower > 0.0 else "")
