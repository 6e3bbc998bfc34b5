"""A ledger that lost entries is refused until somebody accepts it: emptied, set back, copied without its log."""

import json
import os
import shutil
import sqlite3
import threading
from contextlib import closing, suppress
from pathlib import Path

import pytest

from books import ask, fork
from metricdp.errors import InvalidInput, LedgerUnavailable
from metricdp.ledger import Ledger
from metricdp.ledger.head import SLOT, End, Head, HeadFile
from metricdp.metrics import Haversine
from scripts import main

POLICY = "40/km ever"
OLD = Path(__file__).parents[1] / "data" / "0.1.0" / "ledgers"


@pytest.fixture
def place(tmp_path):
    """A ledger with two charges of Anna, closed."""
    with Ledger.open(tmp_path / "budget.db", policy=POLICY) as ledger:
        ask(ledger, "anna", "1")
        ask(ledger, "anna", "2")
    return tmp_path / "budget.db"


def spent(place, person="anna"):
    with Ledger.open(place) as ledger:
        return ledger.budget(person).accounts[0].spent


def altered(place, *statements):
    with closing(sqlite3.connect(place)) as books:
        for statement in statements:
            books.execute(statement)
        books.commit()


def head_of(place):
    """What the newer slot of a head file says: blocks and last link of its only lane."""
    data, slots = place.with_name("budget.db.head").read_bytes(), []
    for start in (0, SLOT):
        with suppress(ValueError):  # half written at this moment
            slots.append(json.loads(json.loads(data[start : start + SLOT])["head"]))
    newest = max(slots, key=lambda slot: slot["number"])
    ((_, blocks, entries, link),) = newest["lanes"]
    assert newest["entries"] == entries
    return blocks, link


def in_the_books(place):
    with closing(sqlite3.connect(place)) as books:
        ((blocks, link),) = books.execute("SELECT blocks, hex(head) FROM lanes")
    return blocks, link.lower()


@pytest.mark.parametrize("how", ["emptied", "without tables", "gone", "gone with its key"])
def test_an_emptied_ledger_gives_nobody_a_budget_back(place, how):
    if how == "emptied":
        place.write_bytes(b"")
    else:
        place.unlink()
    if how == "without tables":
        sqlite3.connect(place).close()
        altered(place, "CREATE TABLE one (x)", "DROP TABLE one")
    if how == "gone with its key":
        place.with_name("budget.db.key").unlink()
    with pytest.raises(InvalidInput, match="beginning anew would give everybody their budget back"):
        Ledger.open(place, policy=POLICY)
    with pytest.raises(InvalidInput, match="--policy"):
        Ledger.recover(place)
    assert "is lost" in Ledger.recover(place, policy=POLICY)
    with Ledger.open(place) as ledger:
        assert ask(ledger, "anna", "3").left == 30_000_000
        assert ledger.verify().holds
        assert "recover" in [row["kind"] for row in ledger.export() if row["table"] == "entries"]


def test_an_emptied_ledger_of_an_older_version_is_refused_too(tmp_path):
    place = tmp_path / "budget.db"
    shutil.copy(OLD / "budget.db.key", tmp_path)
    (tmp_path / "budget.db.key").chmod(0o600)
    place.touch()
    with pytest.raises(InvalidInput, match="gone or empty"):
        Ledger.open(place, policy=POLICY)


@pytest.mark.parametrize("statement", ["DELETE FROM accounts", "DELETE FROM accounts WHERE id = 0"])
def test_a_ledger_whose_accounts_are_gone_is_refused_until_the_loss_is_accepted(place, statement):
    with Ledger.open(place) as ledger:
        ask(ledger, "ben", "1")
    altered(place, statement)
    with pytest.raises(InvalidInput, match="of 2 accounts are missing, with what was spent in them"):
        Ledger.open(place)
    with Ledger.open(place, read_only=True) as ledger:
        assert not ledger.verify().holds
    assert "accounts are missing" in Ledger.recover(place)
    with Ledger.open(place) as ledger:
        assert ask(ledger, "cleo", "1").charged


