"""Texts are a mechanism like any other: persons, budgets, books, bad rows and every table, by the one pipeline."""

from __future__ import annotations

from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pyarrow as pa
import pyarrow.dataset as ds
import pyarrow.parquet as pq
import pytest

import metricdp as mdp
from metricdp.errors import BudgetExceeded, InvalidInput, OutOfDomain
from metricdp.ledger import Ledger
from metricdp.tables import Charging
from metricdp.text import Numeric, Rules, TextMechanism
from tables.engines.hand import perturbed
from tables.engines.words import DRAWN, REFUSING, STAYING, mechanism

ROWS = pa.table(
    {
        "who": ["anna", "ben", "anna", "cleo", "anna"],
        "text": ["the good room was bad", None, "", "the zebra is good", "a house"],
        "title": ["good", "bad", "good", "bad", "good"],
    }
)
PAID = mechanism(2000.0, budget=8000.0, beyond="mask")  # four words of a text stay
CHEAP = mechanism(2.0, budget=8.0, beyond="mask")


@pytest.fixture
def ledger(tmp_path: Path) -> Any:
    with Ledger.open(tmp_path / "budget.db", policy="30 ever") as books:
        yield books


def spent(ledger: Ledger, *people: str) -> list[float]:
    found = [ledger.budget(person).accounts for person in people]
    assert all(account.metric == "l2" for accounts in found for account in accounts)
    return [accounts[0].spent / 1_000_000 if accounts else 0.0 for accounts in found]


def in_file(folder: Path, mechanism: Any, **options: Any) -> tuple[pa.Table, mdp.Summary]:
    pq.write_table(ROWS, folder / "in.parquet")
    options = {"columns": "text", **options}
    summary = mdp.perturb(folder / "in.parquet", mechanism, to=folder / "out.parquet", overwrite=True, **options)
    return pq.read_table(folder / "out.parquet"), summary


def in_duckdb(folder: Path, mechanism: Any, **options: Any) -> pa.Table:
    connection = pytest.importorskip("duckdb").connect()
    connection.register("given", ROWS)
    return mdp.perturb((connection, "FROM given"), mechanism, to="made", columns="text", **options).to_arrow_table()


def in_stream(folder: Path, mechanism: Any, **options: Any) -> pa.Table:
    made = folder / "stream.parquet"
    return mdp.perturb(ds.dataset(ROWS), mechanism, to=made, columns="text", **options).to_table()


def in_job(folder: Path, mechanism: Any, **options: Any) -> pa.Table:
    (folder / "days").mkdir()
    for number in range(2):
        pq.write_table(ROWS.slice(3 * number, 3), folder / "days" / f"{number}.parquet")
    perturbed(folder / "days", folder / "job", mechanism, columns="text", **options)
    return pa.concat_tables(pq.read_table(folder / "job" / f"{number}.parquet") for number in range(2))


PLACES = {
    "file": lambda folder, texts, **options: in_file(folder, texts, **options)[0],
    "arrow": lambda folder, texts, **options: mdp.perturb(ROWS, texts, columns="text", **options),
    "polars": lambda folder, texts, **options: mdp.perturb(
        pl.from_arrow(ROWS), texts, columns="text", **options
    ).to_arrow(),
    "pandas": lambda folder, texts, **options: pa.Table.from_pandas(
        mdp.perturb(ROWS.to_pandas(), texts, columns="text", **options), preserve_index=False
    ),
    "duckdb": in_duckdb,
    "stream": in_stream,
    "job": in_job,
}
everywhere = pytest.mark.parametrize("place", PLACES)
WHOLE = ["the good room was [MASK]", None, "", "the [MASK] is good", "a house"]


@everywhere
def test_everybody_is_charged_the_budget_of_each_of_their_texts(tmp_path: Path, ledger: Ledger, place: str) -> None:
    assert PLACES[place](tmp_path, CHEAP, id="who", ledger=ledger).num_rows == 5
    assert spent(ledger, "anna", "ben", "cleo") == [24.0, 8.0, 8.0]
    (tmp_path / "again").mkdir()
    with pytest.raises(BudgetExceeded):
        PLACES[place](tmp_path / "again", CHEAP, id="who", ledger=ledger)
    assert spent(ledger, "anna", "ben", "cleo") == [24.0, 8.0, 8.0]


