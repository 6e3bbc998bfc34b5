"""The books verify, show every change made behind their back, forget a person without giving the budget back."""

import shutil
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from books import DAY, Clock, ask
from metricdp.errors import BudgetExceeded, InvalidInput, MetricdpError, OutputProblem
from metricdp.ledger import Ledger, Policy

DATA = Path(__file__).parents[1] / "data"
POLICY = "40/km per day, 200/km ever, slack 5 ever, 30/km per week for ads, 30/km per day for maps"


@pytest.fixture
def clock():
    return Clock()


@pytest.fixture
def ledger(tmp_path, clock):
    with Ledger.open(tmp_path / "budget.db", policy=POLICY, clock=clock) as books:
        yield books


def fill(ledger, clock):
    """Three days of releases and batches for three people."""
    for day in range(3):
        for person in ("anna", "ben"):
            ask(
                ledger,
                person,
                f"a{day}",
                3.0,
                purpose="ads",
                slack=0.125,
                draw=lambda name=person: b"of " + name.encode(),
            )
        rows = {"anna": 2, "ben": 1, "cleo": 5}
        ledger.release_batch(
            rows,
            f"b{day}",
            key="app",
            metric="haversine/km",
            epsilon=1.0,
            purpose="maps",
            draw=lambda granted: b"batch",
        )
        clock.now += DAY


def altered(path, statement, *values):
    with closing(sqlite3.connect(path)) as books:
        books.execute(statement, values)
        books.commit()


def test_books_verify_and_totals_are_those_of_the_entries(ledger, clock):
    fill(ledger, clock)
    verdict = ledger.verify()
    assert verdict.holds
    assert (verdict.entries, verdict.accounts, verdict.closed) == (10, 3, 0)
    (account,) = ledger.budget("anna").accounts
    assert (account.spent, account.slack) == (3 * 5_000_000, 3 * 125_000)
    spent = {str(one.limit): one.spent for one in account.balances}
    assert spent["30/km per week for ads"] == 9_000_000
    assert spent["40/km per day"] == 0  # a new one has begun


@pytest.mark.parametrize(
    ("statement", "found"),
    [
        ("UPDATE accounts SET ever = ever - 1 WHERE purpose = ''", "does not say what its entries add up to"),
        ("UPDATE accounts SET day = 1 WHERE purpose = 'maps'", "does not say what its entries add up to"),
        ("UPDATE entries SET amount = 1 WHERE kind = 'release' AND number = 1", "entry 1 of lane 0 was changed"),
        ("UPDATE entries SET report = x'00' WHERE number = 2", "entry 2 of lane 0 was changed"),
        ("DELETE FROM entries WHERE number = 4", "entry 4 of lane 0 is missing"),
        ("UPDATE blocks SET time = time + 1 WHERE number = 3", "chain is broken at block 3"),
        ("DELETE FROM blocks WHERE number = 3", "a block is missing"),
        ("UPDATE lanes SET blocks = blocks + 1", "does not end where the ledger says"),
        ("UPDATE books SET policy = '4000/km ever'", "not the one that the chain recorded"),
        ("UPDATE books SET created = created + 1", "does not say when it began"),
        ("UPDATE books SET id = 2", "does not say when it began"),
        ("DELETE FROM accounts WHERE id = 128", "charges an account that does not exist|accounts are gone"),
        ("UPDATE accounts SET person = x'00' WHERE id = 0", "given to somebody else"),
        ("UPDATE entries SET kind = 'erased' WHERE number = 1", "more or fewer entries were emptied"),
        ("INSERT INTO tombstones VALUES (x'00', 0, 99)", "a tombstone is missing, or was put in"),
        ("UPDATE accounts SET time = time - 86400000 WHERE purpose = ''", "does not say when it was last charged"),
        ("UPDATE accounts SET time = time + 86400000 WHERE purpose = 'maps'", "does not say when it was last charged"),
        ("UPDATE accounts SET time = 0 WHERE purpose = 'ads'", "does not say when it was last charged"),
        ("DELETE FROM accounts WHERE purpose = 'ads'", "spent for 'ads' is gone"),
        ("DELETE FROM accounts WHERE purpose = 'maps'", "spent for 'maps' is gone"),
        ("UPDATE accounts SET ever = 0, slack_ever = 0 WHERE purpose = 'ads'", "does not say what its entries add up"),
        ("UPDATE lanes SET accounts = accounts - 1", "opened more accounts than it says"),
    ],
)  # fmt: skip
def test_a_change_behind_the_back_of_the_books_is_found(ledger, clock, tmp_path, statement, found):
    fill(ledger, clock)
    altered(tmp_path / "budget.db", statement)
    with pytest.raises(AssertionError, match=found):
        assert not ledger.verify().faults


