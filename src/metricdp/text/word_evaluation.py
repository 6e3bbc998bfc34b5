"""The worth of protected words, and what an attacker learns from them: by the distribution, on public sentences.

Nothing here looks at a table that is protected: what is found there would be one more release about it. The sentences
are the bundled ones, so the figures say what a mechanism does to words like these.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, cast

import numpy as np

from metricdp.arrays import Floats, Integers
from metricdp.auditing.leakage import has_rows
from metricdp.errors import InvalidInput
from metricdp.mechanisms import MECHANISMS, Mechanism
from metricdp.mechanisms.kinds.matrix import as_table
from metricdp.metrics import pairwise
from metricdp.spaces import FiniteSpace, require_space
from metricdp.text.bundled import sample_reviews, sample_sentences

FLATTENING = 2.7  # of Zipf's law as Mandelbrot has it: the word of rank r has a share of 1 / (r + 2.7)
DRAWS = 400  # of every word, where a distribution has no closed form
ATTACKS = 8  # reports of every word of the sample that an attacker sees
FOLDS, ROUNDS = 4, 3
RIDGE = 1.0
BLOCK = 128
STEPS = (0.5, 1.0, 1.25, 1.5, 1.75, 2.0, 3.0)


@dataclass(frozen=True)
class WordEvaluation:
    """What a mechanism does to the words of the bundled sentences.

    Attributes:
        epsilon: Its guarantee.
        unchanged: The share of words that are reported unchanged.
        distance: How far a report lies from its word on average.
        rank: The median rank of the true word among all for an attacker who knows the mechanism and how frequent words
            are, and sees the report; 1 is the likeliest. None where the distribution has no closed form.
        recovered: How often that attacker's first guess is right.
        accuracy: How often a classifier tells praise from complaint on held-out reviews, all of them protected; None
            where words have no vectors.
        clean: The same without protection.
        known: The share of the words of the sentences that are in the vocabulary; only they count.
    """

    epsilon: float
    unchanged: float
    distance: float
    rank: float | None
    recovered: float | None
    accuracy: float | None
    clean: float | None
    known: float


def frequencies(size: int) -> Floats:
    """Return public shares of words in the order of their frequency, by Zipf's law."""
    shares = 1.0 / (np.arange(1, size + 1) + FLATTENING)
    return np.asarray(shares / shares.sum())


def epsilon_range(space: FiniteSpace) -> tuple[float, ...]:
    """Return epsilons from where hardly a word stays to where nearly all do: about ln(n) over a usual distance."""
    some = np.unique(np.linspace(0, len(space) - 1, min(300, len(space))).astype(int))
    apart = pairwise(space.metric, space.points[some], space.points[some])
    usual = float(np.median(apart[apart > 0]))
    return tuple(float(f"{step * np.log(len(space)) / usual:.2g}") for step in STEPS)


def evaluate_words(mechanism: Mechanism, *, prior: Floats | None = None, seed: int = 2026) -> WordEvaluation:
    """Return what a mechanism on words does to the bundled sentences.

    Shares and distances are computed from the distribution; ranks and accuracies are of draws from a fixed seed.

    Args:
        mechanism: One whose secrets and reports are the same words.
        prior: What the attacker takes words to be worth; by Zipf's law in the order of the vocabulary unless given.
        seed: Of the draws.
    """
    space = words_of(mechanism)
    codes, known = _codes(sample_sentences(), space)
    if not sum(map(len, codes)):
        raise InvalidInput(
            "none of the bundled English sentences' words is in this vocabulary: there is nothing to measure on."
        )
    generator = np.random.default_rng(seed)
    spoken = np.concatenate(codes)
    distinct, place = np.unique(spoken, return_inverse=True)
    rows = distribution_rows(mechanism, distinct, generator)
    apart = pairwise(space.metric, space.points[distinct], space.points)
    stays = rows[np.arange(len(distinct)), distinct]
    rank, recovered = _attack(mechanism, spoken, frequencies(len(space)) if prior is None else prior, generator)
    accuracy, clean = _review_accuracies(mechanism, space, generator)
    return WordEvaluation(
        mechanism.guarantee.epsilon,
        float(stays[place].mean()),
        float((rows * apart).sum(axis=1)[place].mean()),
        rank,
        recovered,
        accuracy,
        clean,
        known,
    )


def unchanged(mechanism: Mechanism) -> float | None:
    """Return the share of the words of the bundled sample text that do not change, by the distribution.

    None where the distribution has no closed form, or the words are those of another language.
    """
    codes = np.concatenate(_codes(sample_sentences(), words_of(mechanism))[0])
    if not len(codes) or not has_rows(mechanism):
        return None
    distinct, place = np.unique(codes, return_inverse=True)
    rows = distribution_rows(mechanism, distinct, np.random.default_rng(0))
    return float(rows[np.arange(len(distinct)), distinct][place].mean())


def words_of(mechanism: Mechanism) -> FiniteSpace:
    """Return the words that are both secrets and reports of a mechanism."""
    if mechanism.inputs.finite is None or mechanism.outputs.finite is None or not mechanism.inputs.is_text:
        raise InvalidInput("this is a mechanism on places or numbers: words need one on a vocabulary of words.")
    space = require_space(mechanism.inputs.finite, FiniteSpace, "inputs")
    reports = require_space(mechanism.outputs.finite, FiniteSpace, "outputs")
    if reports is not space and not np.array_equal(reports.coordinates, space.coordinates):
        raise InvalidInput("the words of this mechanism's reports must be those of its secrets.")
    return space


