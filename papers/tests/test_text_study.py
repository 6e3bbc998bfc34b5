"""The text study: laws, attackers and promises against brute force, and rows that say what they are about."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from metricdp_papers.common import StudyRequest, reproduce
from metricdp_papers.text import kernels, measures, noise, rivals, study
from metricdp_papers.text.corpora import Corpus, made_up
from metricdp_papers.text.study import STUDY


@pytest.fixture(scope="module")
def text() -> Corpus:
    return made_up(48, 80)


@pytest.fixture(scope="module")
def apart(text: Corpus) -> Any:
    vectors = text.vectors.astype(float)
    return np.linalg.norm(vectors[:, None] - vectors[None], axis=2)


def estimate_recovery(text: Corpus, law: Any) -> tuple[float, float, float, int]:
    """What stays, and what the Bayes attacker recovers with one and ten guesses, from the whole matrix; median rank."""
    prior = text.counts / text.counts.sum()
    best = np.sort(prior[:, None] * law, axis=0)[::-1]
    rank = 1 + int(np.searchsorted(best.sum(axis=1).cumsum(), 0.5))
    return float(prior @ np.diag(law)), float(best[0].sum()), float(best[:10].sum()), rank


def leak(law: Any, apart: Any) -> float:
    logs = np.log(law)
    change = np.abs(logs[:, None] - logs[None]).max(axis=2)
    np.fill_diagonal(change, 0.0)
    return float((change / np.where(apart > 0, apart, 1.0)).max())


@pytest.mark.parametrize(("inner", "cap"), [(0.4, np.inf), (1.7, np.inf), (1.0, 1.5)])
def test_kernels_are_what_their_matrix_says(text: Corpus, apart: Any, inner: float, cap: float) -> None:
    kernel = kernels.Kernel(2.0, inner, cap)
    (found,) = kernels.evaluate_kernels(text, [kernel], kernels.Reports.all(text), repetitions=40)
    weights = np.exp(-inner * np.minimum(apart, cap))
    law = weights / weights.sum(axis=1, keepdims=True)
    same, top, ten, rank = estimate_recovery(text, law)
    assert [found.unchanged, found.top[1], found.top[10]] == pytest.approx([same, top, ten], rel=1e-5)
    assert abs(np.median(found.ranks) - rank) <= 1
    assert kernels.leaks(text.vectors, [kernel]) == pytest.approx([leak(law, apart)], rel=1e-4)
    word = text.used[0]
    drawn = np.bincount(found.texts[:, text.codes == word].ravel(), minlength=len(law))
    assert np.abs(drawn / drawn.sum() - law[word]).max() < 5.0 / np.sqrt(drawn.sum())


def test_santext_plus_gives_away_the_words_it_keeps(text: Corpus, apart: Any) -> None:
    reports = rivals.santext_plus(text)
    (found,) = kernels.evaluate_kernels(text, [kernels.Kernel(2.0, 1.0)], reports, repetitions=1)
    law = np.zeros_like(apart)
    for place, word in enumerate(text.used):
        weights = np.exp(-apart[word, reports.codes])
        law[word, reports.codes] = reports.replaced[place] * weights / weights.sum()
        law[word, word] += 1.0 - reports.replaced[place]
    same, top, ten, rank = estimate_recovery(text, law)
    assert [found.unchanged, found.top[1], found.top[10]] == pytest.approx([same, top, ten], rel=1e-5)
    assert np.median(found.ranks) == rank
    assert set(reports.codes) == set(text.used[len(text.used) - len(text.used) // 2 :])
    rows = measures.santext_plus("made up", (2.0,), 1)
    assert [row["as_published"] for row in rows if row["measure"] == "true epsilon"] == [np.inf]


def test_custext_keeps_words_within_sets_and_plain_epsilon_there(text: Corpus, apart: Any) -> None:
    sets = rivals.output_sets(text)
    members = [row[row >= 0] for row in sets.members]
    assert sorted(np.concatenate(members).tolist()) == list(range(48))
    first = members[0]  # the most frequent word with its nearest
    assert set(first) == set(apart[text.used[0]].argsort()[: len(first)])
    (found,), (within,) = rivals.custext(text, [2.0], repetitions=2)
    law, worst = np.zeros_like(apart), 0.0
    for some in members:
        near = apart[np.ix_(some, some)]
        weights = np.exp(-near / np.maximum(near.max(axis=1, keepdims=True), 1e-12))
        law[np.ix_(some, some)] = weights / weights.sum(axis=1, keepdims=True)
        mine = law[np.ix_(some, some)]
        assert np.abs(np.log(mine)[:, None] - np.log(mine)[None]).max() <= 2.0  # epsilon, whatever the distance
        worst = max(worst, leak(mine, near))
    same, top, ten, rank = estimate_recovery(text, law)
    assert [found.unchanged, found.top[1], found.top[10]] == pytest.approx([same, top, ten], rel=1e-5)
    assert found.ranks == [rank]
    assert within == pytest.approx(worst, rel=1e-4)
    together = {int(word): number for number, some in enumerate(members) for word in some}
    assert all(together[int(a)] == together[int(b)] for a, b in zip(text.codes, found.texts[1], strict=True))


def test_the_attack_on_noise_lies_around_the_best_one(text: Corpus) -> None:
    epsilon, rng, size = 2.0, np.random.default_rng(0), 20_000
    law = np.zeros((48, 48))
    for word in text.used:
        steps = rng.normal(size=(size, 6))
        steps *= (rng.gamma(6, 1.0 / epsilon, size) / np.linalg.norm(steps, axis=1))[:, None]
        away = (text.vectors**2).sum(axis=1) - 2.0 * (text.vectors[word] + steps) @ text.vectors.T
        law[word] = np.bincount(away.argmin(axis=1), minlength=48) / size
    same, top, ten, _ = estimate_recovery(text, law)
    drawn = noise.noisy(text, epsilon, None, repetition=0)
    found = noise.estimate_recovery(text, drawn, drawn.nearest[:, 0], epsilon, None)
    assert found.fresh[1] - 3.0 * found.width[1] < top < found.most[1] + 3.0 * found.width[1]
    assert found.fresh[10] - 3.0 * found.width[10] < ten < found.most[10] + 3.0 * found.width[10]
    assert found.fresh[1] <= found.most[1]
    assert abs(np.mean(drawn.nearest[:, 0] == text.codes) - same) < 0.06
    assert (drawn.apart[:, 0] <= drawn.apart[:, 1]).all()
    second = noise.second_choice(drawn, repetition=0)
    near, far = drawn.apart.astype(float).T
    expected = np.mean(0.25 * far / (0.75 * near + 0.25 * far))
    assert abs(np.mean(second == drawn.nearest[:, 0]) - expected) < 0.06


def test_shaped_noise_promises_more_than_epsilon_in_plain_distance(text: Corpus) -> None:
    matrix = noise.shape(text)
    root, inverse = noise.roots(matrix)
    assert root @ root == pytest.approx(matrix)
    steps = np.random.default_rng(1).normal(size=(500, 6))
    stretch_factor = np.linalg.norm(steps @ inverse, axis=1) / np.linalg.norm(steps, axis=1)
    assert 1.0 < stretch_factor.max() <= noise.stretch_factor(matrix) * (1 + 1e-9)
    assert np.trace(matrix) == pytest.approx(6.0)


def test_equal_recovery_is_read_off_straight_lines() -> None:
    points = [("noise + nearest", 1.0, 0.1, 0.5), ("noise + nearest", 3.0, 0.3, 0.7),
              ("half-budget exponential", 2.0, 0.05, 0.5), ("certified exponential", 2.0, 0.55, 0.75)]  # fmt: skip
    rows = [
        {"text": "t", "mechanism": name, "epsilon": epsilon, "measure": measure, "as_published": value}
        for name, epsilon, top, right in points
        for measure, value in (("top-1", top), ("accuracy", right))
    ]
    found = {(row["mechanism"], row["recovered"], row["measure"]): row for row in study.equal_recovery(rows)}
    assert found["noise + nearest", 0.2, "accuracy"]["as_published"] == pytest.approx(0.6)
    assert found["noise + nearest", 0.2, "nominal epsilon"]["as_published"] == pytest.approx(2.0)
    assert found["exponential kernel", 0.3, "accuracy"]["corrected"] == pytest.approx(0.625)
    assert ("noise + nearest", 0.5, "accuracy") not in found  # beyond what was measured


def test_without_data_the_study_runs_on_a_text_that_is_made_up(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("METRICDP_DATA", str(tmp_path))
    keys = [piece.key for full in (False, True) for piece in STUDY.pieces(full)]
    assert keys
    assert all(key.startswith("made-up_") for key in keys)
    wanted = ("made-up_yardsticks", "made-up_half_1,2,4_1")
    few = replace(STUDY, pieces=lambda full: [one for one in STUDY.pieces(full) if one.key in wanted], picture=None)
    outcome = reproduce(few, StudyRequest(folder=tmp_path / "out"), say=lambda line: None)
    assert {row["mechanism"] for row in outcome.rows["2"]} == {"exponential kernel"}
    assert (tmp_path / "out" / "table_2.csv").is_file()
    clean = [row for row in outcome.rows["1"] if (row["mechanism"], row["measure"]) == ("clean text", "accuracy")]
    assert 0.7 < clean[0]["corrected"] < 0.9
