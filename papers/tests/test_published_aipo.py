"""AIPO as published, judged from scratch: the log law, the split of the budget, AIPO-R, Proposition 5, partitions.

Nothing is computed by the library: laws by loops over corners, programs by scipy, distances by hand.
"""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest

import brute
import metricdp as mdp
from metricdp.auditing.bounds import central_points, spread_blocks
from metricdp_papers.aipo.relaxed import aipo_r

CELLS = (3, 2)
SIDES = (6.0, 5.0)


def instance(p=2.0, seed=0, count=80, reports=3):
    rng = np.random.default_rng(seed)
    points = rng.random((count, 2)) * SIDES
    places = rng.random((reports, 2)) * SIDES
    losses = np.linalg.norm(points[:, None] - places[None], axis=2) * rng.uniform(0.8, 1.2, (count, 1))
    prior = rng.random(count)
    box = mdp.Box([0.0, 0.0], SIDES, mdp.Lp(p))
    return box, mdp.FiniteSpace(places, mdp.Lp(p)), (points, losses), prior / prior.sum()


def anchors_by_hand(cells=CELLS):
    return [
        (SIDES[0] * i / cells[0], SIDES[1] * j / cells[1]) for i in range(cells[0] + 1) for j in range(cells[1] + 1)
    ]


