"""The proof of interpolated laws against interval arithmetic: never below the true constant, and close above it."""

import itertools
from fractions import Fraction

import flint
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import metricdp as mdp
from metricdp.auditing.lipschitz import prove_log, prove_rounding, prove_streets
from metricdp.mechanisms import Certificate, Guarantee, StreetMechanism
from metricdp.spaces import FiniteSpace, Streets

BITS = 3000  # probabilities down to 5e-324, and sums of them with ones


@pytest.fixture(autouse=True)
def many_bits():
    before = flint.ctx.prec
    flint.ctx.prec = BITS
    yield
    flint.ctx.prec = before


def ball(value):
    exact = Fraction(float(value)) if not isinstance(value, Fraction) else value
    return flint.arb(flint.fmpq(exact.numerator, exact.denominator))


def exact_laws(matrix):
    rows = [[Fraction(float(p)) for p in row] for row in matrix]
    return [[p / sum(row) for p in row] for row in rows]


def true_speeds(ratio):
    """Return theta' at the ends and in the middle: L / (e^a - 1) and L / (e^a - 1) + L / 2."""
    a = ball(ratio)
    if ratio == 0:
        return flint.arb(1), flint.arb(1)
    length = 2 * ((1 + a.exp()) / 2).log()
    return length / (a.exp() - 1), length / (a.exp() - 1) + length / 2


def true_constant(matrix, axes, ratios, q):
    """Return the largest ||grad z||_q / z over the points theta in {0, 1/2, 1}^n of every cell, ball by ball."""
    laws = exact_laws(matrix)
    shape = tuple(len(axis) for axis in axes)
    best = flint.arb(0)
    for cell in itertools.product(*(range(side - 1) for side in shape)):
        for theta in itertools.product((Fraction(0), Fraction(1, 2), Fraction(1)), repeat=len(shape)):
            for report in range(matrix.shape[1]):
                value, gradient = Fraction(0), [Fraction(0)] * len(shape)
                for corner in itertools.product((0, 1), repeat=len(shape)):
                    row = int(np.ravel_multi_index(tuple(c + b for c, b in zip(cell, corner, strict=True)), shape))
                    distribution = laws[row][report]
                    weights = [t if b else 1 - t for t, b in zip(theta, corner, strict=True)]
                    value += distribution * product(weights)
                    for axis, bit in enumerate(corner):
                        others = product(w for other, w in enumerate(weights) if other != axis)
                        gradient[axis] += (distribution if bit else -distribution) * others
                if value == 0:
                    continue
                parts = []
                for axis, slope in enumerate(gradient):
                    width = Fraction(float(axes[axis][cell[axis] + 1])) - Fraction(float(axes[axis][cell[axis]]))
                    end, middle = true_speeds(float(ratios[axis][cell[axis]]))
                    rate = middle if theta[axis] == Fraction(1, 2) else end
                    parts.append(rate * ball(abs(slope) / value / width))
                best = best.max(norm(parts, q))
    return best


def product(values):
    result = Fraction(1)
    for value in values:
        result *= value
    return result


def norm(parts, q):
    if q == 1:
        return sum(parts, flint.arb(0))
    if np.isinf(q):
        largest = parts[0]
        for part in parts[1:]:
            largest = largest.max(part)
        return largest
    return sum((part * part for part in parts), flint.arb(0)).sqrt()


def assert_proves(epsilon, true):
    assert bool(ball(epsilon) >= true), (epsilon, true)
    assert bool(ball(epsilon) <= true * (1 + ball(1e-12)) + ball(1e-10)), (epsilon, true)


def assert_bounds(epsilon, true, matrix, ratio):
    if np.isinf(epsilon):  # a ratio of probabilities beyond what doubles hold
        assert np.max(np.log(matrix.max(axis=0)) - np.log(matrix.min(axis=0))) > 700
    elif ratio < 700:
        assert_proves(epsilon, true)
    else:  # the slope at the anchors is only bounded there
        assert bool(ball(epsilon) >= true)


