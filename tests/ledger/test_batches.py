"""Batches of many people: what is granted, charged and left is what charging them one by one would give."""

import random
import tempfile

import pytest

from books import Clock, quick_folder
from crowds import POLICY, compared
from metricdp.errors import InvalidInput, MetricdpError
from metricdp.ledger import Ledger, batch_accounts


@pytest.fixture
def few(monkeypatch):
    """Few people in one statement, so that batches take several."""
    monkeypatch.setattr(batch_accounts, "MOST", 7)
    monkeypatch.setattr(batch_accounts, "MOST_KINDS", 3)


def test_batches_grant_charge_and_leave_what_one_by_one_would(few):
    clock = Clock()
    with (
        tempfile.TemporaryDirectory(dir=quick_folder()) as folder,
        Ledger.open(f"{folder}/b.db", policy=POLICY, clock=clock) as ledger,
    ):
        compared(ledger, clock, random.Random(1), 14)


def test_what_is_asked_in_advance_charges_nobody_and_opens_no_account(tmp_path):
    with Ledger.open(tmp_path / "b.db", policy="40/km ever") as ledger:
        assert ledger.granted({"anna": 3, "ben": 9}, metric="haversine/km", epsilon=5.0, partial=True) == {
            "anna": 3,
            "ben": 8,
        }
        assert ledger.budget("anna").accounts == ()
        verdict = ledger.verify()
        assert (verdict.entries, verdict.accounts) == (1, 0)


@pytest.mark.parametrize("rows", [{"anna": 1.5}, {"anna": "2"}, {"anna": 0}, {"anna": 10**30}, {"anna": -1}, {}])
def test_rows_are_counted_in_whole_numbers(rows, tmp_path):
    with Ledger.open(tmp_path / "b.db", policy="40/km ever") as ledger, pytest.raises(InvalidInput, match="rows"):
        ledger.release_batch(
            rows, "r", key="app", metric="haversine/km", epsilon=1.0, draw=lambda granted: pytest.fail("drawn")
        )


def test_an_account_that_is_charged_twice_or_not_at_all_stops_the_batch(tmp_path, monkeypatch):
    with Ledger.open(tmp_path / "b.db", policy="40/km ever") as ledger:
        options = {"key": "app", "metric": "haversine/km", "epsilon": 1.0, "draw": lambda granted: b""}
        ledger.release_batch({"anna": 1, "ben": 1}, "1", **options)
        true = batch_accounts.find_accounts

        def misled(*arguments, **more):
            found = true(*arguments, **more)
            found.numbers[""][0] += 999 * 64
            return found

        monkeypatch.setattr(batch_accounts, "find_accounts", misled)
        with pytest.raises(MetricdpError, match="2 accounts were to be charged and 1 were"):
            ledger.release_batch({"anna": 1, "ben": 1}, "2", **options)
        assert ledger.budget("anna").accounts[0].spent == 1_000_000
        assert ledger.verify().holds
