"""Published tables of probabilities: SanText and SanText+ (Yue et al. 2021), CusText (Chen et al. 2023)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from metricdp.arrays import Floats, Integers
from metricdp_papers.text.corpora import Corpus
from metricdp_papers.text.kernels import GUESSES, KernelResults, Reports, distances

SENSITIVE = 0.5  # SanText+: the rarer half of the text's words is sensitive
REPLACED = 0.2  # SanText+: how likely another word is replaced; else it is kept
SET_SIZE = 20  # CusText: words that share an output set


def santext(text: Corpus) -> Reports:
    """SanText: the words of the text itself, whether or not they are many, are secrets and reports."""
    return Reports(np.sort(text.used), np.ones(len(text.used)))


def santext_plus(text: Corpus) -> Reports:
    """SanText+: reports are the rarer half of the text's words; the others are mostly kept as they are."""
    sensitive = len(text.used) - int(SENSITIVE * len(text.used))
    replaced = np.where(np.arange(len(text.used)) < sensitive, REPLACED, 1.0)
    return Reports(np.sort(text.used[sensitive:]), replaced)


@dataclass(frozen=True)
class Sets:
    """CusText's partition: rows are sets of words, -1 where the last set is not full."""

    members: Integers

    def probabilities(self, text: Corpus, epsilon: float) -> Floats:
        """Return the probabilities within every set, exp(epsilon u / 2); u is the distance, scaled to [-1, 0]."""
        found = np.zeros((len(self.members), SET_SIZE, SET_SIZE))
        for number, row in enumerate(self.members):
            mine = row[row >= 0]
            apart = distances(text.vectors[mine], text.vectors[mine]).astype(float)
            np.fill_diagonal(apart, 0.0)
            far = apart.max(axis=1, keepdims=True)
            weights = np.exp(-0.5 * epsilon * apart / np.where(far > 0, far, 1.0))
            found[number, : len(mine), : len(mine)] = weights / weights.sum(axis=1, keepdims=True)
        return found


def output_sets(text: Corpus) -> Sets:
    """Partition the vocabulary: the most frequent word left takes its nearest words that are left, and so on."""
    order = np.concatenate([text.used, np.flatnonzero(text.counts == 0)])
    left = np.ones(len(text.words), dtype=bool)
    squares = np.einsum("ij,ij->i", text.vectors, text.vectors)
    rows = []
    for word in order:
        if not left[word]:
            continue
        apart = squares - 2.0 * (text.vectors @ text.vectors[word])  # without what all share
        apart[~left], apart[word] = np.inf, -np.inf
        taken = np.argpartition(apart, SET_SIZE)[:SET_SIZE] if len(apart) > SET_SIZE else np.arange(len(apart))
        taken = taken[np.argsort(apart[taken], kind="stable")]
        taken = taken[left[taken]]
        left[taken] = False
        rows.append(np.concatenate([taken, np.full(SET_SIZE - len(taken), -1)]))
    return Sets(np.array(rows))


def custext(text: Corpus, epsilons: Sequence[float], *, repetitions: int) -> tuple[list[KernelResults], list[float]]:
    """Protect a text by CusText and let the attacker try; beside it the largest epsilon between words of one set."""
    sets = output_sets(text)
    number, place = _positions(sets, len(text.words))
    shares = np.where(sets.members >= 0, text.counts[sets.members], 0) / len(text.codes)
    found, within = [], []
    for epsilon in epsilons:
        probabilities = sets.probabilities(text, epsilon)
        sums = probabilities.cumsum(axis=2)
        rows = sums[number[text.codes], place[text.codes]]
        rng = np.random.default_rng([19, round(1000 * epsilon)])
        coins = rng.random((repetitions, len(rows))) * rows[:, -1]
        drawn = (coins[..., None] >= rows[None]).sum(axis=2)
        texts = sets.members[number[text.codes], drawn]
        one = KernelResults(np.ones(0), texts)
        joint = shares[:, :, None] * probabilities  # sets x secrets x reports
        one.unchanged = float(np.trace(joint, axis1=1, axis2=2).sum())
        best = np.sort(joint, axis=1)[:, ::-1]
        one.top = {guesses: float(best[:, :guesses].sum()) for guesses in (1, GUESSES)}
        one.ranks = _ranks(joint, best)
        found.append(one)
        within.append(_leak(text, sets, probabilities))
    return found, within


def _positions(sets: Sets, words: int) -> tuple[Integers, Integers]:
    number, place = np.full(words, -1), np.full(words, -1)
    rows, columns = np.nonzero(sets.members >= 0)
    number[sets.members[rows, columns]], place[sets.members[rows, columns]] = rows, columns
    return number, place


def _ranks(joint: Floats, best: Floats) -> list[int]:
    """Return the median rank, as a list of one: the fewest guesses that recover half of the words."""
    curve = best.sum(axis=(0, 2)).cumsum() / joint.sum()
    return [1 + int(np.searchsorted(curve, 0.5))]


def _leak(text: Corpus, sets: Sets, probabilities: Floats) -> float:
    """Return the largest |ln z_xk - ln z_yk| / d(x, y) within a set, exactly."""
    worst = 0.0
    for row, table in zip(sets.members, probabilities, strict=True):
        mine = row[row >= 0]
        if len(mine) < 2:
            continue
        apart = distances(text.vectors[mine], text.vectors[mine]).astype(float)
        np.fill_diagonal(apart, np.inf)
        logs = np.log(table[: len(mine), : len(mine)])
        worst = max(worst, float((np.abs(logs[:, None] - logs[None]).max(axis=2) / apart).max()))
    return worst
