"""A metric made of a plain function: measured, checked, certified with a note, kept in a file as its distances."""

import numpy as np
import pytest

import metricdp as mdp
from metricdp.errors import InvalidInput

POINTS = np.array([[0.0, 1.0], [2.0, 5.0], [3.0, -1.0], [7.0, 2.0], [7.5, 2.5]])


def taxi(a, b):
    return abs(a[0] - b[0]) + abs(a[1] - b[1])


def test_a_function_of_two_points_measures_like_the_metric_it_is():
    ours = mdp.metric(taxi, unit="blocks")
    assert isinstance(ours, mdp.Metric)
    assert ours.unit == "blocks"
    np.testing.assert_array_equal(ours(POINTS[:, None], POINTS[None]), mdp.Lp(1)(POINTS[:, None], POINTS[None]))
    assert ours(POINTS[0], POINTS[1]) == 6.0
    quick = mdp.metric(lambda a, b: np.abs(a - b).sum(axis=-1), vectorised=True)
    np.testing.assert_array_equal(quick(POINTS[:, None], POINTS[None]), ours(POINTS[:, None], POINTS[None]))
    space = mdp.FiniteSpace(POINTS, ours)
    np.testing.assert_array_equal(space.distances, mdp.FiniteSpace(POINTS, mdp.Lp(1)).distances)


@pytest.mark.parametrize(
    ("function", "match"),
    [
        (lambda a, b: a[0] - b[0], "negative"),
        (lambda a, b: abs(a[0] - b[0]) + 1.0, "diagonal"),
        (lambda a, b: max(a[0] - b[0], 0.0) + abs(a[1] - b[1]), "symmetric"),
        (lambda a, b: float(np.sum((a - b) ** 2)), "triangle"),
        (lambda a, b: float("nan"), "finite"),
        (lambda a, b: "far", "number"),
    ],
)
def test_a_function_that_is_no_metric_is_refused_with_the_axiom_it_breaks(function, match):
    with pytest.raises(InvalidInput, match=match):
        mdp.FiniteSpace(POINTS, mdp.metric(function)).distances  # noqa: B018


def test_every_secret_of_a_large_space_is_checked():
    points = np.arange(300.0)[:, None]

    def odd(a, b):
        return 1e4 if {a[0], b[0]} == {3.0, 291.0} else abs(a[0] - b[0])

    space = mdp.FiniteSpace(points, mdp.metric(odd))  # the few points that are tried first do not show it
    with pytest.raises(InvalidInput, match=r"odd is no metric.*triangle"):
        space.distances  # noqa: B018


def test_points_that_a_check_refuses_are_named_by_row():
    positive = mdp.metric(lambda a, b: abs(np.log(a[0]) - np.log(b[0])), check=lambda point: point[0] > 0)
    with pytest.raises(InvalidInput, match="row 1"):
        mdp.FiniteSpace([[1.0], [-2.0]], positive)

    def rule(point):
        if point[0] <= 0:
            raise InvalidInput("only positive numbers")

    with pytest.raises(InvalidInput, match="row 0"):
        mdp.FiniteSpace([[0.0], [2.0]], mdp.metric(taxi, check=rule))


@pytest.mark.parametrize("wrong", [{"error": -1.0}, {"error": float("nan")}, {"error": 1.0}, {"check": 3}])
def test_wrong_statements_are_refused(wrong):
    with pytest.raises(InvalidInput):
        mdp.metric(taxi, **wrong)
    with pytest.raises(InvalidInput, match="function"):
        mdp.metric(3)


def test_a_certificate_says_to_which_precision_it_holds():
    plain = mdp.exponential(mdp.FiniteSpace(POINTS, mdp.metric(taxi)), 1.0)
    assert "as taxi computes them" in plain.certificate.note
    stated = mdp.exponential(mdp.FiniteSpace(POINTS, mdp.metric(taxi, error=1e-12)), 1.0)
    assert "computes them" not in stated.certificate.note
    true = mdp.FiniteSpace(POINTS, mdp.Lp(1)).distances
    found = stated.inputs.distances
    off = ~np.eye(len(POINTS), dtype=bool)
    assert np.all(found[off] < true[off])
    np.testing.assert_allclose(found, true, rtol=2e-12)
    assert mdp.audit(plain).verdict == "holds"


@pytest.mark.parametrize("builder", [mdp.exponential, lambda space, e: mdp.optimal(mdp.Problem(space, e))])
def test_a_file_keeps_the_distances_of_a_function(tmp_path, builder):
    made = builder(mdp.FiniteSpace(POINTS, mdp.metric(taxi, unit="blocks"), columns=("x", "y")), 0.5)
    mdp.save(made, tmp_path / "own.mdp")
    back = mdp.load(tmp_path / "own.mdp")
    assert isinstance(back.guarantee.metric, mdp.Precomputed)
    assert back.guarantee.unit == "blocks"
    np.testing.assert_array_equal(back.matrix, made.matrix)
    np.testing.assert_array_equal(back.inputs.distances, made.inputs.distances)
    assert mdp.audit(back).verdict == "holds"
    # Tables find the secrets by their coordinates, as before.
    np.testing.assert_array_equal(back.inputs.encode(POINTS), np.arange(len(POINTS)))
    np.testing.assert_array_equal(back.inputs.decode([2]), POINTS[[2]])


def test_words_of_an_own_metric_are_kept_too(tmp_path):
    words = mdp.FiniteSpace(np.array(["a", "bb", "ccc"]), mdp.metric(lambda a, b: abs(len(a[0]) - len(b[0]))))
    made = mdp.exponential(words, 1.0)
    mdp.save(made, tmp_path / "words.mdp")
    back = mdp.load(tmp_path / "words.mdp")
    np.testing.assert_array_equal(back.inputs.encode(np.array(["ccc", "a"])), [2, 0])
