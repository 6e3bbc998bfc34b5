"""Every space answers the same questions: what it holds, which rows are secrets, and what is wrong with the others."""

from __future__ import annotations

import numpy as np
import pytest

import metricdp as mdp
from metricdp.errors import InvalidInput, OutOfDomain
from metricdp.metrics import StreetPath, measurable_rows
from metricdp.spaces import UNDER_LP, UNDER_NORMS, ProductSpace, Space, Streets, Unbounded, mark_checked, require_space

ROADS = mdp.ShortestPath([[0, 1], [1, 2], [2, 0]], [1.0, 2.0, 1.5], 3)
PLACES = mdp.FiniteSpace(
    np.arange(3), ROADS, coordinates=[[41.0, -8.0], [41.0, -8.01], [41.02, -8.0]], ground=mdp.Haversine()
)
LINE = mdp.FiniteSpace(np.arange(4.0)[:, None], mdp.Lp(1))
WORDS = mdp.FiniteSpace([[0.0], [1.0]], mdp.Lp(1), coordinates=[["tall", "ship"], ["tall", "tree"]])
SUM = mdp.Weighted([(mdp.Lp(1), [0], 1.0), (mdp.Lp(1), [1], 1.0)])
NAN = float("nan")
# space, rows that are secrets, rows that are not
SPACES = {
    "finite": (LINE, [[0.0], [3.0]], [[3.25], [NAN], [np.inf]]),
    "roads": (PLACES, [[41.0, -8.01]], [[41.01, -8.0], [91.0, 0.0], [41.0, NAN]]),
    "words": (WORDS, [("tall", "tree")], [("small", "tree"), ("tall\x1ftree", "")]),
    "box": (mdp.Box([0, 0], [1, 2]), [[0.5, 2.0]], [[1.5, 1.0], [0.0, NAN]]),
    "Earth": (Unbounded(mdp.Haversine(), 2), [[90.0, -360.0]], [[90.5, 0.0], [NAN, 0.0], [0.0, np.inf]]),
    "ball": (Unbounded(mdp.Hyperbolic(), 2), [[0.5, 0.5]], [[0.9, 0.9], [NAN, 0.0]]),
    "streets": (Streets(ROADS), [[1.0, 2.0]], [[1.0, 2.5], [0.5, 0.1], [3.0, 0.0], [NAN, 0.0]]),
    "histories": (
        mdp.spaces.Augmented(LINE, [[0, 0], [1, 0]], [0.5]),
        [[1.0, 0.0]],
        [[0.0, 1.0], [0.5, 0.0], [9.0, 0.0], [NAN, 0]],
    ),
    "product": (
        ProductSpace((LINE, WORDS), SUM),
        [[2.0, "tall", "ship"]],
        [[2.0, "tall", "shop"], ["two", "tall", "ship"]],
    ),
}


@pytest.mark.parametrize("name", SPACES)
def test_a_space_tells_secrets_from_other_rows(name: str) -> None:
    space, secrets, strangers = SPACES[name]
    assert isinstance(space, Space)
    assert all(len(row) == space.width for row in secrets + strangers)
    assert not space.columns or len(space.columns) == space.width
    assert space.legal(secrets + strangers).tolist() == [True] * len(secrets) + [False] * len(strangers)
    back = space.decode(space.encode(secrets))
    assert [tuple(row) for row in back.tolist()] == [tuple(row) for row in secrets]
    assert " not " not in space.why(secrets[0])
    for row in strangers:
        assert space.legal([row]).tolist() == [False]
        assert space.why(row)
        with pytest.raises(InvalidInput) as caught:
            space.encode([*secrets, row])
        numbers = [cell for cell in row if isinstance(cell, float) and np.isfinite(cell) and cell != int(cell)]
        words = [cell for cell in row if isinstance(cell, str) and len(cell) > 3]
        assert not any(f"{value:g}" in str(caught.value) for value in numbers)
        assert not any(word in str(caught.value) for word in words)


@pytest.mark.parametrize("name", [name for name in SPACES if name not in ("finite", "roads", "words")])
def test_only_points_have_a_nearest_one(name: str) -> None:
    space, secrets, _ = SPACES[name]
    with pytest.raises(InvalidInput, match="`snap` is for spaces of finitely many points"):
        space.admit(secrets, snap=0.1)
    with pytest.raises(InvalidInput, match="`snap` is for spaces of finitely many points"):
        space.charge(0.1)
    assert space.charge(0.0) == 0.0


