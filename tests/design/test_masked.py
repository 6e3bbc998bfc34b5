"""Geographic masks: as published they promise nothing, with tails they keep epsilon."""

import math

import numpy as np
import pytest

import metricdp as mdp
from brute import leakage
from metricdp.errors import InvalidInput

SPACE = mdp.grid((7, 7))


def published(inner, outer):
    """Uniform on the places from `inner` to `outer` away."""
    inside = (SPACE.distances >= inner) & (SPACE.distances <= outer)
    return inside / inside.sum(axis=1, keepdims=True)


@pytest.mark.parametrize(("inner", "outer"), [(0.0, 2.0), (1.0, 2.5)])
def test_a_mask_as_published_promises_no_epsilon_at_all(inner, outer):
    report = mdp.audit(published(inner, outer), metric=mdp.Lp(2), points=SPACE.points, epsilon=100.0)
    assert report.verdict == "violated"
    assert math.isinf(report.epsilon)
    distribution, (secret, other, seen) = published(inner, outer), (
        report.witness.secret, report.witness.other, report.witness.report
    )  # fmt: skip
    assert distribution[secret, seen] > 0 == distribution[other, seen]


@pytest.mark.parametrize(("inner", "outer"), [(0.0, 2.0), (1.0, 2.5)])
def test_uniform_noise_is_refuted_from_its_draws(inner, outer):
    """A black box that moves a point uniformly within a disk or a ring of the plane."""
    rng = np.random.default_rng(0)

    def draw(secret, count):
        away = np.sqrt(rng.uniform(inner**2, outer**2, count))
        angle = rng.uniform(0, 2 * math.pi, count)
        return np.asarray(secret) + np.stack([away * np.cos(angle), away * np.sin(angle)], axis=1)

    report = mdp.audit_sampler(
        draw, secrets=[(0.0, 0.0), (1.0, 0.0)], metric=mdp.Lp(2), epsilon=1.0, confidence=0.99, draws=20_000
    )
    assert report.verdict == "violated"


@pytest.mark.parametrize(("inner", "outer"), [(0.0, 2.0), (1.0, 2.5)])
def test_tails_keep_the_promise_and_most_reports_stay_in_the_mask(inner, outer):
    made = mdp.masked(SPACE, 1.5, inner=inner, outer=outer)
    assert leakage(made.matrix, SPACE.distances)[0] <= 1.5
    half = mdp.masked(SPACE, 1.5, inner=inner, outer=outer, budget="half")
    inside = (SPACE.distances >= inner) & (SPACE.distances <= outer)
    for mechanism in (made, half):
        distribution = mechanism.matrix / mechanism.matrix.sum(axis=1, keepdims=True)
        assert (distribution * inside).sum(axis=1).min() > 0.4
        rows = np.where(inside, distribution, np.nan)
        np.testing.assert_allclose(np.nanmax(rows, axis=1), np.nanmin(rows, axis=1))  # uniform inside
    # the formula, at the published half
    score = np.maximum(np.maximum(inner - SPACE.distances, SPACE.distances - outer), 0.0)
    expected = np.exp(-0.75 * score)
    np.testing.assert_allclose(half.matrix, expected / expected.sum(axis=1, keepdims=True), rtol=1e-8)
    assert float(made.certificate.method.split()[-2]) > 0.5  # more of epsilon goes into the mask than half


def test_weights_draw_reports_to_where_people_live():
    people = np.where(SPACE.points[:, 0] < 3, 10.0, 1.0)
    made = mdp.masked(SPACE, 1.0, outer=3.0, weights=people)
    assert mdp.audit(made).verdict == "holds"
    assert (
        made.matrix[24, people == 10].sum() > 3 * mdp.masked(SPACE, 1.0, outer=3.0).matrix[24, people == 10].sum() / 2
    )


def test_a_mask_of_wrong_shape_is_refused():
    with pytest.raises(InvalidInput, match="0 <= inner <= outer, got 3 and 2"):
        mdp.masked(SPACE, 1.0, inner=3.0, outer=2.0)
    with pytest.raises(InvalidInput, match="`weights` must be 49 positive numbers"):
        mdp.masked(SPACE, 1.0, outer=2.0, weights=np.zeros(49))
