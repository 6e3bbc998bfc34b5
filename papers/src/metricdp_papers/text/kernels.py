"""Distributions that are kernels of the distance: protected texts, and exactly what an attacker recovers.

Nothing is n x n: rows give the draws, columns the attacker. Distances are in single precision; they are off by about
1e-6, which no figure of the tables shows. What is guaranteed is not computed here but certified, or see `leaks`.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

import numpy as np

from metricdp.arrays import Floats, Integers
from metricdp_papers.text.corpora import Corpus, Singles

BLOCK = 128  # rows or columns at a time: what the caches hold
CHUNK = 64  # reports that are summed up first
GUESSES = 10
RANKED = 4000  # words whose rank is looked up


@dataclass(frozen=True)
class Kernel:
    """Reports k of a secret x with probabilities ~ w_k exp(-inner min(d(x, k), cap)); w is 1 unless given.

    Weights are those of all words of the vocabulary.
    """

    epsilon: float
    inner: float
    cap: float = np.inf
    report_weights: Floats | None = None

    def weights(self, distances: Singles) -> Singles:
        """Return the weights at these distances."""
        near = distances if np.isinf(self.cap) else np.minimum(distances, np.float32(self.cap))
        found = near * np.float32(-self.inner)
        return np.asarray(np.exp(found, out=found))


@dataclass(frozen=True)
class Reports:
    """Which words are reported, and how likely each word of the text (in the order of `used`) is replaced at all."""

    codes: Integers
    replaced: Floats

    @classmethod
    def all(cls, text: Corpus) -> Reports:
        """Every word of the vocabulary, and everything is replaced."""
        return cls(np.arange(len(text.words)), np.ones(len(text.used)))


@dataclass
class KernelResults:
    """What became of a text under one distribution."""

    normalisers: Floats
    texts: Integers  # one row a repetition
    unchanged: float = 0.0
    top: dict[int, float] = field(default_factory=dict)
    ranks: list[int] = field(default_factory=list)


def evaluate_kernels(
    text: Corpus, kernels: Sequence[Kernel], reports: Reports, *, repetitions: int
) -> list[KernelResults]:
    """Protect a text by every kernel and let the attacker try, distances shared by all of them."""
    found = protect_text(text, kernels, reports, repetitions=repetitions)
    attack_reports(text, kernels, reports, found)
    return found


def protect_text(text: Corpus, kernels: Sequence[Kernel], reports: Reports, *, repetitions: int) -> list[KernelResults]:
    """Draw the texts, row by row: a cumulative sum of the weights, and one uniform number for every word to come."""
    secrets = text.used
    words = np.argsort(_places(text, secrets)[text.codes], kind="stable")  # the words of the text, by secret
    ends = np.concatenate([[0], text.counts[secrets].cumsum()])
    found = [
        KernelResults(np.empty(len(secrets)), np.empty((repetitions, len(words)), dtype=np.int64)) for _ in kernels
    ]
    rngs = [np.random.default_rng([18, round(1000 * kernel.inner)]) for kernel in kernels]
    own = _places(text, reports.codes)[secrets]
    for rows, distances in _pairs(text.vectors, secrets, reports.codes):
        mine = words[ends[rows.start] : ends[rows.stop]]
        row = np.repeat(np.arange(rows.stop - rows.start), text.counts[secrets[rows]])
        for kernel, one, rng in zip(kernels, found, rngs, strict=True):
            weights = kernel.weights(distances)
            sums = _running_sums(weights)
            one.normalisers[rows] = sums[:, -1]
            for codes in one.texts:
                codes[mine] = reports.codes[_draw_places(weights, sums, row, rng.random(len(row)))]
                kept = rng.random(len(row)) >= reports.replaced[rows][row]
                codes[mine[kept]] = secrets[rows][row[kept]]
    for one in found:  # a word stays where it is drawn itself (weight 1) or never was replaced
        stays = np.where(own >= 0, 1.0 / one.normalisers, 0.0)
        one.unchanged = float(text.prior @ (reports.replaced * stays + 1.0 - reports.replaced))
    return found


def attack_reports(text: Corpus, kernels: Sequence[Kernel], reports: Reports, found: Sequence[KernelResults]) -> None:
    """Add up what the Bayes attacker recovers of every report: the largest p_x z_xk, and the ten largest.

    The attacker knows the distribution and how often every word occurs in this very text. A word that was kept and is
    no report of another gives itself away.
    """
    secrets, prior = text.used, text.prior
    given_away = float(prior @ np.where(_places(text, reports.codes)[secrets] < 0, 1.0 - reports.replaced, 0.0))
    kept = np.where(_places(text, reports.codes)[secrets] >= 0, 1.0 - reports.replaced, 0.0) * prior
    joint = [(prior * reports.replaced / one.normalisers).astype(np.float32) for one in found]
    looked = [_sample_words(text, reports, one) for one in found]
    tops = [dict.fromkeys((1, GUESSES), given_away) for _ in found]
    for one, pairs in zip(found, looked, strict=True):
        one.ranks = [1] * int((pairs[:, 0] < 0).sum())
    places = _places(text, secrets)
    for columns, distances in _pairs(text.vectors, reports.codes, secrets):
        mine = places[reports.codes[columns]]
        here = np.flatnonzero(mine >= 0)
        for kernel, weights, one, pairs, top in zip(kernels, joint, found, looked, tops, strict=True):
            probabilities = kernel.weights(distances) * weights
            probabilities[here, mine[here]] += kept[mine[here]]
            if kernel.report_weights is not None:
                probabilities *= kernel.report_weights[reports.codes[columns], None].astype(np.float32)
            best = largest(probabilities, GUESSES).astype(float)
            top[1] += float(best.max(axis=1).sum())
            top[GUESSES] += float(best.sum())
            for report, secret in pairs[(pairs[:, 0] >= columns.start) & (pairs[:, 0] < columns.stop)]:
                row = probabilities[report - columns.start]
                one.ranks.append(1 + int(np.count_nonzero(row > row[secret])))
    for one, top in zip(found, tops, strict=True):
        one.top = top


def largest(rows: Singles, count: int) -> Singles:
    """Return the largest entries of every row."""
    return np.asarray(np.take_along_axis(rows, largest_places(rows, count), axis=1))


def largest_places(rows: Singles, count: int) -> Integers:
    """Return where the largest entries of every row are: in the chunks with the largest heads."""
    if count == 1:
        return np.asarray(rows.argmax(axis=1)[:, None])
    width = rows.shape[1] // CHUNK * CHUNK
    if width < 4 * count * CHUNK:
        return np.asarray(np.argpartition(rows, -count, axis=1)[:, -count:])
    heads = rows[:, :width].reshape(len(rows), -1, CHUNK).max(axis=2)
    chunks = np.argpartition(heads, -count, axis=1)[:, -count:]
    some = (chunks[:, :, None] * CHUNK + np.arange(CHUNK)).reshape(len(rows), -1)
    rest = np.broadcast_to(np.arange(width, rows.shape[1]), (len(rows), rows.shape[1] - width))
    some = np.hstack([some, rest])
    best = np.argpartition(np.take_along_axis(rows, some, axis=1), -count, axis=1)[:, -count:]
    return np.asarray(np.take_along_axis(some, best, axis=1))


def leaks(vectors: Singles, kernels: Sequence[Kernel]) -> list[float]:
    """Return the exact epsilon of every kernel between all its words, to about five digits.

    max over k of inner (min(d_jk, cap) - min(d_ik, cap)) is inner min(d_ij, cap), at k = i; so what is left is
    max over pairs of (inner min(d_ij, cap) + ln N_j - ln N_i) / d_ij: n^2 work.
    """
    codes = np.arange(len(vectors))
    logs = np.empty((len(kernels), len(vectors)), dtype=np.float32)
    for rows, distances in _pairs(vectors, codes, codes):
        for number, kernel in enumerate(kernels):
            logs[number, rows] = np.log(kernel.weights(distances).sum(axis=1, dtype=np.float64))
    worst = [0.0] * len(kernels)
    for rows, distances in _pairs(vectors, codes, codes):
        apart = np.ascontiguousarray(distances[:, rows.start :])  # each pair once
        apart[apart == 0.0] = np.inf
        for number, kernel in enumerate(kernels):
            change = np.abs(logs[number, rows, None] - logs[number, rows.start :])
            if np.isinf(kernel.cap):
                change /= apart
                worst[number] = max(worst[number], kernel.inner + float(change.max()))
                continue
            change += np.float32(kernel.inner) * np.minimum(apart, np.float32(kernel.cap))
            worst[number] = max(worst[number], float((change / apart).max()))
    return worst


def _running_sums(weights: Singles) -> Floats:
    """Return running sums over chunks of reports; the last is the whole."""
    width = weights.shape[1] // CHUNK * CHUNK
    sums = weights[:, :width].reshape(len(weights), -1, CHUNK).sum(axis=2)
    rest = weights[:, width:].sum(axis=1, keepdims=True)
    return np.cumsum(np.hstack([sums, rest]), axis=1, dtype=np.float64)


def _draw_places(weights: Singles, sums: Floats, rows: Integers, coins: Floats) -> Integers:
    """Return the place of a report for every coin: first its chunk, then the report within."""
    targets = coins * sums[rows, -1]
    chunks = np.empty(len(rows), dtype=np.int64)
    ends = np.searchsorted(rows, np.arange(len(sums) + 1))
    for row, line in enumerate(sums):
        some = slice(ends[row], ends[row + 1])
        chunks[some] = np.searchsorted(line, targets[some], side="right")
    chunks = np.minimum(chunks, sums.shape[1] - 1)
    before = np.where(chunks > 0, sums[rows, chunks - 1], 0.0)
    places = np.minimum(chunks[:, None] * CHUNK + np.arange(CHUNK), weights.shape[1] - 1)
    inside = np.cumsum(weights[rows[:, None], places], axis=1, dtype=np.float64)
    step = (inside <= (targets - before)[:, None]).sum(axis=1)
    return np.asarray(np.minimum(chunks * CHUNK + np.minimum(step, CHUNK - 1), weights.shape[1] - 1))


def _sample_words(text: Corpus, reports: Reports, one: KernelResults) -> Integers:
    """Return some words of the first repetition as (place of the report or -1, place of the secret)."""
    some = np.random.default_rng(7).choice(len(text.codes), min(RANKED, len(text.codes)), replace=False)
    given = _places(text, reports.codes)[one.texts[0, some]]
    return np.stack([given, _places(text, text.used)[text.codes[some]]], axis=1)


def _places(text: Corpus, codes: Integers) -> Integers:
    """Return the place of every word of the vocabulary in a list of codes, -1 where it is not there."""
    places = np.full(len(text.words), -1)
    places[codes] = np.arange(len(codes))
    return places


def _pairs(vectors: Singles, rows: Integers, columns: Integers) -> Iterator[tuple[slice, Singles]]:
    """Yield distances between words, block by block; a word has none to itself."""
    centred = vectors - vectors.mean(axis=0)  # so that less is lost to rounding
    against = DistanceMatrix(centred[columns])
    places = np.full(len(vectors), -1)
    places[columns] = np.arange(len(columns))
    for start in range(0, len(rows), BLOCK):
        some = slice(start, min(start + BLOCK, len(rows)))
        apart = against.distances(centred[rows[some]])
        own = places[rows[some]]
        apart[np.flatnonzero(own >= 0), own[own >= 0]] = 0.0
        yield some, apart


class DistanceMatrix:
    """Vectors that others are measured against: squares of distances are one product of matrices."""

    def __init__(self, vectors: Singles) -> None:
        squares = np.einsum("ij,ij->i", vectors, vectors)[:, None]
        self._factors = np.ascontiguousarray(np.hstack([-2.0 * vectors, np.ones_like(squares), squares]).T)

    def distances(self, vectors: Singles) -> Singles:
        """Return Euclidean distances, one row for every vector."""
        squares = np.einsum("ij,ij->i", vectors, vectors)[:, None]
        found = np.hstack([vectors, squares, np.ones_like(squares)]).astype(np.float32) @ self._factors
        return np.asarray(np.sqrt(np.maximum(found, 0.0, out=found), out=found))

    def farness(self, vectors: Singles) -> Singles:
        """Return what orders by distance and takes less time: the squares without what a row shares."""
        found = np.hstack([vectors, np.zeros((len(vectors), 1)), np.ones((len(vectors), 1))])
        return np.asarray(found.astype(np.float32) @ self._factors)


def distances(some: Singles, others: Singles) -> Singles:
    """Return Euclidean distances between few vectors."""
    return DistanceMatrix(others).distances(some)
