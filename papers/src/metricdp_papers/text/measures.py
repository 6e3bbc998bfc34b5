"""The pieces of the text study: a text, a mechanism, its epsilons; rows say what was measured and what is guaranteed.

`as_published` is measured with mechanisms of others as they are published, `corrected` with those of this package.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence

import numpy as np

from metricdp import exponential, optimal
from metricdp.arrays import Floats, Integers
from metricdp.errors import InvalidInput
from metricdp.mechanisms import KernelMechanism, Mechanism
from metricdp.problems import Problem
from metricdp_papers.common import Row, RowList
from metricdp_papers.text import noise, rivals
from metricdp_papers.text.corpora import Corpus, corpus
from metricdp_papers.text.kernels import (
    GUESSES,
    Kernel,
    KernelResults,
    Reports,
    attack_reports,
    evaluate_kernels,
    leaks,
)

PENALTY = 1e-3  # on the squared coefficients, beside the mean loss; the same in every run


def accuracy(text: Corpus, codes: Integers) -> float:
    """Learn from the protected training sentences and return the share of protected test sentences that are right."""
    features = mean_vectors(text, codes)
    middle, width = features[text.train].mean(axis=0), features[text.train].std(axis=0)
    features = (features - middle) / np.where(width > 0, width, 1.0)
    features = np.hstack([features, np.ones((len(features), 1))])
    coefficients = fit_weights(features[text.train], text.labels[text.train])
    said = features[text.test] @ coefficients > 0
    return float(np.mean(said == (text.labels[text.test] == 1)))


def mean_vectors(text: Corpus, codes: Integers) -> Floats:
    """Return the mean vector of every sentence; zeros where no word has one."""
    from scipy.sparse import csr_array

    shape = (len(text.labels), len(text.words))
    counted = csr_array((np.ones(len(codes)), (text.sentences, codes)), shape=shape)
    lengths = np.bincount(text.sentences, minlength=shape[0])
    return np.asarray((counted @ text.vectors.astype(float)) / np.maximum(lengths, 1)[:, None])


def fit_weights(features: Floats, labels: Integers) -> Floats:
    """Return the coefficients that minimise the mean logistic loss with the fixed penalty."""
    from scipy.optimize import minimize
    from scipy.special import expit

    signs = np.where(labels == 1, 1.0, -1.0)

    def loss(coefficients: Floats) -> tuple[float, Floats]:
        margins = signs * (features @ coefficients)
        value = np.logaddexp(0.0, -margins).mean() + PENALTY * (coefficients @ coefficients)
        slope = -(features.T @ (signs * expit(-margins))) / len(signs) + 2.0 * PENALTY * coefficients
        return float(value), slope

    return np.asarray(minimize(loss, np.zeros(features.shape[1]), jac=True, method="L-BFGS-B").x)


BETA = 0.001  # of the truncated mechanism: how likely a report lies beyond its limit, at most
TRUE = "true epsilon"


def yardsticks(name: str) -> list[Row]:
    """The text as it is, and what is known without any report."""
    text = corpus(name)
    share = float(np.mean(text.labels[text.test] == 1))
    clean, guess = _Rows(text, "clean text", math.inf, "corrected"), _Rows(text, "no report at all", 0.0, "corrected")
    clean.add("accuracy", accuracy(text, text.codes))
    clean.add("unchanged", 1.0)
    clean.add("top-1", 1.0)
    guess.add("accuracy", max(share, 1.0 - share), note="the more frequent class")
    guess.add("top-1", float(text.prior[0]), note=f"always {text.words[text.used[0]]!r}")
    guess.add(f"top-{GUESSES}", float(text.prior[:GUESSES].sum()))
    guess.add("median rank", float(1 + np.searchsorted(text.prior.cumsum(), 0.5)))
    return [*clean, *guess]


def half(name: str, epsilons: Sequence[float], repetitions: int) -> list[Row]:
    """The exponential mechanism with half the budget inside."""
    return _kernels(name, "half-budget exponential", [Kernel(one, one / 2) for one in epsilons], repetitions)


def certified(names: Sequence[str], epsilon: float, repetitions: int) -> list[Row]:
    """The exponential mechanism with as much inside as the exact audit of all pairs allows; texts of one vocabulary."""
    return _build_rows(
        names, "certified exponential", exponential(corpus(names[0]).space, epsilon, form="kernel"), repetitions
    )


def best(names: Sequence[str], epsilon: float, repetitions: int) -> list[Row]:
    """The least expected distance under equally likely words: a kernel with weights, and a bound for all others."""
    mechanism = optimal(Problem(corpus(names[0]).space, epsilon))
    return _build_rows(names, "optimal", mechanism, repetitions)


def _build_rows(names: Sequence[str], said: str, mechanism: Mechanism, repetitions: int) -> list[Row]:
    if not isinstance(mechanism, KernelMechanism):
        raise InvalidInput(f"the study looks at kernels, got a {type(mechanism).__name__}.")
    epsilon, logs = mechanism.guarantee.epsilon, mechanism.log_weights
    weights = None if logs is None else np.exp(logs)
    kernel = Kernel(epsilon, mechanism.inner, mechanism.cap, weights)
    rows: list[Row] = []
    for name in names:
        text = corpus(name)
        rng = np.random.default_rng([20, round(1000 * epsilon)])
        drawn = mechanism.sample(np.tile(text.codes, (repetitions, 1)), rng=rng)
        one = KernelResults(np.exp(mechanism.log_normalisers[text.used]), drawn)
        own = 1.0 if weights is None else weights[text.used]
        one.unchanged = float(text.prior @ (own / one.normalisers))
        attack_reports(text, [kernel], Reports.all(text), [one])
        made, proven = _Rows(text, said, epsilon, "corrected"), mechanism.certificate
        made.add_measured(one)
        made.add("inner budget", mechanism.inner / epsilon, note="as a share of epsilon")
        made.add(TRUE, float(proven.epsilon or epsilon), note="proven at all pairs")
        bound = {"bound": proven.lower_bound} if proven.lower_bound > 0 else {}
        made.add("expected distance", proven.loss, note="all words equally likely", **bound)
        rows += made
    return rows


def truncated(name: str, epsilons: Sequence[float], repetitions: int) -> list[Row]:
    """TEM: distances beyond a limit count as the limit (Carvalho et al. 2021)."""
    size = len(corpus(name).words) - 1
    kernels = [Kernel(one, one / 2, 2.0 / one * math.log((1.0 - BETA) * size / BETA)) for one in epsilons]
    return _kernels(name, "truncated (TEM)", kernels, repetitions)


def santext(name: str, epsilons: Sequence[float], repetitions: int) -> list[Row]:
    """SanText: the exponential mechanism over the words of the text itself."""
    reports = rivals.santext(corpus(name))
    note = "its list of words is taken from the text, which no promise covers"
    return _kernels(name, "SanText", [Kernel(one, one / 2) for one in epsilons], repetitions, (reports, note))


def santext_plus(name: str, epsilons: Sequence[float], repetitions: int) -> list[Row]:
    """SanText+: most words that are not rare are kept."""
    text = corpus(name)
    reports = rivals.santext_plus(text)
    kernels = [Kernel(one, one / 2) for one in epsilons]
    found = evaluate_kernels(text, kernels, reports, repetitions=repetitions)
    among = leaks(text.vectors[reports.codes], kernels)
    notes = [f"a word that was kept shows itself; among the sensitive words it is {least:.4g}" for least in among]
    return _as_published(text, "SanText+", epsilons, found, [math.inf] * len(found), notes)


def custext(name: str, epsilons: Sequence[float], repetitions: int) -> list[Row]:
    """CusText: sets of words, and plain epsilon-differential privacy within each."""
    text = corpus(name)
    found, within = rivals.custext(text, epsilons, repetitions=repetitions)
    said = "a report shows the set of its word; within a set it is {:.4g}, or plain epsilon whatever the distance"
    return _as_published(text, "CusText", epsilons, found, [math.inf] * len(found), map(said.format, within))


def noisy(name: str, epsilon: float, repetition: int) -> list[Row]:
    """Noise and the nearest word (Madlib), and Vickrey's choice between the two nearest, from the same noise."""
    text = corpus(name)
    drawn = noise.noisy(text, epsilon, None, repetition=repetition)
    second = noise.second_choice(drawn, repetition=repetition)
    rows: list[Row] = []
    for mechanism, codes in (("noise + nearest", drawn.nearest[:, 0]), ("Vickrey", second)):
        made = _Rows(text, mechanism, epsilon, "as_published")
        made.add_drawn(codes, repetition)
        if repetition == 0:
            made.add_recovery(noise.estimate_recovery(text, drawn, codes, epsilon, None))
            made.add(TRUE, epsilon, note="by theorem; choosing a word near by adds nothing")
        rows += made
    return rows