def test_accounts_of_erased_persons_are_not_missing(place):
    with Ledger.open(place) as ledger:
        ask(ledger, "ben", "1")
        ledger.erase("ben")
        ledger.erase("anna")
    with Ledger.open(place) as ledger:
        assert ask(ledger, "cleo", "1").charged


def test_a_copy_without_its_log_is_refused_and_the_right_one_is_not(tmp_path):
    place, taken = tmp_path / "budget.db", tmp_path / "copy"
    taken.mkdir()
    with Ledger.open(place, policy=POLICY) as ledger:
        for number in range(3):
            ask(ledger, "anna", str(number))
        for name in ("budget.db", "budget.db.key", "budget.db.head"):
            shutil.copy(tmp_path / name, taken / name)
        with pytest.raises(InvalidInput, match=r"gone or empty|behind their head"):
            Ledger.open(taken / "budget.db", policy=POLICY)
        shutil.copy(tmp_path / "budget.db-wal", taken / "budget.db-wal")
        assert spent(taken / "budget.db") == 30_000_000


def test_an_older_database_is_refused_until_the_loss_is_accepted(place, capsys, caplog):
    old = place.read_bytes()
    with Ledger.open(place) as ledger:
        ask(ledger, "anna", "3")
    place.write_bytes(old)
    with pytest.raises(InvalidInput, match=r"it ends at entry 3 of lane 0 and its head file at 4"):
        Ledger.open(place)
    before = place.with_name("budget.db.head").read_bytes()
    assert main(["budget", "verify", str(place)]) == 1  # opened for reading only
    assert "behind its head file" in capsys.readouterr().out
    assert place.with_name("budget.db.head").read_bytes() == before
    assert main(["budget", "recover", str(place)]) == 2
    assert "--accept-loss" in capsys.readouterr().err
    assert main(["budget", "recover", str(place), "--accept-loss"]) == 0
    assert main(["budget", "verify", str(place)]) == 0
    assert main(["budget", "recover", str(place), "--accept-loss"]) == 2  # nothing is lost any more
    with Ledger.open(place) as ledger:
        assert ask(ledger, "anna", "3").charged


def test_a_ledger_killed_before_its_key_is_on_the_disk_begins_again(tmp_path):
    child = fork()
    if child == 0:
        os.fsync = lambda handle: os._exit(0)  # the key is written first
        Ledger.open(tmp_path / "budget.db", policy=POLICY)
        os._exit(1)
    assert os.waitpid(child, 0)[1] == 0
    with Ledger.open(tmp_path / "budget.db", policy=POLICY) as ledger:
        assert ask(ledger, "anna", "1").charged
    files = {path.name: path.stat().st_mode & 0o777 for path in tmp_path.iterdir()}
    assert (files["budget.db.key"], files["budget.db.head"]) == (0o600, 0o600)
    assert not [name for name in files if "partial" in name]  # what the killed one left is gone


@pytest.mark.parametrize("how", ["gone", "garbage", "of another ledger", "emptied"])
def test_a_head_file_that_is_not_its_own_is_refused(place, tmp_path, how):
    head = place.with_name("budget.db.head")
    if how == "gone":
        head.unlink()
    elif how == "of another ledger":
        Ledger.open(tmp_path / "other.db", policy=POLICY).close()
        shutil.copy(tmp_path / "other.db.head", head)
    else:
        head.write_bytes(b"\xff" * 8192 if how == "garbage" else b"")
    with pytest.raises(InvalidInput, match="recover --accept-loss"):
        Ledger.open(place)
    Ledger.recover(place)
    assert spent(place) == 20_000_000
    assert head_of(place) == in_the_books(place)


def test_a_head_file_that_somebody_without_the_key_wrote_is_refused(place):
    path = place.with_name("budget.db.head")
    data = path.read_bytes()
    forged = b""
    for start in (0, SLOT):
        slot = json.loads(data[start : start + SLOT])
        head = json.loads(slot["head"]) | {"lanes": [], "entries": 0}  # nothing was charged, it says
        forged += json.dumps(slot | {"head": json.dumps(head)}).encode().ljust(SLOT - 1) + b"\n"
    path.write_bytes(forged)
    with pytest.raises(InvalidInput, match="is damaged, or belongs to another"):
        Ledger.open(place)


