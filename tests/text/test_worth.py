"""What words are worth and what an attacker makes of them: against sums written out, on a small vocabulary."""

from __future__ import annotations

import csv
import re

import numpy as np
import pytest

import metricdp as mdp
from metricdp.errors import InvalidInput
from metricdp.mechanisms import MatrixMechanism
from metricdp.text import bundled_vectors, sample_reviews, sample_sentences, word_evaluation

WORDS = ["the", "my", "doctor", "said", "pain", "and", "train", "clean", "dirty", "good", "bad"]


@pytest.fixture(scope="module")
def made() -> MatrixMechanism:
    vectors = np.random.default_rng(5).normal(size=(len(WORDS), 3))
    mechanism = mdp.exponential(mdp.vocabulary(WORDS, vectors), 1.5)
    assert isinstance(mechanism, MatrixMechanism)
    return mechanism


def spoken() -> list[str]:
    text = (bundled_vectors().parent / "sample.txt").read_text()
    return [word for word in re.findall(r"[a-z']+", text.lower()) if word in WORDS]


def test_shares_and_distances_are_sums_over_the_law(made: MatrixMechanism) -> None:
    distribution = made.matrix / made.matrix.sum(axis=1, keepdims=True)
    points = np.asarray(made.inputs.points)
    stays, away = [], []
    for word in spoken():
        i = WORDS.index(word)
        stays.append(distribution[i, i])
        away.append(sum(distribution[i, k] * np.linalg.norm(points[i] - points[k]) for k in range(len(WORDS))))
    found = word_evaluation.evaluate_words(made)
    assert found.unchanged == pytest.approx(np.mean(stays), rel=1e-12)
    assert word_evaluation.unchanged(made) == pytest.approx(np.mean(stays), rel=1e-12)
    assert found.distance == pytest.approx(np.mean(away), rel=1e-12)
    assert found.epsilon == made.guarantee.epsilon


def test_the_attacker_is_bayes(made: MatrixMechanism) -> None:
    """Over all reports, the chance that the first of the posterior is the truth; draws come close to it."""
    distribution = made.matrix / made.matrix.sum(axis=1, keepdims=True)
    prior = np.array([1 / (r + 1 + 2.7) for r in range(len(WORDS))])
    right, ranks = [], []
    for word in spoken():
        i = WORDS.index(word)
        for k in range(len(WORDS)):
            posterior = prior * distribution[:, k]
            ranks.append((1 + int((posterior > posterior[i]).sum()), distribution[i, k] / len(spoken())))
            right.append(distribution[i, k] * float(posterior.argmax() == i))
    found = word_evaluation.evaluate_words(made)
    assert found.recovered == pytest.approx(sum(right) / len(spoken()), abs=0.06)
    below = sum(weight for rank, weight in ranks if rank < (found.rank or 0))
    beyond = sum(weight for rank, weight in ranks if rank <= (found.rank or 0))
    assert below < 0.6
    assert beyond > 0.4


def test_a_larger_epsilon_keeps_more_words_and_reveals_more(made: MatrixMechanism) -> None:
    loud = word_evaluation.evaluate_words(mdp.exponential(made.inputs, 12.0))
    quiet = word_evaluation.evaluate_words(mdp.exponential(made.inputs, 0.05))
    assert loud.unchanged > 0.9 > 0.3 > quiet.unchanged
    assert loud.recovered is not None
    assert quiet.recovered is not None
    assert loud.recovered > quiet.recovered
    assert loud.distance < quiet.distance


def test_noise_has_no_closed_law_and_so_no_attacker(made: MatrixMechanism) -> None:
    found = word_evaluation.evaluate_words(mdp.madlib(made.inputs, 3.0))
    assert word_evaluation.unchanged(mdp.madlib(made.inputs, 3.0)) is None
    assert found.rank is None
    assert found.recovered is None
    assert 0.0 < found.unchanged < 1.0


def test_the_same_figures_come_again(made: MatrixMechanism) -> None:
    assert word_evaluation.evaluate_words(made) == word_evaluation.evaluate_words(made)


def test_words_of_another_language_and_places_are_refused() -> None:
    german = mdp.exponential(mdp.vocabulary(["haus", "baum"], [[0.0], [1.0]]), 1.0)
    with pytest.raises(InvalidInput, match="nothing to measure on"):
        word_evaluation.evaluate_words(german)
    places = mdp.exponential(mdp.FiniteSpace([[0.0], [1.0]], mdp.Lp(2)), 1.0)
    with pytest.raises(InvalidInput, match="mechanism on places or numbers"):
        word_evaluation.evaluate_words(places)


def test_the_ladder_grows_and_is_round(made: MatrixMechanism) -> None:
    steps = word_evaluation.epsilon_range(made.inputs)
    assert list(steps) == sorted(set(steps))
    assert all(f"{step:.2g}" == f"{step:g}" for step in steps)


def test_every_bundled_word_has_a_vector_and_files_are_small() -> None:
    with np.load(bundled_vectors(), allow_pickle=False) as held:
        words, vectors = held["words"].tolist(), held["vectors"]
    text = " ".join([*sample_sentences(), *sample_reviews()[0]]).lower()
    assert set(re.findall(r"[a-z']+", text)) <= set(words)
    assert len(words) == len(set(words)) == len(vectors) == 2161
    assert sum(path.stat().st_size for path in bundled_vectors().parent.iterdir()) < 500_000


def test_reviews_come_in_pairs_of_praise_and_complaint() -> None:
    """Both of a pair are held out together, so that a classifier cannot learn the one from the other."""
    rows = list(csv.reader((bundled_vectors().parent / "reviews.csv").read_text().splitlines()))[1:]
    labels = [int(row[0]) for row in rows]
    assert labels == [1] * 80 + [0] * 80
    assert len({row[1] for row in rows}) == 160
