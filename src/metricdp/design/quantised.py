"""Probabilities as whole multiples of 2**-bits, private as they are: small files that any device samples exactly.

Rounding a tight distribution breaks its guarantee where probabilities are small. So a share of a uniform distribution
is mixed in first. Let N = 2**bits, u the reports in use, q = (1 - share) p + share / u and f = exp(epsilon d) for two
secrets. Then f q_j - q_i >= share (f - 1) / u, and rounding by less than one unit each needs (f + 1) / N of that:

    share = u coth(epsilon d_min / 2) / N      always suffices

and far less usually does. The smallest share whose rounded distribution passes is searched for, and the result is
audited exactly.
"""

from __future__ import annotations

import math
import time
from dataclasses import replace
from typing import Any

import numpy as np

from metricdp import constants
from metricdp.arrays import Floats
from metricdp.auditing import audit
from metricdp.auditing.dispatch import verify_claim
from metricdp.auditing.exact import float_leakage, limit_radius
from metricdp.auditing.loss import expected_loss, worst_loss
from metricdp.auditing.report import Claim
from metricdp.design._certify import MARGIN, cap_bound, losses_of
from metricdp.errors import Infeasible, InvalidInput, NotPrivate
from metricdp.mechanisms import MECHANISMS, MatrixMechanism
from metricdp.problems import Problem

FEWEST_BITS, MOST_BITS = constants.FEWEST_BITS, constants.MOST_BITS
AUTOMATIC_BITS = (16, 32, 48)
LITTLE, MOST = 0.01, 0.1  # the largest share mixed in when bits are chosen here, and when the caller chose them
SEARCH_STEPS = 10


def quantised(mechanism: Any, /, *, bits: int | None = None, problem: Problem | None = None) -> Any:
    """Return the mechanism with every probability a whole multiple of 2**-bits, re-certified at the same guarantee.

    Without `bits`, the fewest of 16, 32 and 48 that ask for mixing in at most 1 % of a uniform distribution. The loss
    is computed again where it is known how it is counted: by the mechanism's loss basis, or by `problem`, which must
    ask for the guarantee of the mechanism. Elsewhere (interpolated, or read from a file) the certificate keeps the loss
    of the distribution before, and its note bounds how much of the distribution was moved. The bound stays with the
    loss it belongs to: for a `problem` that the mechanism was not made for, no proof is at hand and the bound is the
    trivial one.

    A `LocalMechanism` has weights instead: they are rounded to 16-bit logarithmic codes, for which its file takes four
    bytes a near report instead of six. That takes the extra `fast`.

    Guarantee: that of the mechanism, audited exactly for the rounded distribution; `Infeasible` where that takes more
    bits.
    """
    kind = MECHANISMS.kind(mechanism)
    if kind is not None and kind.is_sparse:
        from metricdp.design.local.rounding import round_local  # loads the solvers

        return round_local(mechanism, bits, problem)
    if kind is None or not kind.holds_table:
        raise InvalidInput(f"a {type(mechanism).__name__} holds no table of probabilities to round.")
    if bits is not None and (not isinstance(bits, int) or not FEWEST_BITS <= bits <= MOST_BITS):
        raise InvalidInput(f"`bits` must be a whole number from {FEWEST_BITS} to {MOST_BITS}, got {bits!r}.")
    if problem is not None:
        _check_problem(mechanism, problem)
    started = time.perf_counter()
    for candidate in AUTOMATIC_BITS if bits is None else (bits,):
        if _is_multiple(mechanism.matrix, candidate):
            if problem is None:
                return mechanism
            return _certify_rounded(mechanism, mechanism.matrix, 0.0, candidate, problem, started)
        found = _search(mechanism, candidate, LITTLE if bits is None else MOST)
        if found is not None:
            return _certify_rounded(mechanism, *found, candidate, problem, started)
    raise Infeasible(_too_few_bits_message(mechanism, AUTOMATIC_BITS[-1] if bits is None else bits))