@pytest.mark.parametrize("column", ["account", "time", "amount", "purpose", "request", "note", "report", "salt"])
def test_what_was_emptied_does_not_come_to_say_something(ledger, clock, tmp_path, column):
    """A request and a report put into it would be given out, and a stream would take it for one of its steps."""
    fill(ledger, clock)
    ledger.erase("ben")
    assert ledger.verify().holds
    altered(tmp_path / "budget.db", f"UPDATE entries SET {column} = number WHERE kind = 'erased'")
    assert any("was emptied and says something again" in fault for fault in ledger.verify().faults)


def test_charges_of_the_first_account_cannot_be_charges_of_none(ledger, clock, tmp_path):
    """Its number is 0, which a seal has for "no account" as well."""
    for day in range(3):
        ask(ledger, "anna", f"a{day}", 3.0, purpose="ads")
        clock.now += DAY
    periods = ("hour", "day", "week", "month", "year", "ever")
    altered(tmp_path / "budget.db", "UPDATE entries SET account = NULL WHERE account = 0")
    for purpose in ("", "ads"):
        emptied = ", ".join(f"{period} = 0" for period in periods)
        altered(tmp_path / "budget.db", f"UPDATE accounts SET time = 0, {emptied} WHERE purpose = ?", purpose)
    assert any("charges an account that does not exist" in fault for fault in ledger.verify().faults)


def test_an_account_of_an_erased_person_does_not_make_up_for_one_that_was_taken_away(ledger, clock, tmp_path):
    """Two persons spent the same, in batches alone: what accounts that are gone had spent adds up as before."""
    for day in range(3):
        ledger.release_batch(
            {"anna": 2, "ben": 2}, f"b{day}", key="app", metric="haversine/km", epsilon=1.0, purpose="maps",
            draw=lambda granted: b"batch",
        )  # fmt: skip
    with closing(sqlite3.connect(tmp_path / "budget.db")) as books:
        accounts = books.execute("SELECT * FROM accounts ORDER BY id").fetchall()
    ledger.erase("anna")
    with closing(sqlite3.connect(tmp_path / "budget.db")) as books:
        (ben,) = {row[1] for row in books.execute("SELECT * FROM accounts")}
        books.execute("DELETE FROM accounts")
        for row in accounts:
            if row[1] != ben:
                books.execute(f"INSERT INTO accounts VALUES ({', '.join('?' * len(row))})", row)
        books.commit()
    assert any("belongs to a person who was erased" in fault for fault in ledger.verify().faults)


def test_books_that_were_set_back_verify_but_not_against_a_noted_head(ledger, clock, tmp_path):
    ask(ledger, "anna", "1", purpose="ads")
    ledger.backup(tmp_path / "old.db")
    ask(ledger, "anna", "2", purpose="ads")
    heads = ledger.verify().heads
    assert ledger.verify(pins=heads).holds
    with Ledger.open(tmp_path / "old.db") as old:
        assert old.verify().holds
        assert "set back or replaced" in old.verify(pins=heads).faults[0]
    with pytest.raises(InvalidInput, match="lane:block:link"):
        ledger.verify(pins=["what"])


def test_an_erased_person_leaves_a_tombstone_and_nothing_else(ledger, clock, tmp_path):
    fill(ledger, clock)
    assert ledger.erase("anna")
    assert not ledger.erase("anna")
    with pytest.raises(BudgetExceeded, match="this account is closed"):
        ask(ledger, "anna", "new", 1.0, purpose="ads")
    with pytest.raises(BudgetExceeded, match="this account is closed"):
        ask(ledger, "anna", "a0", 1.0, purpose="ads")
    with pytest.raises(BudgetExceeded, match="1 of 2 people"):
        ledger.release_batch(
            {"anna": 1, "ben": 1},
            "c",
            key="app",
            metric="haversine/km",
            epsilon=1.0,
            purpose="ads",
            draw=lambda granted: b"",
        )
    with pytest.raises(MetricdpError, match="no longer stored"):
        ledger.release_batch(
            {"ben": 1}, "b0", key="app", metric="haversine/km", epsilon=1.0, purpose="maps", draw=lambda granted: b""
        )
    assert ledger.budget("anna").closed
    assert ask(ledger, "ben", "a0", 1.0, purpose="ads").report == b"of ben"
    verdict = ledger.verify()
    assert verdict.holds
    assert verdict.closed == 1
    ledger.close()
    data = b"".join(path.read_bytes() for path in tmp_path.iterdir())
    assert b"of ben" in data
    assert b"of anna" not in data