def shaped(name: str, epsilon: float, repetition: int) -> list[Row]:
    """Noise with the shape of the words (Mahalanobis) and the nearest word."""
    text = corpus(name)
    matrix = noise.shape(text)
    root, inverse = noise.roots(matrix)
    drawn = noise.noisy(text, epsilon, root, repetition=repetition)
    made = _Rows(text, "Mahalanobis noise", epsilon, "as_published")
    made.add_drawn(drawn.nearest[:, 0], repetition)
    if repetition == 0:
        made.add_recovery(noise.estimate_recovery(text, drawn, drawn.nearest[:, 0], epsilon, inverse))
        note = "by theorem, in Euclidean distance: the promise is epsilon in its own metric"
        made.add(TRUE, epsilon * noise.stretch_factor(matrix), note=note)
    return made


def _kernels(
    name: str, mechanism: str, kernels: Sequence[Kernel], repetitions: int, over: tuple[Reports, str] | None = None
) -> list[Row]:
    text = corpus(name)
    reports, note = over or (Reports.all(text), "")
    found = evaluate_kernels(text, kernels, reports, repetitions=repetitions)
    exact = leaks(text.vectors[reports.codes], kernels)
    return _as_published(text, mechanism, [one.epsilon for one in kernels], found, exact, [note] * len(found))


