"""What a mechanism costs, in the loss it was made for, and what samples may be judged by."""

import re

import numpy as np
import pytest

import metricdp as mdp
from metricdp.artifacts import load, save
from metricdp.errors import InvalidInput

LINE = mdp.FiniteSpace(np.arange(5.0)[:, None], mdp.Lp(1))
PRIOR = np.array([0.4, 0.3, 0.1, 0.1, 0.1])
SQUARED = np.subtract.outer(np.arange(5.0), np.arange(5.0)) ** 2


def counted(matrix, loss, prior):
    rows = [sum(p * c for p, c in zip(z, costs, strict=True)) / sum(z) for z, costs in zip(matrix, loss, strict=True)]
    return sum(p * row for p, row in zip(prior, rows, strict=True))


@pytest.mark.parametrize("build", [mdp.optimal, lambda problem: mdp.constopt(problem, objective="expected", nearest=3)])
def test_the_loss_of_a_mechanism_is_the_one_it_was_made_for(build):
    made = build(mdp.Problem(LINE, 1.0, loss=SQUARED, prior=PRIOR))
    assert mdp.expected_loss(made) == pytest.approx(counted(made.matrix, SQUARED, PRIOR), rel=1e-12)
    assert mdp.expected_loss(made) == pytest.approx(made.certificate.loss, rel=1e-9)
    assert mdp.expected_loss(made, loss=LINE.distances) == pytest.approx(counted(made.matrix, LINE.distances, PRIOR))
    uniform = np.full(5, 0.2)
    assert mdp.expected_loss(made, prior=uniform) == pytest.approx(counted(made.matrix, SQUARED, uniform))
    assert mdp.worst_loss(made) == pytest.approx(max(counted(made.matrix, SQUARED, row) for row in np.eye(5)))


def test_a_loaded_mechanism_does_not_pretend_to_know_its_loss(tmp_path):
    for problem in (mdp.Problem(LINE, 1.0, loss=SQUARED), mdp.Problem(LINE, 1.0, prior=PRIOR)):
        save(mdp.optimal(problem), tmp_path / "some.mdp")
        back = load(tmp_path / "some.mdp")
        with pytest.raises(InvalidInput, match="files do not hold"):
            mdp.expected_loss(back)
        given = mdp.expected_loss(back, loss=problem.loss, prior=problem.prior)
        assert given == pytest.approx(back.certificate.loss, rel=1e-9)
        assert mdp.expected_loss(back, prior=PRIOR) == pytest.approx(counted(back.matrix, LINE.distances, PRIOR))
    save(mdp.optimal(mdp.Problem(LINE, 1.0)), tmp_path / "some.mdp")
    back = load(tmp_path / "some.mdp")
    assert mdp.expected_loss(back) == pytest.approx(back.certificate.loss, rel=1e-9)
    save(mdp.optimal(mdp.Problem(LINE, 1.0), objective="worst"), tmp_path / "some.mdp")
    back = load(tmp_path / "some.mdp")
    assert mdp.worst_loss(back) == pytest.approx(back.certificate.loss, rel=1e-9)


def test_neither_loss_nor_prior_is_written_to_a_file(tmp_path):
    marked = np.array([0.123456789, 0.3, 0.2, 0.2, 0.176543211])
    save(mdp.exponential(LINE, 1.0, prior=marked), tmp_path / "some.mdp")
    assert marked[:1].tobytes() not in (tmp_path / "some.mdp").read_bytes()


@pytest.mark.parametrize(("size", "dimension", "epsilon"), [(40, 2, 1.0), (40, 10, 1.0), (60, 3, 5.0), (1100, 4, 2.0)])
def test_madlib_states_an_upper_bound_of_its_loss_and_says_so(size, dimension, epsilon, tmp_path):
    rng = np.random.default_rng(size)
    space = mdp.FiniteSpace(rng.normal(size=(size, dimension)), mdp.Lp(2))
    made = mdp.madlib(space, epsilon)
    secrets = rng.integers(size, size=20_000)
    away = np.linalg.norm(space.points[secrets] - space.points[made.sample(secrets, rng=rng)], axis=1)
    farthest = 2 * np.linalg.norm(space.points - space.points.mean(axis=0), axis=1).max()
    assert away.mean() + 6 * away.std() / 20_000**0.5 < made.certificate.loss <= farthest
    assert made.certificate.at_most
    assert "at most" in made._repr_html_()
    save(made, tmp_path / "words.mdp")
    assert load(tmp_path / "words.mdp").certificate == made.certificate
    assert mdp.product(made, mdp.exponential(LINE, 1.0)).certificate.at_most


def test_noise_says_how_much_its_lattice_changes():
    rng = np.random.default_rng(0)
    made = mdp.laplace(mdp.Lp(1), 1.0, dimension=1, pitch=0.5)
    secrets = rng.uniform(-3, 3, (200_000, 1))
    away = np.abs(made.sample(secrets, rng=rng) - secrets).mean()
    change = float(re.search(r"mean distance by at most ([0-9.e-]+);", made.certificate.note)[1])
    assert change == pytest.approx(0.25, rel=1e-6)
    assert abs(away - made.certificate.loss) <= change


def test_ones_own_matrix_is_a_mechanism_like_any_other(tmp_path):
    distribution = np.exp(-0.5 * LINE.distances)
    distribution /= distribution.sum(axis=1, keepdims=True)
    made = mdp.from_matrix(LINE, distribution, 1.0, prior=PRIOR)
    assert mdp.audit(made).verdict == "holds"
    assert made.certificate.loss == pytest.approx(counted(distribution, LINE.distances, PRIOR))
    assert made.certificate.lower_bound == 0.0
    save(made, tmp_path / "own.mdp")
    assert np.array_equal(load(tmp_path / "own.mdp").matrix, made.matrix)
    assert len(made.sample([0, 3])) == 2
    with pytest.raises(mdp.errors.NotPrivate, match="worst at secrets"):
        mdp.from_matrix(LINE, distribution, epsilon=0.2)
    with pytest.raises(InvalidInput, match="given as `outputs`"):
        mdp.from_matrix(LINE, distribution[:, :1] / distribution[:, :1], 1.0)
    single = mdp.FiniteSpace([[2.0]], mdp.Lp(1))
    assert mdp.from_matrix(LINE, np.ones((5, 1)), 1.0, outputs=single).certificate.epsilon == 0.0


@pytest.mark.parametrize("thing", ["certificate", "audit", "mechanism"])
def test_notebooks_show_small_tables(thing):
    made = mdp.exponential(mdp.FiniteSpace(["<b>", "word"], mdp.Levenshtein()), 1.0)
    shown = {"certificate": made.certificate, "audit": mdp.audit(made), "mechanism": made}[thing]._repr_html_()
    assert shown.startswith("<table>")
    assert len(shown) < 4_000
    assert "<b>word" not in shown
    assert "array(" not in shown


ASKING = [
    mdp.expected_loss, mdp.worst_loss, mdp.auditing.quantile_loss, mdp.adversary_error, mdp.posterior_leakage,
        mdp.remapped
]  # fmt: skip


@pytest.mark.parametrize("measure", ASKING)
@pytest.mark.parametrize("metric", [mdp.Lp(2), mdp.Haversine()], ids=["plane", "earth"])
def test_what_needs_a_list_of_secrets_says_so_of_noise_on_points_anywhere(measure, metric):
    with pytest.raises(mdp.MetricdpError, match=r"lie anywhere.*certificate\.loss"):
        measure(mdp.laplace(metric, 1.0))