def _check_problem(mechanism: Any, problem: Problem) -> None:
    shape, guarantee = mechanism.matrix.shape, mechanism.guarantee
    if problem.cost.shape != shape:
        raise InvalidInput(f"`problem` must be about a matrix of {shape}, got {problem.cost.shape}.")
    if (problem.epsilon, problem.radius) != (guarantee.epsilon, guarantee.radius):
        raise InvalidInput(
            f"`problem` must ask for the guarantee of the mechanism, epsilon {guarantee.epsilon:g} and radius "
            f"{guarantee.radius}, got {problem.epsilon:g} and {problem.radius}."
        )


def smallest_bits(matrix: Floats) -> int | None:
    """Return the smallest number of bits at which all probabilities are whole multiples of 2**-bits, or None."""
    if not _is_multiple(matrix, MOST_BITS):
        return None
    return next(bits for bits in range(FEWEST_BITS, MOST_BITS + 1) if _is_multiple(matrix, bits))


def _is_multiple(matrix: Floats, bits: int) -> bool:
    counts = np.ldexp(matrix, bits)
    return bool(np.all(counts == np.rint(counts)) and np.all(counts.sum(axis=1) == 2.0**bits))


def _search(mechanism: Any, bits: int, most: float) -> tuple[Floats, float] | None:
    """Return the rounded distribution with the smallest share found that keeps the guarantee, and the share."""
    plain = _attempt(mechanism, bits, 0.0)
    if plain is not None:
        return plain, 0.0
    high, low = most, most * 2.0**-40
    best = _attempt(mechanism, bits, high)
    if best is None:
        return None
    for _ in range(SEARCH_STEPS):  # the share matters by its order of magnitude: halve the gap between logarithms
        middle = math.sqrt(high * low)
        found = _attempt(mechanism, bits, middle)
        if found is None:
            low = middle
        else:
            high, best = middle, found
    return best, high


def _attempt(mechanism: Any, bits: int, share: float) -> Floats | None:
    matrix = _round_matrix(mechanism.matrix, bits, share)
    if matrix is None:
        return None
    guarantee, has_rows = mechanism.guarantee, MECHANISMS.has("rows", mechanism)
    if has_rows and guarantee.slack == 0:
        epsilon = float_leakage(matrix, limit_radius(mechanism.inputs.distances, guarantee.radius))
    else:
        made = replace(mechanism, matrix=matrix)
        epsilon = (audit(made) if has_rows else verify_claim(made, Claim(math.inf))).epsilon
    return matrix if epsilon <= guarantee.epsilon * (1.0 - MARGIN) else None


def _round_matrix(matrix: Floats, bits: int, share: float) -> Floats | None:
    """Return (1 - share) q + share * uniform, rounded to multiples of 2**-bits; rows sum to one exactly.

    None where a possible report would become impossible.
    """
    used = (matrix > 0).any(axis=0)
    block = matrix[:, used]
    block = block / block.sum(axis=1, keepdims=True)
    total = 2.0**bits
    exact = ((1.0 - share) * block + share / block.shape[1]) * total
    counts = np.rint(exact)
    if np.any(counts[block > 0] < 1) or (share > 0 and np.any(counts < 1)):
        return None
    missing = total - counts.sum(axis=1)
    for row in np.flatnonzero(missing):
        step, many = np.sign(missing[row]), int(abs(missing[row]))
        if many > block.shape[1] // 2 + 1:
            return None
        # One unit each to where it hurts least, relative to the probability, among those rounded the other way: the
        # remainders sum to what is missing and are at most 1/2, so there are twice as many as needed.
        error = np.abs(counts[row] + step - exact[row])
        hurt = error / np.maximum(exact[row], 1e-300)
        hurt[(error >= 1.0) | (counts[row] + step < 1) | (counts[row] == 0)] = np.inf
        chosen = np.argsort(hurt, kind="stable")[:many]
        if not np.all(np.isfinite(hurt[chosen])):
            return None
        counts[row, chosen] += step
    result = np.zeros_like(matrix)
    result[:, used] = np.ldexp(counts, -bits)
    return result


