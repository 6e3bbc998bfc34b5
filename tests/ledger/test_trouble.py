"""When the disk is full, the file is damaged or others hold it: a sentence, nothing released, and it recovers."""

import json
import os
import resource
import signal
import sqlite3
import threading
from contextlib import closing, suppress

import pytest

from books import ask
from metricdp.errors import InvalidInput, LedgerUnavailable, MetricdpError
from metricdp.ledger import Ledger, opening
from metricdp.ledger.backends import sqlite

POLICY = "40000/km ever"


def test_a_full_disk_refuses_with_a_sentence_and_recovers(tmp_path):
    """The limit on the size of files stands in for the disk: writes beyond it fail the same way."""
    signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    drawn = []

    def draw():
        drawn.append(os.urandom(3000))
        return drawn[-1]

    with Ledger.open(tmp_path / "budget.db", policy=POLICY) as ledger:
        answered = {}
        try:
            resource.setrlimit(resource.RLIMIT_FSIZE, (200_000, hard))
            with suppress(LedgerUnavailable):
                for number in range(200):
                    answered[str(number)] = ask(ledger, "anna", str(number), 1.0, draw=draw).report
            assert 0 < len(answered) < 200
            with pytest.raises(LedgerUnavailable, match="cannot be used now"):
                ask(ledger, "anna", "still full", 1.0, draw=draw)
        finally:
            resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
        assert ask(ledger, "anna", "again", 1.0).report == b"report"
        for request, report in answered.items():
            assert ask(ledger, "anna", request, 1.0, draw=draw).report == report
        assert ledger.budget("anna").accounts[0].spent == (len(answered) + 1) * 1_000_000
        assert ledger.verify().holds


def test_books_that_another_process_holds_are_waited_for_and_then_refused(tmp_path, monkeypatch):
    monkeypatch.setattr(sqlite, "PATIENCE", 0.2)
    with Ledger.open(tmp_path / "budget.db", policy=POLICY) as ledger:
        ask(ledger, "anna", "1")
        with closing(sqlite3.connect(tmp_path / "budget.db", isolation_level=None, check_same_thread=False)) as other:
            other.execute("BEGIN IMMEDIATE")
            with pytest.raises(LedgerUnavailable, match="another process held it"):
                ask(ledger, "anna", "2")
            soon = threading.Timer(0.05, lambda: other.execute("ROLLBACK"))
            soon.start()
            assert ask(ledger, "anna", "2").left == 40_000_000_000 - 20_000_000
            soon.join()


def test_a_file_that_is_no_book_is_refused(tmp_path):
    (tmp_path / "budget.db").write_bytes(b"lat,lon\n1,2\n" * 100)
    with pytest.raises(InvalidInput, match="is not a ledger; `metricdp budget begin` makes one"):
        Ledger.open(tmp_path / "budget.db", policy=POLICY)
    (tmp_path / "torn.db").write_bytes(b"SQLite format 3\0" + bytes(range(256)) * 16)
    with pytest.raises(LedgerUnavailable, match="damaged"):
        Ledger.open(tmp_path / "torn.db", policy=POLICY)
    with closing(sqlite3.connect(tmp_path / "other.db")) as other:
        other.execute("CREATE TABLE trips (id INTEGER)")
        other.commit()
    with pytest.raises(InvalidInput, match="another database"):
        Ledger.open(tmp_path / "other.db", policy=POLICY)


def test_books_whose_beginning_was_cut_off_begin_again(tmp_path, monkeypatch):
    def cut(*words):
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr(opening, "_check_version", cut)
        with pytest.raises(KeyboardInterrupt):
            Ledger.open(tmp_path / "budget.db", policy=POLICY)
    assert (tmp_path / "budget.db").exists()
    with Ledger.open(tmp_path / "budget.db", policy=POLICY) as ledger:
        assert ask(ledger, "anna", "1").charged


def test_books_of_a_later_version_are_left_alone(tmp_path):
    Ledger.open(tmp_path / "budget.db", policy=POLICY).close()
    with closing(sqlite3.connect(tmp_path / "budget.db")) as books:
        books.execute("UPDATE books SET version = 99")
        books.commit()
    with pytest.raises(InvalidInput, match="version 99"):
        Ledger.open(tmp_path / "budget.db")


def test_a_link_is_not_followed(tmp_path):
    Ledger.open(tmp_path / "budget.db", policy=POLICY).close()
    (tmp_path / "link.db").symlink_to(tmp_path / "budget.db")
    with pytest.raises(OSError, match="symbolic link"):
        Ledger.open(tmp_path / "link.db")