def test_a_ledger_of_an_older_version_gets_its_head_at_its_first_opening_and_says_so_once(tmp_path, caplog):
    place = tmp_path / "budget.db"
    for name in ("budget.db", "budget.db.key"):
        shutil.copy(OLD / name, tmp_path / name)
        (tmp_path / name).chmod(0o600)
    with Ledger.open(place, read_only=True) as ledger:
        assert "no head file yet" in ledger.verify().notes[0]
        with pytest.raises(InvalidInput, match="for reading only"):
            ask(ledger, "anna", "new")
    assert not (tmp_path / "budget.db.head").exists()
    for _ in range(2):
        Ledger.open(place).close()
    assert caplog.text.count("had no head file") == 1
    assert head_of(place) == in_the_books(place)
    (tmp_path / "budget.db.head").unlink()
    with pytest.raises(InvalidInput, match="the head file is missing"):
        Ledger.open(place)


def test_a_ledger_ahead_of_its_head_goes_on_and_a_chain_that_does_not_follow_is_refused(place):
    head = place.with_name("budget.db.head")
    behind = head.read_bytes()  # as a kill between the commit and the write of the head leaves it
    with Ledger.open(place) as ledger:
        ask(ledger, "anna", "3")
        ask(ledger, "anna", "4", 5.0)
    head.write_bytes(behind)
    assert spent(place) == 35_000_000
    assert head_of(place) == in_the_books(place)
    head.write_bytes(behind)
    altered(place, "UPDATE entries SET seal = zeroblob(32) WHERE number = 3")
    with pytest.raises(InvalidInput, match="does not go on from where its head file says"):
        Ledger.open(place)


@pytest.mark.parametrize(
    "change",
    ["DELETE FROM blocks WHERE number = (SELECT max(number) FROM blocks)", "UPDATE lanes SET entries = entries + 1"],
)
def test_a_chain_beyond_the_head_that_ends_elsewhere_than_its_lane_is_refused(place, change):
    head = place.with_name("budget.db.head")
    before = head.read_bytes()
    with Ledger.open(place) as ledger:
        ask(ledger, "anna", "beyond")
    head.write_bytes(before)
    altered(place, change)
    with pytest.raises(InvalidInput, match="does not go on from where its head file says"):
        Ledger.open(place)


def test_a_write_of_the_head_that_was_cut_off_loses_nothing(place):
    head = place.with_name("budget.db.head")
    whole = head.read_bytes()
    for start in (0, SLOT):
        for cut in (0, 1, 100, 300):
            head.write_bytes(whole[: start + cut] + b"\0" * (SLOT - cut) + whole[start + SLOT :])
            assert spent(place) == 20_000_000
            assert head_of(place) == in_the_books(place)


def test_nothing_is_answered_before_its_head_is_on_the_disk(place, monkeypatch):
    honest, synced = os.fdatasync, []

    def full(handle):
        raise OSError(5, "Input/output error")

    with Ledger.open(place) as ledger:
        with monkeypatch.context() as patched:
            patched.setattr(os, "fdatasync", full)
            for request in ("3", "3"):  # the second time it is stored already
                with pytest.raises(LedgerUnavailable, match="head file"):
                    ask(ledger, "anna", request, draw=lambda: b"first")
        monkeypatch.setattr(os, "fdatasync", lambda handle: (honest(handle), synced.append(handle)))
        again = ask(ledger, "anna", "3", draw=lambda: pytest.fail("drawn twice"))
        assert (again.report, again.repeated, again.left) == (b"first", True, 10_000_000)
        assert len(synced) == 1
        assert head_of(place) == in_the_books(place)


def test_a_database_set_back_under_an_open_ledger_releases_nothing(place):
    with closing(sqlite3.connect(place)) as books:
        (before,) = books.execute("SELECT blocks, entries, head FROM lanes")
    with Ledger.open(place) as ledger:
        ask(ledger, "anna", "3")
        with closing(sqlite3.connect(place)) as books:
            books.execute("UPDATE lanes SET blocks = ?, entries = ?, head = ?", before)
            books.execute("DELETE FROM blocks WHERE number = 3")
            books.execute("DELETE FROM entries WHERE number = 3")
            books.commit()
        with pytest.raises(LedgerUnavailable, match="lost entries while it was open"):
            ask(ledger, "anna", "1")


