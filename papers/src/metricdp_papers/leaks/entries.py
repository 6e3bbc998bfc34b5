"""The entries of the board: packages, published defects in a few lines, and samplers that keep their guarantee."""

from __future__ import annotations

import itertools
from functools import partial
from typing import Any

import numpy as np

import metricdp
from metricdp.arrays import Floats
from metricdp_papers.leaks import packages, published
from metricdp_papers.leaks.board import FEW_DRAWS, BoardEntry, of_mechanism

PLANE = [(0.0, 0.0), (1.0, 0.0)]
LINE = [(0.0,), (1.0,)]
EQUATOR = [(0.0, 103.8), (0.0005, 103.8)]  # 56 m apart, one north of the other
STREET = [(41.15 + 0.004 * step, -8.61) for step in range(8)]  # 445 m apart


def plane() -> Any:
    """The Euclidean metric."""
    return metricdp.Lp(2)


def globe() -> Any:
    """Along the Earth, in kilometres."""
    return metricdp.Haversine()


def vocabulary_metric(seed: int, words: int) -> Any:
    """Distances between the vectors of made-up words w00, w01, ..., which text packages are given too."""
    vectors = np.round(np.random.default_rng(seed).uniform(0.0, 10.0, (words, 2)), 6)
    numbers = {f"w{number:02d}": number for number in range(words)}

    def apart(a: Any, b: Any) -> float:
        return float(np.linalg.norm(vectors[numbers[str(a[0])]] - vectors[numbers[str(b[0])]]))

    return metricdp.metric(apart, check=lambda word: str(word[0]) in numbers)


def near_words(seed: int, words: int, count: int = 6) -> list[str]:
    """Return a word and its nearest neighbours."""
    vectors = np.round(np.random.default_rng(seed).uniform(0.0, 10.0, (words, 2)), 6)
    order = np.linalg.norm(vectors - vectors[20], axis=1).argsort()[:count]
    return [f"w{number:02d}" for number in order]


def rank_metric() -> Any:
    """How many places two words of a list are apart."""
    return metricdp.metric(
        lambda a, b: abs(int(str(a[0])[1:]) - int(str(b[0])[1:])),
        check=lambda word: str(word[0])[:1] == "w" and str(word[0])[1:].isdigit(),
    )


def some_words(epsilon_distance: float) -> list[Any]:
    """Return words of our made-up vocabulary that lie about that far apart, by their vectors."""
    vectors = published.VOCABULARY
    apart = np.linalg.norm(vectors - vectors[3], axis=1)
    return [vectors[3], *vectors[np.abs(apart - epsilon_distance).argsort()[:5]]]


def _package(name: str, adapter: str) -> dict[str, Any]:
    way = "matrix" if adapter.endswith("MATRIX") else "draw"
    function = packages.matrix if way == "matrix" else packages.sampler
    return {"package": name, way: partial(function, name, adapter)}


def context_matrix() -> Floats:
    """The published context-aware variant: one program per group of histories, the group read off the secret."""
    from metricdp_papers.contextual.per_group import one_program_per_group

    blankets = {0: _cube()[:, :2], 1: _cube()}
    return np.asarray(one_program_per_group(_walk(), groups=_fast().astype(int), blankets=blankets).matrix)


def _cube() -> Any:
    return np.array(list(itertools.product(range(4), repeat=3)))  # (place, one step back, two steps back)


def _fast() -> Any:
    return np.abs(_cube()[:, 0] - _cube()[:, 1]) >= 2


def _walk() -> Any:
    cube = _cube()
    places = metricdp.FiniteSpace(np.arange(4.0)[:, None], metricdp.Lp(1))
    chance = np.exp(-np.abs(cube[:, 0] - cube[:, 1]) - np.abs(cube[:, 1] - cube[:, 2]))
    loss = np.abs((2.0 * cube[:, 0] - cube[:, 1])[:, None] - np.arange(4.0))
    space = metricdp.spaces.Augmented(places, cube, [0.5, 0.25]).space
    return metricdp.Problem(space, 1.0, outputs=places, loss=loss, prior=chance / chance.sum())


def _cells() -> Any:
    return metricdp.FiniteSpace(published.cells(5), metricdp.Lp(2))