def test_a_space_says_what_others_would_ask_its_class_for() -> None:
    """Whether its secrets can be listed, between which limits they lie, and on which roads."""
    histories = SPACES["histories"][0]
    listed = {"finite": LINE, "roads": PLACES, "words": WORDS, "histories": histories.space}
    for name, (space, _, _) in SPACES.items():
        assert space.finite is listed.get(name), name
        assert (space.size is None) == (name not in listed), name
        assert (space.limits is None) == (name != "box"), name
        assert space.network is (ROADS if name in ("roads", "streets") else None), name
        assert space.same_ground == (name not in ("roads", "words")), name
    lower, upper = SPACES["box"][0].limits
    assert (lower.tolist(), upper.tolist()) == ([0.0, 0.0], [1.0, 2.0])


def test_an_argument_of_another_kind_of_space_is_named_in_a_sentence() -> None:
    assert require_space(LINE, mdp.FiniteSpace, "places", under=UNDER_NORMS) is LINE
    for value, kind, under, sentence in (
        (LINE, mdp.Box, UNDER_LP, "`places` must be a Box under Lp, got FiniteSpace."),
        (
            PLACES,
            mdp.FiniteSpace,
            UNDER_NORMS,
            "FiniteSpace under Lp or Mahalanobis, got one under Sh",
        ),
        (3, Unbounded, None, "`places` must be an Unbounded, got int."),
    ):
        with pytest.raises(InvalidInput, match=sentence):
            require_space(value, kind, "places", under=under)


def test_a_product_says_which_part_a_row_is_no_secret_of() -> None:
    space = SPACES["product"][0]
    assert space.columns == ()
    assert (space.width, space.dimension, space.size, space.is_text) == (3, 2, None, False)
    assert space.why([2.5, "tall", "ship"]).startswith("Part 0: (2.5) is not")
    with pytest.raises(OutOfDomain, match=r"row 1 is not a secret of this space: part 0: .*; part 1: ") as caught:
        space.encode([[2.0, "tall", "ship"], [2.0, "tall", "shop"]])
    assert caught.value.rows == (1,)


def test_a_problem_takes_histories_as_they_are() -> None:
    augmented = mdp.spaces.Augmented(LINE, [[0, 0], [1, 0], [1, 1]], [0.5])
    loss = LINE.distances[augmented.histories[:, 0]]
    assert mdp.Problem(augmented, 1.0, outputs=LINE, loss=loss).inputs is augmented.space


class Even:
    """A metric of somebody else's that measures even numbers only, and says so by `check` alone."""

    unit = ""

    def __call__(self, a, b, /):
        return np.abs(np.asarray(a) - np.asarray(b))[..., 0]

    def check(self, points, /) -> None:
        if np.any(np.asarray(points) % 2):
            raise InvalidInput("odd")


def test_a_metric_that_only_checks_is_asked_for_halves() -> None:
    rows = np.random.default_rng(0).integers(0, 50, (333, 1)).astype(float)
    assert np.array_equal(measurable_rows(Even(), rows), rows[:, 0] % 2 == 0)
    space = Unbounded(Even(), 1)
    mixed = np.concatenate([rows, [[NAN]]])
    assert np.array_equal(space.legal(mixed), np.append(rows[:, 0] % 2 == 0, False))


@pytest.mark.parametrize(
    ("metric", "rows", "legal"),
    [
        (mdp.Angular(), [[0.0, 1.0], [0.0, 0.0]], [True, False]),
        (mdp.Wasserstein([0.0, 1.0]), [[0.5, 0.5], [0.7, 0.7], [1.5, -0.5]], [True, False, False]),
        (mdp.Precomputed([[0.0, 1.0], [1.0, 0.0]]), [[1.0], [2.0], [0.5], [-1.0]], [True, False, False, False]),
        (StreetPath(ROADS), [[0.0, 1.0], [0.0, 1.5]], [True, False]),
    ],
    ids=lambda value: type(value).__name__,
)
def test_metrics_tell_rows_they_measure_from_others(metric, rows, legal) -> None:
    assert measurable_rows(metric, np.array(rows)).tolist() == legal
    metric.check(np.array([row for row, good in zip(rows, legal, strict=True) if good]))
    for row, good in zip(rows, legal, strict=True):
        if not good:
            with pytest.raises(InvalidInput):
                metric.check(np.array([row]))


def test_a_batch_is_checked_once_and_only_by_its_own_space() -> None:
    earth, other = (Unbounded(mdp.Haversine(), 2) for _ in range(2))
    wrong = np.array([[95.0, 0.0]])
    assert earth.encode(mark_checked(wrong, earth)) is not None  # taken as it is: whoever marks rows has checked them
    for values in (mark_checked(wrong, other), mark_checked(wrong, earth) + 0.0, mark_checked(wrong, earth)[:]):
        with pytest.raises(OutOfDomain):
            earth.encode(values)
    mechanism = mdp.laplace(mdp.Haversine(), 10.0)
    assert type(mechanism.sample(mark_checked(np.array([[41.0, 8.0]]), mechanism.inputs))) is np.ndarray