def distribution_rows(mechanism: Mechanism, codes: Integers, generator: np.random.Generator) -> Floats:
    """Return the probabilities of all reports for some words; those of noise are shares of draws."""
    if has_rows(mechanism):
        return np.asarray(MECHANISMS.facet("rows", mechanism)(mechanism, codes), dtype=np.float64)
    counts = np.zeros((len(codes), int(mechanism.outputs.size or 0)))
    for row, code in enumerate(codes):
        np.add.at(counts[row], np.asarray(mechanism.sample(np.full(DRAWS, code), rng=generator)), 1.0 / DRAWS)
    return counts


def _attack(
    mechanism: Mechanism, spoken: Integers, prior: Floats, generator: np.random.Generator
) -> tuple[float | None, float | None]:
    """Return the median rank of the true word by the posterior p_x z(y | x), and how often it is the first."""
    true = np.repeat(spoken, ATTACKS)
    reports = np.asarray(mechanism.sample(true, rng=generator))
    log_prior, ranks = np.log(prior), np.empty(len(true))
    seen, place = np.unique(reports, return_inverse=True)
    for start in range(0, len(seen), BLOCK):
        columns = _log_columns(mechanism, seen[start : start + BLOCK])
        if columns is None:
            return None, None
        posterior = columns + log_prior  # one row a report
        own = (place >= start) & (place < start + BLOCK)
        held = posterior[place[own] - start]
        truth = held[np.arange(len(held)), true[own]][:, None]
        ranks[own] = 1.0 + (held > truth).sum(axis=1)
    return float(np.median(ranks)), float((ranks == 1.0).mean())


def _log_columns(mechanism: Mechanism, reports: Integers) -> Floats | None:
    """Return ln z(y | x) for some reports y (rows) and all words x; None where the distribution has no closed form."""
    kind, table = cast(Any, mechanism), as_table(mechanism)
    if table is not None:
        with np.errstate(divide="ignore"):
            logs = np.log(table.matrix[:, reports]) - np.log(table.matrix.sum(axis=1))[:, None]
        return np.asarray(logs.T)
    if not hasattr(kind, "log_normalisers"):
        return None
    # Distances are symmetric: z(y | x) = z(x | y) N_y w_y / (N_x w_x).
    with np.errstate(divide="ignore"):
        logs = np.log(np.asarray(kind.rows(reports), dtype=np.float64))
    sums = np.asarray(kind.log_normalisers)
    weights = np.zeros(len(sums)) if kind.log_weights is None else np.asarray(kind.log_weights)
    return np.asarray(logs + (sums + weights)[reports][:, None] - (sums + weights))


def _review_accuracies(
    mechanism: Mechanism, space: FiniteSpace, generator: np.random.Generator
) -> tuple[float | None, float | None]:
    """Return the accuracy of telling praise from complaint, with protected and with clean held-out reviews."""
    if space.points.dtype.kind == "U":
        return None, None
    codes, _ = _codes(sample_reviews()[0], space)
    ends = np.cumsum([len(one) for one in codes])[:-1]
    flat = np.concatenate(codes)
    drawn = [np.asarray(mechanism.sample(flat, rng=generator)) for _ in range(ROUNDS)]
    found = [_held_out_accuracy(space, np.split(one, ends)) for one in (flat, *drawn)]
    return float(np.mean(found[1:])), found[0]


def _held_out_accuracy(space: FiniteSpace, codes: Sequence[Integers]) -> float:
    """Return the share of reviews that a classifier learnt on the others gets right."""
    labels = sample_reviews()[1].astype(float)
    values = np.array([space.points[one].mean(axis=0) if len(one) else np.zeros(space.dimension) for one in codes])
    # A complaint is written after the praise of the same thing: the two are learnt from, or held out, together.
    fold = np.tile(np.random.default_rng(0).permutation(len(values) // 2) % FOLDS, 2)
    right = 0
    for number in range(FOLDS):
        learnt = fold != number
        centre, spread = values[learnt].mean(axis=0), values[learnt].std() or 1.0
        scaled = np.column_stack([(values - centre) / spread, np.ones(len(values))])
        weights = _logistic(scaled[learnt], labels[learnt])
        right += int(((scaled[~learnt] @ weights > 0) == (labels[~learnt] > 0.5)).sum())
    return right / len(values)


def _logistic(values: Floats, labels: Floats) -> Floats:
    """Return the weights of a logistic regression with a ridge penalty."""
    from scipy.optimize import minimize
    from scipy.special import expit

    def loss(weights: Floats) -> tuple[float, Floats]:
        odds = values @ weights
        value = np.logaddexp(0.0, odds).sum() - labels @ odds + 0.5 * RIDGE * weights @ weights
        return float(value), values.T @ (expit(odds) - labels) + RIDGE * weights

    return np.asarray(minimize(loss, np.zeros(values.shape[1]), jac=True, method="L-BFGS-B", tol=1e-12).x)


def _codes(sentences: Sequence[str], space: FiniteSpace) -> tuple[list[Integers], float]:
    """Return the codes of the known words of every sentence, and the share of words that are known."""
    place = {word: code for code, word in enumerate(space.coordinates[:, 0].tolist())}
    spoken = [re.findall(r"[a-z']+", sentence.lower()) for sentence in sentences]
    known = [np.array([place[word] for word in words if word in place], dtype=np.int64) for words in spoken]
    total = sum(map(len, spoken))
    return known, sum(map(len, known)) / max(1, total)