@everywhere
def test_without_a_budget_of_each_text_no_total_is_stated(tmp_path: Path, ledger: Ledger, place: str) -> None:
    for words in ({"ledger": ledger}, {"budget": 30.0}):
        if place != "job" or "ledger" in words:
            with pytest.raises(InvalidInput, match=r"give every text a budget, Rules\(budget=60\)"):
                PLACES[place](tmp_path, DRAWN, id="who", **words)
    assert spent(ledger, "anna") == [0.0]
    assert not (tmp_path / "out.parquet").exists()


@everywhere
def test_texts_that_are_refused_are_left_out_or_emptied(tmp_path: Path, place: str) -> None:
    texts = TextMechanism(STAYING.words)
    with pytest.raises(OutOfDomain, match="not in the vocabulary"):
        PLACES[place](tmp_path, texts)
    for on_error, expected in (("drop", [True, False, True, True]), ("null", [True, False, True, False, True])):
        (tmp_path / on_error).mkdir()
        made = PLACES[place](tmp_path / on_error, texts, on_error=on_error)["text"].to_pylist()
        assert [text is not None for text in made] == expected
        assert [text for text in made if text] == ["the good room was bad", "a house"]


@pytest.mark.parametrize("place", [one for one in PLACES if one != "job"])
def test_a_budget_is_kept_and_few_rows_stay(tmp_path: Path, place: str) -> None:
    made = PLACES[place](tmp_path, PAID, id="who", budget=24_000.0)
    assert made["text"].to_pylist() == WHOLE
    if place == "stream":
        (tmp_path / "stream.parquet").unlink()
    with pytest.raises(InvalidInput, match="somebody has 3 rows, which cost 3 x 8000 together"):
        PLACES[place](tmp_path, PAID, id="who", budget=20_000.0)
    few = PLACES[place](tmp_path, PAID, id="who", budget=20_000.0, max_rows=1)
    assert few["text"].to_pylist() == [WHOLE[0], WHOLE[1], WHOLE[3]]
    if place == "stream":
        (tmp_path / "stream.parquet").unlink()
    evenly = PLACES[place](tmp_path, PAID, id="who", budget=12_000.0, allocation="even")
    # Three texts of anna share 12,000, two words each; ben and cleo have one.
    assert evenly["text"].to_pylist() == ["the good [MASK] [MASK] [MASK]", *WHOLE[1:]]


def test_what_an_even_spread_charges_is_what_it_gives(tmp_path: Path, ledger: Ledger) -> None:
    _, summary = in_file(tmp_path, CHEAP, id="who", budget=12.0, allocation="even", ledger=ledger)
    assert spent(ledger, "anna", "ben", "cleo") == [12.0, 8.0, 8.0]
    assert summary.composed_epsilon == 12.0
    assert summary.spending is not None
    for level in summary.spending.levels:
        assert level.task.guarantee.epsilon <= level.amount
    with pytest.raises(InvalidInput, match="Rules\\(beyond="):
        in_file(tmp_path, mechanism(2.0, budget=8.0), id="who", budget=12.0, allocation="even")


def test_every_column_of_texts_costs_its_own_budget(tmp_path: Path, ledger: Ledger) -> None:
    made, summary = in_file(tmp_path, CHEAP, columns=["text", "title"], id="who", ledger=ledger, max_rows=1)
    assert spent(ledger, "anna", "ben") == [16.0, 16.0]
    assert summary.composed_epsilon == 16.0
    assert made.num_rows == 3


def test_numbers_are_charged_by_their_own_unit(tmp_path: Path) -> None:
    """A number that moves by 1 costs its epsilon over its scale, words and numbers share one account of l2."""
    words = mechanism(2.0).words
    texts = TextMechanism(words, Rules("mask", budget=8.0, beyond="mask", numbers=Numeric(1.0, scale=4.0)))
    with Ledger.open(tmp_path / "b.db", policy="100 ever") as ledger:
        in_file(tmp_path, texts, id="who", ledger=ledger)
        assert spent(ledger, "ben") == [10.0]


def test_persons_are_counted_and_nothing_is_said_that_nobody_knows(tmp_path: Path) -> None:
    _, counted = in_file(tmp_path, DRAWN, id="who")
    assert (counted.people.count, counted.people.most_rows, counted.composed_epsilon) == (3, 3, None)
    assert any("none with more than 3 texts" in line for line in counted.lines())
    assert not any("protected at" in line for line in counted.lines())
    _, paid = in_file(tmp_path, CHEAP, id="who")
    assert paid.composed_epsilon == 24.0
    assert any("3 x 8 = 24" in line for line in paid.lines())
    _, few = in_file(tmp_path, DRAWN, id="who", max_rows=2)
    assert (few.written, few.composed_epsilon) == (4, None)
    assert not any("protected at" in line for line in few.lines())