def _certify_rounded(
    mechanism: Any, matrix: Floats, share: float, bits: int, problem: Problem | None, started: float
) -> Any:
    made = replace(mechanism, matrix=matrix)
    report = audit(made)
    if not report.holds:
        raise NotPrivate(
            f"the distribution rounded to {bits} bits does not keep its guarantee: {report}. Nothing was returned."
        )
    before = mechanism.certificate
    distribution = mechanism.matrix / mechanism.matrix.sum(axis=1, keepdims=True)
    moved = float(0.5 * np.abs(matrix - distribution).sum(axis=1).max()) * (1.0 + 1e-9)
    loss, bound, stated, about = _rounded_losses(mechanism, matrix, problem)
    note = (
        f"rounded to {bits} bits, {share:.2g} of a uniform distribution mixed in, at most {moved:.2g} of any "
        f"distribution moved; {about}"
    )
    certificate = replace(
        before,
        loss=loss,
        lower_bound=cap_bound(bound, loss),
        witness=report.witness if MECHANISMS.has("rows", made) else None,
        pairs=report.pairs,
        method=f"{before.method}; {bits} bits",
        seconds=before.seconds + time.perf_counter() - started,
        epsilon=report.epsilon,
        note=f"{before.note}; {note}" if before.note else note,
        stated=stated,
    )
    return replace(made, certificate=certificate)


def _rounded_losses(
    mechanism: Any, matrix: Floats, problem: Problem | None
) -> tuple[float, float, tuple[str, ...], str]:
    """Return loss and bound of the rounded distribution, which of them are not verified, and which loss that is."""
    before = mechanism.certificate
    unknown = before.loss, before.lower_bound, before.stated, "the loss is that before rounding"
    unproven = tuple(name for name in before.stated if name != "loss")  # the loss is computed again below
    if not MECHANISMS.has("rows", mechanism):
        return unknown
    if problem is not None:
        # a bound belongs to a problem, and the one before may be of any
        loss, trivial, _ = losses_of(problem, matrix, before.objective)
        if _is_own_problem(mechanism, problem):
            return loss, before.lower_bound, unproven, "the loss is that of the rounded distribution"
        return loss, trivial, (), "loss and bound are those of the problem given, the bound is the trivial one"
    if not mechanism.loss_basis.known:
        return unknown
    rounded = replace(mechanism, matrix=matrix)
    loss = worst_loss(rounded) if before.objective == "worst" else expected_loss(rounded)
    return loss, before.lower_bound, unproven, "the loss is that of the rounded distribution"


def _is_own_problem(mechanism: MatrixMechanism, problem: Problem) -> bool:
    """Tell whether the mechanism was made for the loss and the prior of this problem."""
    loss_basis = mechanism.loss_basis
    if not loss_basis.known or problem.inputs is not mechanism.inputs or problem.outputs is not mechanism.outputs:
        return False
    costs = mechanism.inputs.distances_to(mechanism.outputs) if loss_basis.loss is None else loss_basis.loss
    prior = np.full(len(costs), 1.0 / len(costs)) if loss_basis.prior is None else loss_basis.prior
    return np.array_equal(costs, problem.loss) and np.array_equal(prior, problem.prior)


def _too_few_bits_message(mechanism: Any, bits: int) -> str:
    used = int((mechanism.matrix > 0).any(axis=0).sum())
    text = f"{bits} bits are too few for {used} reports at epsilon {mechanism.guarantee.epsilon:g}"
    advice = f"Ask for more bits, up to {MOST_BITS}."
    if MECHANISMS.has("rows", mechanism) and len(mechanism.inputs) > 1:
        apart = mechanism.inputs.distances
        nearest = float(apart[apart > 0].min())
        share = used / math.tanh(mechanism.guarantee.epsilon * nearest / 2.0)
        enough = math.ceil(math.log2(share / MOST))
        if bits < enough <= MOST_BITS:
            advice = f"{enough} bits are enough."
    return f"{text}: more than {MOST:.0%} of the distribution would have to be noise. {advice}"
