"""Noise on the vector, then a word near by: Madlib, Vickrey's second choice, and noise with the shape of the words.

The distribution of the reported word has no closed form (it is the noise mass of a cell of the nearest word), so the
attacker's recovery is estimated. Every draw y gives the whole posterior over the words of the text; the posterior of a
report is the mean over the draws that led to it. Guesses learned from one half of the draws and judged by the other are
an attack that works, so below the best one; guesses judged by the draws they were learned from lie above it.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from metricdp.arrays import Floats, Integers
from metricdp.metrics import Mahalanobis
from metricdp_papers.text.corpora import Corpus, Singles
from metricdp_papers.text.kernels import BLOCK, GUESSES, DistanceMatrix, largest, largest_places

MOST = 1024  # draws of one report that are looked at; its other draws count as much
ATTACKED = 12_000  # words of a text that are attacked, at most
BEFOREHAND = 3.0  # draws that the prior is worth to the attacker, who has few of most reports
SECOND = 0.75  # Vickrey's t: how much the second nearest word is preferred
SHAPED = 0.2  # the share of the words' covariance in the shape of the noise


@dataclass(frozen=True)
class NoisyText:
    """Noisy vectors of a text, the nearest and the second nearest word, and how far both are."""

    vectors: Singles
    nearest: Integers
    apart: Singles


@dataclass(frozen=True)
class Recovery:
    """What the attacker recovers: by guesses judged afresh, the half width of its 95 % interval, and at most."""

    fresh: dict[int, float]
    width: dict[int, float]
    most: dict[int, float]
    median_rank: float


def shape(text: Corpus) -> Floats:
    """Return the matrix of Xu et al. (2020): words' covariance, mean variance 1, mixed with the identity."""
    covariance = np.cov(text.vectors.astype(float), rowvar=False, ddof=0)
    return np.asarray(Mahalanobis.regularised(covariance, SHAPED).covariance)


def roots(matrix: Floats) -> tuple[Floats, Floats]:
    """Return the square root of a symmetric positive matrix, and its inverse."""
    values, axes = np.linalg.eigh(matrix)
    return (axes * np.sqrt(values)) @ axes.T, (axes / np.sqrt(values)) @ axes.T


def stretch_factor(matrix: Floats) -> float:
    """Return how much larger the guarantee is in plain Euclidean distance: the most a unit vector measures."""
    return float(1.0 / np.sqrt(np.linalg.eigvalsh(matrix)[0]))


def noisy(text: Corpus, epsilon: float, root: Floats | None, *, repetition: int) -> NoisyText:
    """Draw the noise of every word of a text: a gamma radius, a uniform direction, and the shape."""
    rng = np.random.default_rng([5, round(1000 * epsilon), repetition])
    width = text.vectors.shape[1]
    steps = rng.normal(size=(len(text.codes), width))
    steps *= (rng.gamma(width, 1.0 / epsilon, len(steps)) / np.linalg.norm(steps, axis=1))[:, None]
    if root is not None:
        steps = steps @ root
    vectors = (text.vectors[text.codes] + steps).astype(np.float32)
    nearest = np.empty((len(vectors), 2), dtype=np.int64)
    apart = np.empty((len(vectors), 2), dtype=np.float32)
    words = DistanceMatrix(text.vectors)
    for rows in _slices(len(vectors)):
        away = words.farness(vectors[rows])
        line = np.arange(len(away))
        for place in (0, 1):
            nearest[rows, place] = away.argmin(axis=1)
            away[line, nearest[rows, place]] = np.inf
            apart[rows, place] = np.linalg.norm(vectors[rows] - text.vectors[nearest[rows, place]], axis=1)
    return NoisyText(vectors, nearest, apart)


def second_choice(drawn: NoisyText, *, repetition: int) -> Integers:
    """Choose between the two nearest words as Xu et al. (2021): the first with (1-t) d2 / (t d1 + (1-t) d2)."""
    near, far = drawn.apart.astype(float).T
    first = (1.0 - SECOND) * far / (SECOND * near + (1.0 - SECOND) * far)
    coins = np.random.default_rng([6, repetition]).random(len(first))
    return np.where(coins < first, drawn.nearest[:, 0], drawn.nearest[:, 1])


def estimate_recovery(
    text: Corpus, drawn: NoisyText, reports: Integers, epsilon: float, inverse: Floats | None
) -> Recovery:
    """Estimate what the attacker recovers of the words behind these reports."""
    some = np.random.default_rng(8).permutation(len(reports))[:ATTACKED]
    reports, codes, noisy_, words = reports[some], text.codes[some], drawn.vectors[some], text.vectors
    if inverse is not None:  # where the guarantee is Euclidean
        words, noisy_ = ((one @ inverse).astype(np.float32) for one in (words, noisy_))
    secrets = np.ascontiguousarray(words[text.used])
    places = np.full(len(words), -1)
    places[text.used] = np.arange(len(text.used))
    attack = _BayesAttack(secrets, np.log(text.prior).astype(np.float32), epsilon, float(np.mean(reports == codes)))
    for rows, counts in _groups(reports):
        attack.add_draws(noisy_[rows], reports[rows], words, counts)
        attack.rank(places[codes[rows]])
    return attack.result()