PACKAGES = (
    BoardEntry("qif-planar", "qif", "planar_laplace_sample, added to the place", "1 per unit", 1.0, plane,
               lambda: PLANE, **_package("qif", "QIF_PLANAR"),
               note="The law of the noise is right; the sum of two doubles keeps low bits that name the place."),
    BoardEntry("qif-grid", "qif", "planar_laplace_grid, 10 x 10", "1 per cell", 1.0, plane,
          lambda: published.cells(10), **_package("qif", "QIF_LAPLACE_MATRIX"),
          note="Integrated by Monte Carlo; its own is_private says so too."),
    BoardEntry("qif-chained", "qif", "min_loss_given_d, 20 places on a line, neighbours, CLP", "1 per place", 1.0,
               plane, lambda: np.arange(20.0)[:, None], **_package("qif", "QIF_CHAINED_MATRIX"),
               note="What has to be 1e-8 comes back from the solver as zero; its own is_private finds that too."),
    BoardEntry("qif-tight", "qif", "tight_constraints, 7 x 7", "1 per cell", 1.0, plane, lambda: published.cells(7),
               **_package("qif", "QIF_TIGHT_MATRIX"),
               note="Right up to the rounding of its doubles, which a proof does not forgive."),
    BoardEntry("diffprivlib-laplace", "diffprivlib", "Laplace", "1 per unit", 1.0, plane, lambda: LINE,
               **_package("diffprivlib", "DIFFPRIVLIB_LAPLACE"), draws=FEW_DRAWS,
               note="Known to its authors (issue 94 of IBM/differential-privacy-library); Snapping is their answer."),
    BoardEntry("pypantera-tem", "pypantera", "TEM, beta 0.3, 60 made-up words", "2 per unit", 2.0,
               lambda: vocabulary_metric(7, 60), lambda: ["w30", "w53"], **_package("pypantera", "PYPANTERA_TEM"),
               draws=FEW_DRAWS, note="The draw among far words fails inside and is answered with the word itself."),
    BoardEntry("diffractor-unknown", "dp-diffractor", "a word that is not in its list", "1 per place in the list", 1.0,
               rank_metric, lambda: ["w58", "w59", "w60", "w61"], **_package("dp-diffractor", "DIFFRACTOR_GEOMETRIC"),
               draws=FEW_DRAWS, note="Unknown words are returned as they are."),
)  # fmt: skip

DEFECTS = (
    BoardEntry("doubles", "common practice (Mironov 2012)", "planar Laplace added in doubles", "1 per unit", 1.0, plane,
          lambda: PLANE, published.doubles),
    BoardEntry("android", "LocationFudger of Android, as described", "offset of the hour, then a grid of 2 km",
               "none; held against a factor of two at 2 km", float(np.log(2.0) / 2.0), globe, lambda: STREET,
               published.snapping_of_android, draws=FEW_DRAWS, claims=False,
               note="Android promises coarse places, not indistinguishable ones."),
    BoardEntry("pglp", "PGLP (Cao et al. 2020)", "exponential mechanism without the half", "1 per hop", 1.0,
               lambda: metricdp.Precomputed(published.star_distances()), lambda: [[0.0], [1.0], [2.0]],
               published.policy_graph_without_half),
    BoardEntry("mldp-tem", "MLDP 0.1.2 (source read)", "truncated exponential mechanism", "4 per unit", 4.0, plane,
               lambda: some_words(0.7), published.truncated_of_mldp,
               note="The paper's score keeps the promise; see the last table."),
    BoardEntry("mldp-vickrey", "MLDP 0.1.2 (measured)", "Vickrey, which never returns the word itself", "2 per unit",
               2.0, plane, lambda: some_words(0.7), published.second_nearest_of_mldp, draws=FEW_DRAWS),
    BoardEntry("mldp-unknown", "MLDP 0.1.2 (measured)", "words outside the vocabulary", "1 per letter", 1.0,
               lambda: metricdp.Hamming(), lambda: ["bread", "Jane0", "Jane1"], published.unknown_words_pass,
               draws=FEW_DRAWS),
    BoardEntry("geopriv4j", "geopriv4j (measured)", "planar Laplace with whole-number division", "1 per unit", 1.0,
               plane, lambda: PLANE, published.true_point_of_geopriv4j, draws=FEW_DRAWS,
               note="26 % of reports are the true place."),
    BoardEntry("argmax", "geopriv4j (source read)", "optimal mechanism, the likeliest report of the row", "1 per cell",
               1.0, plane, lambda: published.cells(5)[:6], published.argmax_of_geopriv4j, draws=FEW_DRAWS),
    BoardEntry("privkit", "privkit 0.5.1 (measured)", "planar Laplace near the equator", "10 per km", 10.0, globe,
          lambda: EQUATOR, published.equator_of_privkit, draws=FEW_DRAWS, note="North and south are not moved there."),
    BoardEntry("geoprivacy", "GeoPrivacy 0.0.4 (measured)", "batch_laplace_noise with a seed", "1 per unit", 1.0, plane,
          lambda: PLANE, published.seed_for_every_point, draws=FEW_DRAWS),
    BoardEntry("contextual", "C-mDP (Chen, Huang, Qiu), the variant as published",
               "one program per blanket, chosen by the secret", "1 per unit", 1.0, lambda: _walk().inputs.metric,
               lambda: _walk().inputs.points, matrix=context_matrix,
               note="Secrets are (place, one step back, two steps back)."),
    BoardEntry("relaxed", "Benders decomposition (Qiu), as in its code of 2024",
               "rows relaxed by 0.01, entries at least 0.001", "1 per cell", 1.0, plane, lambda: published.cells(5),
               matrix=published.relaxed_program),
    BoardEntry("vertex", "optimal programs as solvers return them", "20 places on a line, simplex vertex, not repaired",
          "1 per place", 1.0, plane, lambda: np.arange(20.0)[:, None], matrix=published.vertex_of_solver,
          note="A solver's tolerance is no privacy: what has to be 1e-8 may come back as zero."),
)  # fmt: skip