def test_a_tombstone_taken_away_is_found(ledger, clock, tmp_path):
    fill(ledger, clock)
    ledger.erase("anna")
    altered(tmp_path / "budget.db", "DELETE FROM tombstones")
    assert not ledger.verify().holds


def test_erasing_somebody_unknown_closes_their_account_as_well(ledger):
    assert ledger.erase("dora")
    with pytest.raises(BudgetExceeded, match="closed"):
        ask(ledger, "dora", "1", 1.0, purpose="ads")


def test_rotating_closes_periods_and_drops_old_reports_for_good(ledger, clock):
    fill(ledger, clock)
    assert ledger.rotate(reports_before=clock.now - 1.5 * DAY) == (3, 6)
    assert ledger.verify().holds
    with pytest.raises(MetricdpError, match="no longer stored"):
        ask(ledger, "anna", "a0", 1.0, purpose="ads", draw=lambda: pytest.fail("a second draw"))
    assert ask(ledger, "anna", "a2", 1.0, purpose="ads").repeated


def test_accounts_that_were_never_charged_and_old_rotations_raise_no_alarm(ledger, clock):
    ledger.rotate()
    clock.now += DAY
    fill(ledger, clock)
    part = ledger.release_batch(
        {"anna": 1, "dora": 1}, "part", key="app", metric="haversine/km", epsilon={"anna": 1.0, "dora": 50.0},
        purpose="maps", partial=True, draw=lambda granted: b"",
    )  # fmt: skip
    assert part.granted == {"anna": 1}  # Dora has an account and no charge
    for days in (0, 1, 40):
        clock.now += days * DAY
        ledger.rotate()
        assert ledger.verify().faults == ()
    ask(ledger, "anna", "later", 1.0, purpose="ads")
    assert ledger.verify().faults == ()


def test_a_policy_changes_with_everything_counted(ledger, clock):
    fill(ledger, clock)
    ledger.change_policy("16/km per week")
    assert ledger.policy() == Policy.parse("16/km per week")
    assert ask(ledger, "anna", "next", 1.0).left == 0
    assert ledger.verify().holds


def test_a_backup_is_whole_private_and_never_written_over(ledger, clock, tmp_path):
    fill(ledger, clock)
    ledger.backup(tmp_path / "copy.db")
    assert [oct((tmp_path / name).stat().st_mode & 0o777) for name in ("copy.db", "copy.db.key")] == ["0o600"] * 2
    with Ledger.open(tmp_path / "copy.db", clock=clock) as copy:
        assert copy.verify().holds
        assert copy.budget("anna").accounts[0].spent == ledger.budget("anna").accounts[0].spent
        with pytest.raises(InvalidInput, match="this ledger is a backup made at 2026-11-19 12:00 UTC"):
            ask(copy, "anna", "new", 1.0, purpose="ads")
        assert copy.restore() == clock.now
        assert copy.restore() is None
        assert not ask(copy, "anna", "new", 1.0, purpose="ads").repeated
        assert copy.verify().holds
    with pytest.raises(OutputProblem, match="never overwritten"):
        ledger.backup(tmp_path / "copy.db")


@pytest.mark.parametrize("version", [1])
def test_books_of_every_earlier_version_are_brought_up_to_this_one(version, tmp_path, clock):
    """Books of that version: three days of releases and batches for two people, and a third who was erased."""
    for name in (f"ledger-v{version}.db", f"ledger-v{version}.db.key"):
        shutil.copy(DATA / name, tmp_path / name)
        (tmp_path / name).chmod(0o600)
    clock.now += 3 * DAY
    for _ in range(2):  # the second time there is nothing left to do
        with Ledger.open(tmp_path / f"ledger-v{version}.db", clock=clock) as books:
            assert books.verify().faults == ()
            assert [books.budget(who).accounts[0].spent for who in ("anna", "ben")] == [15_000_000, 3_000_000]
            assert ask(books, "anna", "a1", 1.0, purpose="ads").report == b"anna 1"
            with pytest.raises(BudgetExceeded, match="closed"):
                ask(books, "cleo", "1", 1.0, purpose="ads")
    with Ledger.open(tmp_path / f"ledger-v{version}.db", clock=clock) as books:
        assert not ask(books, "anna", "new", 1.0, purpose="ads").repeated
        assert books.verify().holds