def _as_published(
    text: Corpus,
    mechanism: str,
    epsilons: Sequence[float],
    found: Sequence[KernelResults],
    true: Sequence[float],
    notes: Iterable[str],
) -> list[Row]:
    """Return the rows of one mechanism: what every epsilon gave, and the true epsilon with what is said of it."""
    rows: list[Row] = []
    for epsilon, one, value, note in zip(epsilons, found, true, notes, strict=True):
        made = _Rows(text, mechanism, epsilon, "as_published")
        made.add_measured(one)
        made.add(TRUE, value, note=note)
        rows += made
    return rows


class _Rows(RowList):
    """Rows about one text, mechanism and epsilon."""

    def __init__(self, text: Corpus, mechanism: str, epsilon: float, column: str) -> None:
        super().__init__({"text": text.name, "mechanism": mechanism, "epsilon": epsilon}, column)
        self.text = text

    def add_measured(self, found: KernelResults) -> None:
        """Add what a distribution gave: accuracy by repetition, the rest exactly from the distribution."""
        for repetition, codes in enumerate(found.texts):
            self.add("accuracy", accuracy(self.text, codes), repetition=repetition)
        self.add("unchanged", found.unchanged)
        for guesses, share in found.top.items():
            self.add(f"top-{guesses}", share)
        self.add("median rank", float(np.median(found.ranks)))

    def add_drawn(self, codes: Integers, repetition: int) -> None:
        """Add what one drawn text gave."""
        self.add("accuracy", accuracy(self.text, codes), repetition=repetition)
        self.add("unchanged", float(np.mean(codes == self.text.codes)), repetition=repetition)

    def add_recovery(self, found: noise.Recovery) -> None:
        """Add the estimate with its interval, and what the best attacker recovers at most."""
        for guesses, share in found.fresh.items():
            self.add(f"top-{guesses}", share, spread=found.width[guesses], note="simulated")
        for guesses, share in found.most.items():
            self.add(f"top-{guesses}, at most", share, note="simulated")
        self.add("median rank", found.median_rank, note="simulated")