def corners_by_hand(point, cells=CELLS):
    """Yield (number of the anchor, weight of Eq. 30) of the four corners around a point."""
    low, share = [], []
    for axis in range(2):
        width = SIDES[axis] / cells[axis]
        at = min(int(point[axis] // width), cells[axis] - 1)
        low.append(at)
        share.append((point[axis] - at * width) / width)
    for first, second in itertools.product((0, 1), (0, 1)):
        number = (low[0] + first) * (cells[1] + 1) + low[1] + second
        yield number, (share[0] if first else 1 - share[0]) * (share[1] if second else 1 - share[1])


def log_law(matrix, point):
    """The normalised weighted geometric mean of the corners' laws (Definitions 5 and 6), term by term."""
    values = []
    for report in range(matrix.shape[1]):
        logarithm = sum(w * math.log(matrix[i, report] / math.fsum(matrix[i])) for i, w in corners_by_hand(point))
        values.append(math.exp(logarithm))
    return np.array(values) / math.fsum(values)


def surrogate_cost(loss, prior):
    """The coefficients of Proposition 4, by a loop over secrets and corners."""
    points, losses = loss
    cost = np.zeros(((CELLS[0] + 1) * (CELLS[1] + 1), losses.shape[1]))
    for x, row, mass in zip(points, losses, prior, strict=True):
        for number, weight in corners_by_hand(x):
            cost[number] += weight * mass * row
    return cost


def distance(first, second, p):
    gaps = [abs(a - b) for a, b in zip(first, second, strict=True)]
    return max(gaps) if math.isinf(p) else sum(g**p for g in gaps) ** (1 / p)


def test_the_log_law_is_the_normalised_geometric_mean_of_the_corners():
    box, reports, loss, prior = instance()
    made = mdp.interpolated(
        box, reports, 0.9, loss=loss, prior=prior, anchors=CELLS, rule="log", split="even", bound=False
    )
    rng = np.random.default_rng(7)
    points = np.concatenate([rng.random((60, 2)) * SIDES, anchors_by_hand(), [[3.0, 5.0], [6.0, 1.25]]])
    expected = np.array([log_law(made.matrix, x) for x in points])
    assert np.allclose(made.probabilities(points), expected, rtol=1e-12, atol=0)


@pytest.mark.parametrize("p", [1.0, 2.0, np.inf])
def test_aipo_with_an_even_split_is_the_published_program(p):
    box, reports, loss, prior = instance(p)
    epsilon = 0.9
    made = mdp.interpolated(
        box, reports, epsilon, loss=loss, prior=prior, anchors=CELLS, rule="log", split="even", gap=1e-5, bound=False
    )
    # Eqs. (34), (35): (epsilon/2) each for l1, /sqrt 2 for l2, half of it for l_infinity
    share = {1.0: 1.0, 2.0: math.sqrt(0.5), np.inf: 0.5}[p]
    budget = epsilon / 2 * share
    places = anchors_by_hand()
    exponents = np.array([[budget * distance(a, b, 1.0) for b in places] for a in places])  # chains of axis neighbours
    cost = surrogate_cost(loss, prior)
    least = brute.least_loss(cost, np.ones(len(cost)), exponents)
    assert (cost * made.matrix).sum() == pytest.approx(least, rel=1e-4)
    # the loss it states is the true one, of the normalised law
    true = sum(m * row @ log_law(made.matrix, x) for x, row, m in zip(*loss, prior, strict=True))
    assert made.certificate.loss == pytest.approx(true, rel=1e-10)


def test_the_grid_search_keeps_the_split_of_least_true_loss():
    box, reports, loss, prior = instance(seed=2)
    options = {"loss": loss, "prior": prior, "anchors": CELLS, "rule": "log", "gap": 1e-5, "bound": False}
    found = mdp.interpolated(box, reports, 1.2, split="grid", **options)
    losses = []
    for tenth in range(1, 10):  # epsilon_1 = (epsilon/2) i/10, epsilon_2 from the circle
        first = tenth / 10
        made = mdp.interpolated(box, reports, 1.2, split=(first, math.sqrt(1 - first**2)), **options)
        losses.append(made.certificate.loss)
    assert found.certificate.loss == pytest.approx(min(losses), rel=1e-9)
    even = mdp.interpolated(box, reports, 1.2, split="even", **options)
    assert found.certificate.loss <= even.certificate.loss * (1 + 2e-3)  # the diagonal lies between two splits
    high = mdp.Box(np.zeros(4), np.ones(4), mdp.Lp(2))
    with pytest.raises(mdp.MetricdpError, match="axes"):
        mdp.interpolated(high, mdp.FiniteSpace(np.eye(4), mdp.Lp(2)), 1.0, anchors=1, rule="log", split="grid")


@pytest.mark.parametrize("p", [1.0, 2.0, np.inf])
def test_aipo_r_keeps_epsilon_between_all_pairs_of_anchors_and_nothing_better_does(p):
    box, reports, loss, prior = instance(p, seed=4)
    epsilon = 0.7
    made = aipo_r(box, reports, epsilon, loss=loss, prior=prior, anchors=CELLS, gap=1e-5)
    places = anchors_by_hand()
    apart = np.array([[distance(a, b, p) for b in places] for a in places])
    reached, *_ = brute.leakage(made.matrix, apart)
    assert reached <= epsilon * (1 + 1e-12)
    assert reached > 0.999 * epsilon
    cost = surrogate_cost(loss, prior)
    assert (cost * made.matrix).sum() == pytest.approx(
        brute.least_loss(cost, np.ones(len(cost)), epsilon * apart), rel=1e-4
    )


def test_aipo_r_of_the_authors_program_binds_neighbours_along_the_axes_alone():
    box, reports, loss, prior = instance(seed=4)
    epsilon = 0.7
    made = aipo_r(box, reports, epsilon, loss=loss, prior=prior, anchors=CELLS, bound_pairs="axes", gap=1e-5)
    places = anchors_by_hand()
    chains = np.array([[distance(a, b, 1.0) for b in places] for a in places])  # what neighbours along the axes imply
    cost = surrogate_cost(loss, prior)
    least = brute.least_loss(cost, np.ones(len(cost)), epsilon * chains)
    assert (cost * made.matrix).sum() == pytest.approx(least, rel=1e-4)
    assert brute.leakage(made.matrix, chains)[0] <= epsilon * (1 + 1e-12)
    diagonal = np.array([[distance(a, b, 2.0) for b in places] for a in places])
    assert brute.leakage(made.matrix, diagonal)[0] > 1.05 * epsilon  # anchors across a cell leak more


def test_aipo_r_is_not_private_between_its_anchors_and_says_how_much_it_leaks():
    box, reports, loss, prior = instance(seed=4)
    epsilon = 0.7
    made = aipo_r(box, reports, epsilon, loss=loss, prior=prior, anchors=CELLS)
    assert made.guarantee.basis == "none"
    assert mdp.violation_ratio(made)[1] > 1.0
    assert "NOT private" in made.certificate.note
    stated = float(made.certificate.note.split("between ")[1].split(" ")[0])
    # close pairs inside cells, by the law written out above
    rng = np.random.default_rng(1)
    worst = 0.0
    for x in rng.random((400, 2)) * SIDES:
        angle = rng.random() * 2 * math.pi
        step = 1e-5 * np.array([math.cos(angle), math.sin(angle)])
        other = np.clip(x + step, 0, SIDES)
        ratio = np.abs(np.log(log_law(made.matrix, x)) - np.log(log_law(made.matrix, other))).max()
        worst = max(worst, ratio / max(math.dist(x, other), 1e-9))
    assert epsilon < worst <= made.certificate.epsilon
    assert worst <= stated * 1.05  # the vertices of the cells are where it is steepest, or nearly
    assert epsilon < stated <= made.certificate.epsilon


def test_proposition_5_is_the_published_program_and_below_every_private_mechanism():
    box, _, loss, prior = instance(seed=3, count=30)
    points, losses = loss
    epsilon, cells = 0.6, (3, 2)
    owner = [(min(int(x // 2.0), 2), min(int(y // 2.5), 1)) for x, y in points]
    used = sorted(set(owner))
    cost = np.array(
        [
            [sum(prior[i] for i in members) * min(losses[i, k] for i in members) for k in range(3)]
            for members in ([i for i, o in enumerate(owner) if o == cell] for cell in used)
        ]
    )
    apart = np.zeros((len(used), len(used)))
    for a, b in itertools.permutations(range(len(used)), 2):
        corners = [[(2.0 * (c[0] + i), 2.5 * (c[1] + j)) for i in (0, 1) for j in (0, 1)] for c in (used[a], used[b])]
        apart[a, b] = max(math.dist(first, second) for first in corners[0] for second in corners[1])
    program = brute.least_loss(cost, np.ones(len(cost)), epsilon * apart)
    bound = mdp.universal_lower_bound(box, epsilon, loss=loss, prior=prior, cells=cells, gap=1e-5)
    assert bound == pytest.approx(program, rel=1e-4)
    assert bound <= program * (1 + 1e-12)
    every = epsilon * np.array([[math.dist(a, b) for b in points] for a in points])
    assert bound <= brute.least_loss(losses, prior, every)


def test_partitions_cover_every_point_once():
    points = np.random.default_rng(9).random((101, 2)) * SIDES
    blocks = spread_blocks(points, mdp.Lp(2), 7)
    assert sorted(np.concatenate(blocks).tolist()) == list(range(101))
    assert max(map(len, blocks)) - min(map(len, blocks)) <= 1
    # a block is spread: its members lie farther from one another than those of a block of neighbours
    nearest = [
        min(math.dist(points[i], points[j]) for i, j in itertools.combinations(block.tolist(), 2)) for block in blocks
    ]
    assert np.mean(nearest) > 0.25 * math.sqrt(SIDES[0] * SIDES[1] / len(blocks[0]))
    centres = central_points(points, np.full(101, 1 / 101), mdp.Lp(2), 12)
    assert len(centres) == 12
    assert np.all((centres >= 0) & (centres <= SIDES))