small = st.sampled_from([5e-324, 1e-323, 1.5e-323, 2.5e-323, 4e-320, 2.3e-308, 1e-300, 1e-160, 1e-17, 0.01, 0.3])


@given(st.lists(st.lists(small, min_size=2, max_size=2), min_size=3, max_size=3), st.floats(0.05, 900.0))
def test_proofs_on_a_line_hold_for_probabilities_as_small_as_doubles_go(tails, ratio):
    matrix = np.array([[*tail, 1.0 - sum(tail)] for tail in tails])
    axes, ratios = (np.array([0.0, 0.5, 2.0]),), (np.array([ratio, ratio / 2]),)
    proof = prove_rounding(matrix, axes, ratios, 2.0)
    true = true_constant(matrix, axes, ratios, 2.0)
    assert_bounds(proof.epsilon, true, matrix, ratio)


@pytest.mark.parametrize("p", [1.0, 2.0, np.inf])
def test_proofs_in_the_plane_hold_for_tiny_probabilities(p):
    rng = np.random.default_rng(3)
    for tiny in (5e-324, 1e-310, 1e-5):
        tails = tiny * rng.integers(1, 5, size=(4, 2))
        matrix = np.concatenate([tails, 1.0 - tails.sum(axis=1, keepdims=True)], axis=1)
        axes, ratios = (np.array([0.0, 0.3]), np.array([-1.0, 0.7])), (np.array([1.3]), np.array([0.8]))
        q = {1.0: np.inf, 2.0: 2.0, np.inf: 1.0}[p]
        assert_proves(prove_rounding(matrix, axes, ratios, p).epsilon, true_constant(matrix, axes, ratios, q))


def street_mechanism(matrix, ratios):
    network = mdp.ShortestPath([[0, 1], [1, 2]], [0.5, 1.5])
    streets = Streets(network)
    outputs = FiniteSpace(np.arange(matrix.shape[1], dtype=float)[:, None], mdp.Lp(2))
    promise = Guarantee(1.0, streets.metric, basis="certificate")
    empty = Certificate(loss=0.0, lower_bound=0.0, method="", epsilon=1.0)
    return StreetMechanism(streets, outputs, np.array([1, 1]), matrix, np.array(ratios), promise, empty)


@given(st.lists(st.lists(small, min_size=2, max_size=2), min_size=3, max_size=3), st.floats(0.05, 900.0))
def test_proofs_along_streets_hold_for_probabilities_as_small_as_doubles_go(tails, ratio):
    matrix = np.array([[*tail, 1.0 - sum(tail)] for tail in tails])
    proof = prove_streets(street_mechanism(matrix, [ratio, ratio / 2]))
    true = true_constant(matrix, (np.array([0.0, 0.5, 2.0]),), (np.array([ratio, ratio / 2]),), 2.0)
    assert_bounds(proof.epsilon, true, matrix, ratio)


@given(st.lists(st.lists(small, min_size=2, max_size=2), min_size=3, max_size=3))
def test_the_log_rule_moves_no_faster_than_it_is_proven_to(tails):
    matrix = np.array([[*tail, 1.0 - sum(tail)] for tail in tails])
    axis = np.array([0.0, 0.5, 2.0])
    proof = prove_log(matrix, (axis,), 2.0)
    laws = [[ball(p).log() for p in row] for row in exact_laws(matrix)]
    for cell in range(2):
        width = ball(axis[cell + 1]) - ball(axis[cell])
        places = [Fraction(k, 16) for k in range(17)]
        logs = []
        for share in places:
            mixed = [ball(1 - share) * a + ball(share) * b for a, b in zip(laws[cell], laws[cell + 1], strict=True)]
            total = sum((value.exp() for value in mixed), flint.arb(0)).log()
            logs.append([value - total for value in mixed])
        for one, two in itertools.pairwise(logs):
            for a, b in zip(one, two, strict=True):
                assert bool(abs(a - b) * 16 <= ball(proof.epsilon) * width)