def test_reports_of_texts_can_be_watched(tmp_path: Path) -> None:
    seen = []
    in_file(tmp_path, STAYING, watch=lambda task, step: seen.append((task.columns, step.result.num_rows)))
    assert seen == [(("text",), 5)]


def test_a_job_with_a_name_gives_the_same_texts_from_the_books(ledger: Ledger) -> None:
    options: dict[str, Any] = {"columns": "text", "id": "who", "ledger": Charging(ledger, job="monday")}
    first = mdp.perturb(ROWS, CHEAP, **options)
    assert mdp.perturb(ROWS, CHEAP, **options).equals(first)
    assert spent(ledger, "anna") == [24.0]


def test_rows_that_do_not_fit_are_left_out(tmp_path: Path, ledger: Ledger) -> None:
    in_file(tmp_path, CHEAP, id="who", ledger=ledger)
    made, summary = in_file(tmp_path, CHEAP, id="who", ledger=ledger, refused="report")
    assert made["who"].to_pylist() == ["ben", "cleo"]
    assert spent(ledger, "anna", "ben", "cleo") == [24.0, 16.0, 16.0]
    assert any("3 rows were refused" in line for line in summary.lines())


def test_what_is_no_question_for_texts_is_answered_in_a_sentence(tmp_path: Path) -> None:
    for ask in (mdp.accuracy_radius, mdp.expected_loss, lambda one: mdp.save(one, tmp_path / "x.mdp")):
        with pytest.raises(InvalidInput):
            ask(DRAWN)
    with pytest.raises(InvalidInput, match=r"mdp.audit\(texts.words\)"):
        mdp.audit(DRAWN)
    with pytest.raises(InvalidInput, match="no part of a product"):
        in_file(tmp_path, mdp.product(DRAWN, REFUSING), columns=["text", "title"])
    with Ledger.open(tmp_path / "l.db", policy="100 ever") as ledger, pytest.raises(InvalidInput, match="not declared"):
        ledger.release("anna", "one", key="k", metric=DRAWN.guarantee.metric, epsilon=2.0, draw=lambda: b"")


def test_a_text_keeps_its_promise_of_a_row_by_brute_force() -> None:
    """Every pair of texts of at most five words: ln of the ratio against the row's epsilon times the farthest word."""
    points = np.array([[0.0], [1.0], [2.5]])
    space = mdp.vocabulary(["red", "green", "blue"], points)
    levels = [mdp.exponential(space, rate) for rate in (1.3, 0.4)]
    texts = TextMechanism(levels[0], Rules(budget=2.7, beyond="mask"), lower=levels[1:])
    promise = texts.row_guarantee
    assert promise.epsilon == 2.7
    for words in range(1, 6):
        level = levels[0] if words * 1.3 <= 2.7 else levels[1]
        logs = np.log(level.matrix / level.matrix.sum(axis=1, keepdims=True))
        worst = (logs[:, None] - logs[None]).max(axis=2)
        apart = np.abs(points - points.T)
        for one, other in product(range(3), repeat=2):
            if one != other:  # all words move as far as these two: the worst that a text can do
                assert words * worst[one, other] <= promise.epsilon * apart[one, other] + 1e-12


def test_the_promise_of_a_row_is_never_below_what_a_text_may_cost() -> None:
    """Sums of doubles pass for a budget that they are a little above: the row's epsilon counts them exactly."""
    from fractions import Fraction

    for rate, budget in ((0.1, 4.0), (0.1, 1.0), (0.7, 4.9), (1 / 3, 1.0), (2.0, 5.0)):
        words = mdp.exponential(mdp.vocabulary(["red", "blue"], 1e4 * np.arange(2.0)[:, None]), rate)
        texts = TextMechanism(words, Rules(budget=budget, beyond="mask", mask="_"))
        drawn = 200 - texts.protect(["red " * 200])[0].count("_")
        assert 0 < drawn < 200
        assert drawn * Fraction(rate) <= Fraction(texts.row_guarantee.epsilon)
        assert texts.row_guarantee.epsilon <= budget * (1 + 1e-8)
        third = texts.scale_budget(Fraction(1, 3))
        assert Fraction(third.row_guarantee.epsilon) <= Fraction(texts.row_guarantee.epsilon) / 3