def test_an_interrupted_caller_leaves_the_others_served(tmp_path):
    """A draw that is interrupted takes its own request with it and nobody else's."""
    entered, go = threading.Event(), threading.Event()

    def interrupted():
        entered.set()
        go.wait(5)
        raise KeyboardInterrupt

    with Ledger.open(tmp_path / "budget.db", policy=POLICY) as ledger:
        results = []

        def first():
            with pytest.raises(KeyboardInterrupt):
                ask(ledger, "anna", "1", draw=interrupted)

        leader = threading.Thread(target=first)
        leader.start()
        entered.wait(5)
        others = [
            threading.Thread(target=lambda n=n: results.append(ask(ledger, "ben", str(n), 1.0).report))
            for n in range(5)
        ]
        for thread in others:
            thread.start()
        go.set()
        for thread in (leader, *others):
            thread.join()
        assert results == [b"report"] * 5
        assert ask(ledger, "anna", "1").report == b"report"
        assert ledger.verify().holds


def test_rotate_and_backup_on_a_full_disk_are_sentences_and_leave_nothing_behind(tmp_path):
    signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    with Ledger.open(tmp_path / "budget.db", policy=POLICY) as ledger:
        for number in range(40):
            ask(ledger, "anna", str(number), 1.0, draw=lambda: os.urandom(5000))
        before = sorted(path.name for path in tmp_path.iterdir())
        said = []
        for size in (0, 40, 3000, 50_000, 150_000):
            try:
                resource.setrlimit(resource.RLIMIT_FSIZE, (size, hard))
                for work in (lambda: ledger.backup(tmp_path / "copy.db"), lambda: ledger.rotate(reports_before=1e12)):
                    try:
                        work()
                    except MetricdpError as error:
                        said.append(str(error))
            finally:
                resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
            assert sorted(path.name for path in tmp_path.iterdir()) == before
        assert len(said) >= 8
        ledger.backup(tmp_path / "copy.db")
        assert ledger.rotate(reports_before=1e12)
        assert ledger.verify().holds


def test_a_ledger_that_a_full_disk_kept_from_beginning_begins_later(tmp_path):
    signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    for size in (0, 100, 9000):  # too little for the key, for the head file, for the tables
        try:
            resource.setrlimit(resource.RLIMIT_FSIZE, (size, hard))
            with pytest.raises(MetricdpError) as refused:
                Ledger.open(tmp_path / f"{size}.db", policy=POLICY)
        finally:
            resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
        if "Nothing was written" in str(refused.value):
            assert not list(tmp_path.glob(f"{size}.db*"))
        with Ledger.open(tmp_path / f"{size}.db", policy=POLICY) as ledger:
            assert ask(ledger, "anna", "1").charged


@pytest.mark.parametrize(
    "statement",
    [
        "UPDATE tombstones SET person = -1",
        "UPDATE entries SET note = NULL",
        "UPDATE entries SET time = 'x'",
        "UPDATE entries SET shares = x'00'",
        "UPDATE blocks SET count = 1.5",
        "UPDATE entries SET seal = 1000000000000000000",
        "UPDATE books SET key_check = 1000000000000000000",
        "UPDATE accounts SET time = 'x'",
        "UPDATE accounts SET hour = x'ff'",
        "UPDATE lanes SET head = 'x'",
        "UPDATE books SET name = x'fffe'",
        "UPDATE books SET policy = x'fffe'",
        "UPDATE books SET copied = 9e999",
    ],
)
def test_a_damaged_ledger_is_a_sentence_or_a_fault(tmp_path, statement):
    place = tmp_path / "budget.db"
    with Ledger.open(place, policy=POLICY) as ledger:
        ask(ledger, "anna", "1")
        rows = {"ben": 1, "cleo": 2}
        ledger.release_batch(rows, "2", key="app", metric="haversine/km", epsilon=1.0, draw=lambda granted: b"")
        ledger.erase("ben")
    with closing(sqlite3.connect(place)) as books:
        books.execute("PRAGMA ignore_check_constraints=ON")
        with suppress(sqlite3.IntegrityError):
            books.execute(statement)
        books.commit()
    works = [
        lambda ledger: ledger.verify(),
        lambda ledger: json.dumps(list(ledger.export()), allow_nan=False),
        lambda ledger: (ledger.budget("anna"), ledger.history("anna")),
        lambda ledger: ask(ledger, "anna", "1"),
        lambda ledger: ask(ledger, "anna", "new"),
        lambda ledger: ledger.backup(tmp_path / "copy.db"),
        lambda ledger: ledger.rotate(),
    ]
    for number, work in enumerate(works):
        with suppress(MetricdpError), Ledger.open(place, read_only=number < 3) as ledger:
            work(ledger)
