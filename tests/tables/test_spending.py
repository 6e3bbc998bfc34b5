"""Budgets for all rows of a person: totals that hold for everyone, rows chosen blindly, each row's own law."""

from __future__ import annotations

from collections import Counter, defaultdict
from fractions import Fraction
from pathlib import Path

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

import metricdp as mdp
from metricdp.errors import InvalidInput
from metricdp.tables import People, PersonLimits, formats, perturb, task_for
from metricdp.tables.people import Allotment, PeopleCounter, spending_in
from metricdp.tables.plan import person_limits

EARTH = mdp.laplace(mdp.Haversine(), 10.0)
LINE = mdp.laplace(mdp.Lp(1), 2.0, dimension=1)
CELLS = mdp.FiniteSpace([[float(i)] for i in range(5)], mdp.Lp(1))
SIZES = (1, 3, 4, 5, 40)  # rows of five persons


def table(seed: int = 0) -> pa.Table:
    rng = np.random.default_rng(seed)
    who = rng.permutation(np.repeat(np.arange(len(SIZES)), SIZES))
    return pa.table(
        {
            "who": [f"p{number}" for number in who],
            "lat": rng.uniform(41.0, 41.3, len(who)),
            "lon": rng.uniform(-8.7, -8.5, len(who)),
            "row": np.arange(len(who)),
        }
    )


@given(
    counts=st.lists(st.integers(1, 2000), min_size=1, max_size=12),
    budget=st.floats(0.01, 1e4),
    epsilon=st.floats(0.001, 1e3),
    at_most=st.none() | st.integers(1, 50),
)
@settings(max_examples=60, deadline=None)
def test_nobody_ever_exceeds_the_budget_and_nobody_gets_less_than_a_millionth_less(
    counts: list[int], budget: float, epsilon: float, at_most: int | None
) -> None:
    task = task_for(["x"], mdp.laplace(mdp.Lp(1), epsilon, dimension=1), columns="x")
    batch = pa.table({"who": np.repeat(np.arange(len(counts)), counts)})
    spending = spending_in([batch], PersonLimits("who", budget, "even", at_most), ["who", "x"], task)
    for person, count in enumerate(counts):
        rows, share, slack = spending.cost(person)
        assert rows == (count if at_most is None else min(count, at_most))
        assert rows * Fraction(share) <= Fraction(budget)  # exactly, not in doubles
        assert share <= epsilon
        assert share >= min(epsilon, budget / rows) - 2e-6
        assert slack == 0.0
    assert Fraction(spending.epsilon) <= Fraction(budget) * (1 + Fraction(1, 10**15))
    assert spending.epsilon >= max(float(rows * Fraction(e)) for rows, e, _ in map(spending.cost, range(len(counts))))
    assert spending.written + spending.left_out == sum(counts)


@pytest.mark.parametrize("kind", ["table", "batch", "pandas", "polars", "csv", "parquet", "dataset", "duckdb"])
@pytest.mark.parametrize(
    "asked", [{"allocation": "even"}, {"max_rows": 4}, {"allocation": "even", "max_rows": 8, "which": "random"}]
)
def test_every_kind_of_table_keeps_the_budget(kind: str, asked: dict[str, object], tmp_path: Path) -> None:
    whole = table()
    options = {"budget": "40/km", **asked}
    if kind in ("csv", "parquet"):
        source, target = tmp_path / f"in.{kind}", tmp_path / f"out.{kind}"
        (whole.to_pandas().to_csv(source, index=False) if kind == "csv" else pq.write_table(whole, source))
        summary = perturb(source, EARTH, to=target, id="who", **options)
        result = pd.read_csv(target) if kind == "csv" else pd.read_parquet(target)
        assert summary.spending is not None
        assert summary.composed_epsilon == summary.spending.epsilon <= 40.0
        assert summary.written == len(result)
        assert "together are protected at 40 per km" in "\n".join(summary.lines())
        assert "The table shows how many rows" in "\n".join(summary.lines())
    elif kind == "duckdb":
        connection = pytest.importorskip("duckdb").connect()
        connection.register("points", whole)
        result = mdp.perturb((connection, "FROM points"), EARTH, to="safe", id="who", **options).df()
        assert set(connection.sql("SHOW TABLES").df()["name"]) == {"points", "safe"}
    elif kind == "dataset":
        from pyarrow import dataset

        pq.write_table(whole, tmp_path / "in.parquet")
        made = perturb(
            dataset.dataset(tmp_path / "in.parquet"), EARTH, to=tmp_path / "out.parquet", id="who", **options
        )
        result = made.to_table().to_pandas()
    else:
        frame = {
            "table": lambda: whole,
            "batch": lambda: whole.to_batches()[0],
            "pandas": lambda: whole.to_pandas().set_index(pd.Index(np.arange(len(whole)) * 3)),
            "polars": lambda: pl.from_arrow(whole),
        }[kind]()
        result = perturb(frame, EARTH, id="who", **options)
        assert type(result) is type(frame)
        result = result if kind == "pandas" else result.to_pandas()
    limit = asked.get("max_rows", max(SIZES))
    assert sorted(Counter(result["who"]).values()) == sorted(min(size, limit) for size in SIZES)
    rows = list(result["row"])
    assert rows == sorted(rows)
    before = whole.to_pandas()
    if asked.get("which") != "random":
        assert rows == list(before.groupby("who").head(limit).sort_values("row")["row"])
    moved = before.set_index("row").loc[rows]
    assert np.all(moved["lat"].to_numpy() != result["lat"].to_numpy())
    assert moved["who"].tolist() == list(result["who"])