def ours() -> tuple[BoardEntry, ...]:
    """Return our own mechanisms, and those of others that keep their guarantee."""
    return (
        BoardEntry("opendp-laplace", "opendp", "make_laplace, floats", "1 per unit", 1.0, plane, lambda: LINE,
                   **_package("opendp", "OPENDP_LAPLACE"), draws=FEW_DRAWS),
        BoardEntry("diffprivlib-snapping", "diffprivlib", "Snapping", "1 per unit", 1.0, plane, lambda: LINE,
                   **_package("diffprivlib", "DIFFPRIVLIB_SNAPPING"), draws=FEW_DRAWS),
        BoardEntry("pypantera-santext", "pypantera", "SanText, 60 made-up words", "2 per unit", 2.0,
                   lambda: vocabulary_metric(7, 60), lambda: near_words(7, 60),
                   **_package("pypantera", "PYPANTERA_SANTEXT"), draws=FEW_DRAWS),
        BoardEntry("pypantera-cmp", "pypantera", "CMP, 60 made-up words", "2 per unit", 2.0,
                   lambda: vocabulary_metric(7, 60), lambda: near_words(7, 60),
                   **_package("pypantera", "PYPANTERA_CMP"), draws=FEW_DRAWS),
        BoardEntry("diffractor-geometric", "dp-diffractor", "geometric on a list", "1 per place in the list", 1.0,
                   rank_metric, lambda: ["w30", "w31", "w33"], **_package("dp-diffractor", "DIFFRACTOR_GEOMETRIC"),
                   draws=FEW_DRAWS),
        BoardEntry("diffractor-tem", "dp-diffractor", "TEM on a list", "1 per place in the list", 1.0, rank_metric,
                   lambda: ["w30", "w31", "w33"], **_package("dp-diffractor", "DIFFRACTOR_TEM"), draws=FEW_DRAWS),
        BoardEntry("our-plane", "metricdp", "laplace on the plane", "1 per unit", 1.0, plane, lambda: PLANE,
                   lambda: of_mechanism(metricdp.laplace(metricdp.Lp(2), 1.0, dimension=2)),
                   slack=_slack(metricdp.laplace(metricdp.Lp(2), 1.0, dimension=2))),
        BoardEntry("our-earth", "metricdp", "laplace on the Earth, at the equator", "10 per km", 10.0, globe,
                   lambda: EQUATOR, lambda: of_mechanism(metricdp.laplace(metricdp.Haversine(), 10.0)),
                   slack=_slack(metricdp.laplace(metricdp.Haversine(), 10.0))),
        BoardEntry("our-exponential", "metricdp", "exponential, 5 x 5", "1 per cell", 1.0, plane,
                   lambda: published.cells(5)[:6], lambda: of_mechanism(metricdp.exponential(_cells(), 1.0))),
        BoardEntry("our-optimal", "metricdp", "optimal, 5 x 5", "1 per cell", 1.0, plane,
                   lambda: published.cells(5)[:6],
                   lambda: of_mechanism(metricdp.optimal(metricdp.Problem(_cells(), 1.0), gap=0.01))),
        BoardEntry("our-tem", "metricdp", "truncated_exponential on the same made-up words", "4 per unit", 4.0, plane,
              lambda: some_words(0.7), lambda: of_mechanism(metricdp.truncated_exponential(
                  metricdp.FiniteSpace(published.VOCABULARY, metricdp.Lp(2)), 4.0))),
    )  # fmt: skip


def _slack(mechanism: Any) -> float:
    return float(mechanism.guarantee.slack)
