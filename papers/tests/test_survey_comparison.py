"""All families at equal promise: loss, adversary's error and bound of a small map and short traces, by loops."""

from __future__ import annotations

import itertools
import math
from pathlib import Path

import numpy as np
import pytest

import metricdp as mdp
from brute import leakage, least_loss
from metricdp.design import BUILDERS
from metricdp_papers.common.rows import read_csv
from metricdp_papers.survey import comparison, domains, families, traces
from metricdp_papers.survey.asked import ComparisonTask, ReportSampler
from metricdp_papers.survey.comparison import LOSS, MISSING, TABLE, compared
from metricdp_papers.survey.domains import DOMAINS, ComparisonDomain

PRIOR = np.array([0.05, 0.1, 0.05, 0.1, 0.3, 0.15, 0.05, 0.15, 0.05])


@pytest.fixture(scope="module")
def small():
    """The whole comparison on a map of 3 x 3 cells."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(
            DOMAINS, "grid", ComparisonDomain("nine cells", lambda: mdp.grid((3, 3)), lambda _: PRIOR, (1.0,))
        )
        patch.setattr(comparison, "DRAWS", 400)
        yield compared("grid", 1.0)


def by_name(rows):
    return {row["family"]: row for row in rows if row["measure"] == LOSS}


def test_no_family_with_the_promise_loses_less_than_the_bound_and_the_bound_is_true(small):
    space = mdp.grid((3, 3))
    best = least_loss(space.distances, PRIOR, space.distances)
    same = [row for row in small if row["measure"] == LOSS and row["promise"] == "the same"]
    assert len(same) >= 25
    assert len({row["bound"] for row in same}) == 1
    assert 0.98 * best <= same[0]["bound"] <= best * (1 + 1e-7)
    for row in same:
        drawn = "draws" in row["note"]
        assert row["corrected"] >= (0.9 if drawn else 1 - 1e-9) * best, row
        assert row["above_bound"] == pytest.approx(max(row["corrected"] / row["bound"] - 1, 0))
        assert row["adversary_error"] <= row["corrected"] * (1.1 if drawn else 1 + 1e-9)  # guessing the report
    own = [row for row in small if row["measure"] == LOSS and row["promise"] != "the same"]
    assert {row["family"] for row in own} == {"policy graph, its own promise", "gaussian, its own promise"}
    assert all(row["bound"] is None and row["above_bound"] is None for row in own)
    assert "not pure" in next(row["promise"] for row in own if row["family"].startswith("gaussian"))


def test_loss_and_adversary_error_are_those_of_loops(small):
    points = list(itertools.product(range(3), repeat=2))
    apart = [[math.dist(a, b) for b in points] for a in points]
    law = []
    for row in apart:
        kernel = [math.exp(-d / 2) for d in row]
        law.append([one / math.fsum(kernel) for one in kernel])
    every = range(9)
    loss = math.fsum(PRIOR[x] * law[x][y] * apart[x][y] for x in every for y in every)
    error = math.fsum(min(math.fsum(PRIOR[x] * law[x][y] * apart[x][g] for x in every) for g in every) for y in every)
    found = by_name(small)["condensed (exponential, half the budget)"]
    assert found["corrected"] == pytest.approx(loss, rel=1e-9)
    assert found["adversary_error"] == pytest.approx(error, rel=1e-9)


def test_every_builder_stands_in_the_comparison_or_is_missing_with_a_reason(small):
    said = {row["family"].replace(" ", "_") for row in small}
    otherwise = {"masked": "masked_(disk)", "weighted_exponential": "weighted_exponential_(by_the_prior)",
                 "quantised": "optimal,_quantised_to_24_bits", "product": "product_of_rows_and_columns",
                 "gaussian": "gaussian,_its_own_promise", "madlib": "madlib_(noise,_nearest_word)"}  # fmt: skip
    assert {otherwise.get(name, name) for name in BUILDERS.names} <= said
    assert all(row["note"] for row in small if row["measure"] == MISSING)
    assert len({row["family"] for row in small}) == len(small)


def test_traces_step_by_step_keep_the_promise_over_all_runs(monkeypatch):
    for module in (domains, traces):
        monkeypatch.setattr(module, "STEPS", 2)
    asked = ComparisonTask("traces", 2.0)
    at = list(itertools.product(range(4), repeat=2))
    apart = np.array([[max(abs(a - b) for a, b in zip(x, y, strict=True)) for y in at] for x in at], dtype=float)
    np.testing.assert_array_equal(asked.space.distances, apart)
    assert asked.prior.sum() == pytest.approx(1)
    for name, build in traces.families(asked).items():
        law = build()
        np.testing.assert_allclose(law.matrix.sum(axis=1), 1.0, rtol=1e-9)
        assert leakage(law.matrix, apart)[0] <= 2.0, name
        assert law.matrix.shape == law.costs.shape
    half = mdp.exponential(mdp.FiniteSpace(np.arange(4.0)[:, None], mdp.Lp(1)), 1.0 * traces.SHY).matrix
    half = half / half.sum(axis=1, keepdims=True)
    apart_steps = traces.families(asked)["steps apart, exponential"]()
    for x, y in ((0, 5), (7, 2), (15, 15)):
        expected = half[at[x][0], at[y][0]] * half[at[x][1], at[y][1]]
        assert apart_steps.matrix[x, y] == pytest.approx(expected, rel=1e-9)


def test_a_family_that_does_not_keep_the_promise_is_refused():
    asked = ComparisonTask("grid", 0.5)
    bare = np.exp(-0.5 * asked.space.distances)  # without the half: the normaliser leaks as well
    with pytest.raises(mdp.MetricdpError, match="epsilon"):
        asked.check_table(bare / bare.sum(axis=1, keepdims=True))


@pytest.mark.parametrize("domain", [name for name in DOMAINS if name != "images"])
def test_the_secrets_of_a_domain_and_their_prior_fit_together(domain):
    asked = ComparisonTask(domain, 1.0)
    assert len(asked.prior) == len(asked.space) == len(asked.loss)
    assert asked.prior.sum() == pytest.approx(1)
    assert np.all(asked.loss >= 0)
    listed, missing = families.families(asked)
    assert not set(listed) & set(missing)


def test_the_picture_draws_every_domain_that_has_rows(small, tmp_path):
    path = tmp_path / "comparison.png"
    comparison.picture(TABLE, small, path)
    assert path.stat().st_size > 10_000
    assert isinstance(families.families(ComparisonTask("grid", 1.0))[0]["laplace"](), ReportSampler)


def test_no_recorded_loss_lies_below_its_bound():
    rows = read_csv(Path(__file__).parents[1] / "docs" / "results" / "survey_comparison.csv")[1]
    assert {row["domain"] for row in rows} <= set(DOMAINS)
    assert len({row["domain"] for row in rows}) == len(DOMAINS)
    bounded = [row for row in rows if row["measure"] == LOSS and row["bound"]]
    assert len(bounded) > 350
    for row in bounded:
        assert float(row["corrected"]) >= float(row["bound"]) * (1 - 1e-9), row
        assert float(row["adversary_error"]) <= float(row["corrected"]) * 1.05, row