def test_each_row_has_the_law_of_its_own_epsilon() -> None:
    counts = {"few": 1, "some": 4, "many": 20}  # budget 4: epsilon 2, 1, 0.2 each
    repeats = 4000
    who = [f"{name}{number}" for name, size in counts.items() for number in range(repeats // size) for _ in range(size)]
    secrets = np.random.default_rng(0).normal(0, 50, len(who))
    shuffled = np.random.default_rng(1).permutation(len(who))
    frame = pa.table({"who": np.array(who)[shuffled], "x": secrets[shuffled]})
    result = perturb(frame, LINE, columns="x", id="who", budget=4.0, allocation="even", rng=np.random.default_rng(7))
    noise = np.asarray(result["x"]) - np.asarray(frame["x"])
    for name, scale in (("few", 0.5), ("some", 1.0), ("many", 5.0)):
        own = noise[[text.startswith(name) for text in np.asarray(frame["who"])]]
        assert stats.kstest(own, stats.laplace(scale=scale).cdf).pvalue > 1e-4


def test_rows_drawn_by_chance_are_equally_likely_and_do_not_depend_on_the_secret() -> None:
    task = task_for(["x"], LINE, columns="x")
    batch = pa.table({"who": [1, 2, 1, 2, 1, 1]})
    spending = spending_in([batch], PersonLimits("who", None, None, 2, "random"), ["who", "x"], task)
    seen: Counter[tuple[int, ...]] = Counter()
    for seed in range(600):
        kept = Allotment(spending, np.random.default_rng(seed)).portion(batch).kept
        assert kept[1]
        assert kept[3]
        seen[tuple(np.flatnonzero(kept & (np.asarray(batch["who"]) == 1)))] += 1
    assert len(seen) == 6
    assert stats.chisquare(list(seen.values())).pvalue > 1e-4


@given(sizes=st.lists(st.integers(1, 40), min_size=1, max_size=6), cut=st.integers(1, 60), limit=st.integers(1, 9))
@settings(max_examples=40, deadline=None)
def test_batches_give_what_the_whole_gives(sizes: list[int], cut: int, limit: int) -> None:
    who = np.random.default_rng(sum(sizes)).permutation(np.repeat(np.arange(len(sizes)), sizes))
    task = task_for(["x"], LINE, columns="x")
    batches = [pa.table({"who": who[start : start + cut]}) for start in range(0, len(who), cut)]
    spending = spending_in(batches, PersonLimits("who", None, None, limit), ["who", "x"], task)
    allotment = Allotment(spending)
    kept = np.concatenate([allotment.portion(batch).kept for batch in batches])
    allotment.finish()
    so_far: dict[int, int] = defaultdict(int)
    for person, stays in zip(who.tolist(), kept.tolist(), strict=True):
        assert stays == (so_far[person] < limit)
        so_far[person] += 1


def test_snapping_is_charged_for_every_row() -> None:
    task = task_for(["x"], mdp.exponential(CELLS, 1.0), columns="x", snap=0.25)
    batch = pa.table({"who": [1] * 8 + [2]})
    spending = spending_in([batch], PersonLimits("who", 2.0, "even"), ["who", "x"], task)
    assert spending.cost(1) == (8, 0.25, pytest.approx(0.25 * 0.5))
    assert spending.cost(2) == (1, 1.0, pytest.approx(0.5))
    assert spending.slack == pytest.approx(max(8 * 0.125, 0.5))
    rows = pa.table({"who": [1] * 8 + [2], "x": [0.1] * 9})
    result = perturb(rows, mdp.exponential(CELLS, 1.0), columns="x", snap=0.25, id="who", budget=2.0, allocation="even")
    assert set(np.asarray(result["x"])) <= {0.0, 1.0, 2.0, 3.0, 4.0}


def test_an_exponential_mechanism_is_built_for_every_count_and_an_optimal_one_is_refused() -> None:
    rows = pa.table({"who": [1] * 3000 + list(range(2, 3002)), "x": [0.0] * 6000})
    fine = mdp.exponential(CELLS, 1.5)
    result = perturb(rows, fine, columns="x", id="who", budget=1500.0, allocation="even", rng=np.random.default_rng(0))
    for part, epsilon in ((slice(0, 3000), 0.5), (slice(3000, 6000), 1.5)):
        distribution = mdp.exponential(CELLS, epsilon).matrix[0]
        seen = np.bincount(np.asarray(result["x"])[part].astype(int), minlength=5)
        assert stats.chisquare(seen, 3000 * distribution / distribution.sum()).pvalue > 1e-4
    best = mdp.optimal(mdp.Problem(CELLS, 1.5), gap=0.01)
    with pytest.raises(InvalidInput, match="designed for one epsilon"):
        perturb(rows, best, columns="x", id="who", budget=1500.0, allocation="even")
    assert len(perturb(rows, best, columns="x", id="who", budget=6.0, max_rows=4)) == 3004
    several = pa.table({"who": np.repeat(np.arange(80), np.arange(80) + 1), "x": [0.0] * 3240})
    with pytest.raises(InvalidInput, match="79 mechanisms"):
        perturb(several, fine, columns="x", id="who", budget=1.5, allocation="even")


@pytest.mark.parametrize(
    ("asked", "words"),
    [
        ({"budget": "40/km"}, "40 rows, which cost 40 x 10 .*--allocation even.*--max-rows 4"),
        ({"budget": 40.0, "max_rows": 5}, "lower --max-rows to 4"),
        ({"allocation": "even"}, "--budget 40/km"),
        ({"budget": 40.0, "allocation": "odd"}, "'even'"),
        ({"budget": -1.0, "allocation": "even"}, "above 0"),
        ({"budget": "40", "allocation": "even"}, "unit"),
        ({"budget": 1e-5, "allocation": "even"}, "millionth"),
        ({"max_rows": 0}, "at least 1"),
        ({"max_rows": 2, "which": "nearest"}, "'first' or 'random'"),
    ],
)
def test_what_cannot_hold_is_refused(asked: dict[str, object], words: str) -> None:
    with pytest.raises(InvalidInput, match=words):
        perturb(table(), EARTH, id="who", **asked)


def test_rows_of_nobody_and_unknown_columns_are_refused() -> None:
    some = table().to_pandas()
    some.loc[3, "who"] = None
    with pytest.raises(InvalidInput, match="1 row has no who"):
        perturb(some, EARTH, id="who", budget=40.0, allocation="even")
    with pytest.raises(InvalidInput, match="no column 'whose'"):
        perturb(some, EARTH, id="whose", budget=40.0, allocation="even")
    with pytest.raises(InvalidInput, match="--id"):
        perturb(some, EARTH, budget=40.0, allocation="even")
    reader = pa.RecordBatchReader.from_batches(table().schema, table().to_batches())
    with pytest.raises(InvalidInput, match="read once"):
        perturb(reader, EARTH, to="nowhere.parquet", id="who", budget=40.0, allocation="even")
    assert person_limits(People(), None) is None


def test_a_table_that_changes_while_it_is_read_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pq.write_table(table(), tmp_path / "in.parquet")
    from metricdp.tables import api

    counted = api.spending_in

    def one_row_less(*arguments: object) -> object:
        found = counted(*arguments)
        found.counts[b"p4"] -= 1
        return found

    monkeypatch.setattr(api, "spending_in", one_row_less)
    with pytest.raises(InvalidInput, match="changed"):
        perturb(tmp_path / "in.parquet", EARTH, to=tmp_path / "out.parquet", id="who", max_rows=2)
    assert not (tmp_path / "out.parquet").exists()


def test_batches_of_a_file_are_counted_together(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(formats.parquet, "BATCH_ROWS", 7)
    pq.write_table(table(), tmp_path / "in.parquet")
    summary = perturb(tmp_path / "in.parquet", EARTH, to=tmp_path / "out.parquet", id="who", max_rows=3)
    result = pq.read_table(tmp_path / "out.parquet").to_pandas()
    assert list(result["row"]) == list(table().to_pandas().groupby("who").head(3).sort_values("row")["row"])
    assert summary.spending is not None
    assert (summary.spending.epsilon, summary.spending.left_out, summary.written) == (30.0, 40, 13)
    counter = PeopleCounter("who", ["who"])
    counter.add(table())
    assert sorted(counter.rows.values()) == sorted(SIZES)
