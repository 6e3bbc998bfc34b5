"""When the disk is full, the file is damaged or others hold it: a sentence, nothing released, and it recovers."""

import os
import resource
import signal
import sqlite3
import threading
from contextlib import closing, suppress

import pytest

from books import ask
from metricdp.errors import InvalidInput, LedgerUnavailable
from metricdp.ledger import Ledger
from metricdp.ledger import store as storing
from metricdp.ledger.keys import create_key

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
    monkeypatch.setattr(storing, "PATIENCE", 0.2)
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
    with pytest.raises(LedgerUnavailable, match="damaged"):
        Ledger.open(tmp_path / "budget.db", policy=POLICY)
    with closing(sqlite3.connect(tmp_path / "other.db")) as other:
        other.execute("CREATE TABLE trips (id INTEGER)")
        other.commit()
    with pytest.raises(InvalidInput, match="another database"):
        Ledger.open(tmp_path / "other.db", policy=POLICY)


def test_books_whose_beginning_was_cut_off_begin_again(tmp_path):
    (tmp_path / "budget.db").touch(0o600)
    create_key(tmp_path / "budget.db.key")
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