@pytest.mark.parametrize("lost", [1, 3])
def test_a_database_set_back_under_two_open_ledgers_releases_nothing_from_either(place, tmp_path, lost):
    """The one that charged nothing meanwhile finds out from the head file, also where it would catch up with it."""
    with Ledger.open(place) as first, Ledger.open(place) as second:
        with closing(sqlite3.connect(place)) as books, closing(sqlite3.connect(tmp_path / "old.db")) as copy:
            books.backup(copy)
        for number in range(lost):
            ask(second, "bob", f"lost {number}")
        head = head_of(place)
        with closing(sqlite3.connect(tmp_path / "old.db")) as copy, closing(sqlite3.connect(place)) as books:
            copy.backup(books)
        for ledger in (first, second):
            with pytest.raises(LedgerUnavailable, match="lost entries while it was open"):
                ask(ledger, "bob", "again", draw=lambda: pytest.fail("drawn"))
        with pytest.raises(LedgerUnavailable, match="lost entries while it was open"):
            first.release_batch(
                {"bob": 4}, "table", key="k", metric=Haversine(), epsilon=10.0, draw=lambda rows: pytest.fail("drawn")
            )
        assert head_of(place) == head
    with pytest.raises(InvalidInput, match="behind its head file"):
        Ledger.open(place)


def test_a_database_that_another_one_went_past_under_an_open_ledger_is_not_taken_for_its_own(place, tmp_path):
    """As many entries as before, and more, but others: the link that the head file holds is not among them."""
    with Ledger.open(place) as first, Ledger.open(place) as second:
        shutil.copytree(place.parent, tmp_path / "other")
        ask(second, "bob", "lost")
        with Ledger.open(tmp_path / "other" / place.name) as fork_of_it:
            for number in range(2):
                ask(fork_of_it, "carl", f"other {number}")
        with (
            closing(sqlite3.connect(tmp_path / "other" / place.name)) as other,
            closing(sqlite3.connect(place)) as books,
        ):
            other.backup(books)
        with pytest.raises(LedgerUnavailable, match="lost entries while it was open"):
            ask(first, "bob", "again")


def spend_ten(ledger, person, thread):
    for number in range(10):
        ask(ledger, person, f"{thread} {number}", 0.125)


def test_the_head_of_many_writers_never_goes_back(place):
    children = []
    for number in range(3):
        child = fork()
        if child == 0:
            with Ledger.open(place) as ledger:
                threads = [threading.Thread(target=spend_ten, args=(ledger, f"p{number}", n)) for n in range(2)]
                for thread in threads:
                    thread.start()
                for thread in threads:
                    thread.join()
            os._exit(0)
        children.append(child)
    seen = []
    while children:
        seen.append(head_of(place)[0])
        done, status = os.waitpid(children[0], os.WNOHANG)
        if done:
            assert status == 0
            children.pop(0)
    assert seen == sorted(seen)
    assert head_of(place) == in_the_books(place)
    assert spent(place, "p0") == 20 * 125_000


def test_a_backup_has_a_head_of_its_own(place, tmp_path):
    with Ledger.open(place) as ledger:
        ledger.backup(tmp_path / "copy.db")
        ask(ledger, "anna", "3")
    with Ledger.open(tmp_path / "copy.db") as copy:
        assert copy.restore()
        assert copy.budget("anna").accounts[0].spent == 20_000_000


def test_a_head_file_holds_the_lanes_of_a_server(tmp_path):
    from metricdp.ledger.keys import LedgerKey

    file = HeadFile(tmp_path / "books.head", LedgerKey(b"k" * 32))
    file.create(Head("a" * 32, {lane: End(10**12, 10**12, b"\xff" * 32) for lane in range(16)}))
    file.reach({3: End(10**12 + 1, 10**12 + 1, bytes(32)), 4: End(5, 5, bytes(32))})
    found = file.read()
    assert found.lanes[3].blocks == 10**12 + 1
    assert found.lanes[4].blocks == 10**12
    file.close()