class _BayesAttack:
    """Adds up the attack, group of reports after group."""

    def __init__(self, secrets: Singles, prior: Singles, epsilon: float, stays: float) -> None:
        self.stays = stays
        self.secrets, self.prior, self.epsilon = DistanceMatrix(secrets), prior, epsilon
        self.fresh: dict[int, list[Floats]] = {1: [], GUESSES: []}
        self.most = {1: 0.0, GUESSES: 0.0}
        self.weights: list[Floats] = []
        self.ranks: list[Integers] = []

    def add_draws(self, noisy_: Singles, reports: Integers, words: Singles, counts: Floats) -> None:
        """Take the draws of whole reports, sorted; `counts` is how many draws of the text each of them stands for."""
        from scipy.sparse import csr_array

        shown, starts = np.unique(reports, return_index=True)
        self.group = np.repeat(np.arange(len(shown)), np.diff([*starts, len(reports)]))
        self.half = (np.arange(len(reports)) % 2).astype(bool)
        posterior = self._posterior(noisy_)
        # before any draw: the prior, and as likely as words stay what the report's own vector would say
        first = np.float32(self.stays) * self._posterior(words[shown])
        sums = [csr_array((self.half == side, (self.group, np.arange(len(reports)))), (len(shown), len(reports)))
                .astype(np.float32) @ posterior for side in (False, True)]  # fmt: skip
        first += np.float32(BEFOREHAND) * np.exp(self.prior)
        self.learned = [first + one for one in sums]
        self.weights.append(counts)
        scale = np.bincount(self.group, counts) / np.bincount(self.group)
        for guesses in (1, GUESSES):
            chosen = [largest_places(one, guesses) for one in self.learned]
            right = np.empty(len(posterior))
            for side in (False, True):  # judged by the other half
                mine = np.flatnonzero(self.half == side)
                right[mine] = posterior[mine[:, None], chosen[not side][self.group[mine]]].sum(axis=1)
            self.fresh[guesses].append(right)
            self.most[guesses] += float(scale @ largest(sums[0] + sums[1], guesses).sum(axis=1, dtype=float))

    def rank(self, secrets: Integers) -> None:
        """Look up the ranks of the true words by what the other half taught."""
        found = np.empty(len(secrets), dtype=np.int64)
        for side in (False, True):
            mine = np.flatnonzero(self.half == side)
            taught = self.learned[not side][self.group[mine]]
            found[mine] = 1 + (taught > taught[np.arange(len(mine)), secrets[mine]][:, None]).sum(axis=1)
        self.ranks.append(found)

    def result(self) -> Recovery:
        """Return the sums as shares."""
        weights = np.concatenate(self.weights)
        weights = weights / weights.sum()
        right = {guesses: np.concatenate(parts) for guesses, parts in self.fresh.items()}
        fresh = {guesses: float(weights @ one) for guesses, one in right.items()}
        width = {guesses: float(1.96 * np.sqrt((weights**2) @ (one - fresh[guesses]) ** 2))
                 for guesses, one in right.items()}  # fmt: skip
        total = float(np.concatenate(self.weights).sum())
        most = {guesses: value / total for guesses, value in self.most.items()}
        ranks = np.concatenate(self.ranks)
        order = ranks.argsort(kind="stable")
        middle = ranks[order][np.searchsorted(weights[order].cumsum(), 0.5)]
        return Recovery(fresh, width, most, float(middle))

    def _posterior(self, noisy_: Singles) -> Singles:
        scores = self.secrets.distances(noisy_)
        scores *= np.float32(-self.epsilon)
        scores += self.prior
        scores -= scores.max(axis=1, keepdims=True)
        np.exp(scores, out=scores)
        scores /= scores.sum(axis=1, keepdims=True)
        return scores


def _groups(reports: Integers) -> Iterator[tuple[Integers, Floats]]:
    """Yield draws of whole reports with how many draws of the text each stands for; at most MOST of one report."""
    order = np.argsort(reports, kind="stable")
    edges = np.flatnonzero(np.diff(reports[order], prepend=-1, append=-1))
    rows: list[Integers] = []
    counts: list[Floats] = []
    for start, stop in pairwise(edges):
        taken = order[start : min(stop, start + MOST)]
        rows.append(taken)
        counts.append(np.full(len(taken), (stop - start) / len(taken)))
        if sum(map(len, rows)) >= MOST:
            yield np.concatenate(rows), np.concatenate(counts)
            rows, counts = [], []
    if rows:
        yield np.concatenate(rows), np.concatenate(counts)


def _slices(count: int) -> Iterator[slice]:
    return (slice(start, min(start + BLOCK, count)) for start in range(0, count, BLOCK))
