"""Books on a real PostgreSQL server: many processes at once, backends killed, the server gone and back."""

import os
import random
import signal
import threading

import pytest

from books import DAY, Clock, ask, fork, postgres, server
from crowds import POLICY as CROWDS
from crowds import compared
from killing import POLICY as PLENTY
from killing import Tally, back, balanced, killed, repeated
from metricdp.errors import BudgetExceeded, InvalidInput, LedgerUnavailable
from metricdp.ledger import Ledger, Steady, columns, crowd

pytestmark = pytest.mark.skipif(postgres() is None, reason="no PostgreSQL programs (initdb, postgres) on this machine")
POLICY = "40/km per day, 200/km ever, 30/km per week for ads, 40/km per day for maps"


@pytest.fixture(scope="module")
def running():
    with server() as its:
        yield its


def test_the_same_promises_hold_on_a_server(running, tmp_path):
    clock, place, key = Clock(), running.fresh("promises"), tmp_path / "books.key"
    with Ledger.open(place, policy=POLICY, key_file=key, clock=clock) as ledger:
        first = ask(ledger, "anna", "1", draw=lambda: b"one", purpose="ads")
        again = ask(ledger, "anna", "1", draw=lambda: pytest.fail("drawn"), purpose="ads")
        assert (again.report, again.repeated, again.left) == (b"one", True, first.left)
        with pytest.raises(BudgetExceeded, match="30/km per week for ads"):
            ask(ledger, "anna", "2", 21.0, purpose="ads")
        part = ledger.release_batch(
            {"anna": 5, "ben": 3, 7: 1}, "b", key="app", metric="haversine/km", epsilon=10.0, purpose="maps",
            partial=True, draw=lambda granted: b"all",
        )  # fmt: skip
        assert part.granted == {"anna": 3, "ben": 3, 7: 1}
        assert part.left == {"anna": 0, "ben": 10_000_000, 7: 30_000_000}
        clock.now += DAY
        steady = [ask(ledger, "ben", Steady("day"), 1.0, purpose="maps").left for _ in range(3)]
        assert steady == [39_000_000] * 3
        assert ledger.erase("anna")
        with pytest.raises(BudgetExceeded, match="closed"):
            ask(ledger, "anna", "1", purpose="ads")
        assert ledger.rotate(reports_before=clock.now + 1) == (1, 1)
        assert [one.rows for one in ledger.history("ben")] == [3, 1]
        assert ledger.verify().holds
    with pytest.raises(InvalidInput, match="does not belong to the books"):
        Ledger.open(place, key_file=other_key(tmp_path))
    with pytest.raises(InvalidInput, match="pg_dump"), Ledger.open(place, key_file=key) as ledger:
        ledger.backup(tmp_path / "copy.db")


def test_a_batch_of_many_people_is_what_one_by_one_would_be(running, tmp_path, monkeypatch):
    monkeypatch.setattr(columns, "MOST", 7)  # people in one statement
    monkeypatch.setattr(crowd, "MOST_KINDS", 3)
    clock, place = Clock(), running.fresh("crowd")
    with Ledger.open(place, policy=CROWDS, key_file=tmp_path / "books.key", clock=clock) as ledger:
        compared(ledger, clock, random.Random(4), 7)


def other_key(folder):
    place = folder / "other.key"
    place.write_text("1" * 64)
    place.chmod(0o600)
    return place


def spend_in_processes(place, key, count, work):
    """Fork processes that run `work` and return how many answers each wrote."""
    pipes = {}
    for number in range(count):
        here, there = os.pipe()
        child = fork()
        if child == 0:
            try:
                os.close(here)
                with Ledger.open(place, key_file=key) as ledger:
                    threads = [threading.Thread(target=work, args=(ledger, number, n, there)) for n in range(4)]
                    for thread in threads:
                        thread.start()
                    for thread in threads:
                        thread.join()
            finally:
                os._exit(0)
        os.close(there)
        pipes[child] = here
    answers = []
    for child, here in pipes.items():
        with os.fdopen(here) as file:
            answers.append(file.read().splitlines())
        os.waitpid(child, 0)
    return answers


def test_four_processes_never_spend_one_unit_over(running, tmp_path):
    place, key = running.fresh("processes"), tmp_path / "books.key"
    Ledger.open(place, policy="40/km ever", key_file=key).close()

    def work(ledger, process, thread, out):
        for number in range(12):
            try:
                left = ask(ledger, f"person {number % 2}", f"{process} {thread} {number}", 0.7).left
                os.write(out, f"{left}\n".encode())
            except BudgetExceeded:
                os.write(out, b"refused\n")

    answers = [line for lines in spend_in_processes(place, key, 4, work) for line in lines]
    granted = [int(line) for line in answers if line != "refused"]
    assert len(answers) == 4 * 4 * 12
    assert len(granted) == 2 * 57  # of 40/km, 57 releases of 0.7/km fit
    with Ledger.open(place, key_file=key) as ledger:
        for person in ("person 0", "person 1"):
            assert ledger.budget(person).accounts[0].spent == 57 * 700_000
        assert ledger.verify().holds


def test_one_request_from_many_processes_is_drawn_once(running, tmp_path):
    place, key = running.fresh("same"), tmp_path / "books.key"
    Ledger.open(place, policy="40/km ever", key_file=key).close()

    def work(ledger, process, thread, out):
        for number in range(5):
            report = ask(ledger, "anna", str(number), 1.0, draw=lambda: os.urandom(8)).report
            os.write(out, f"{number} {report.hex()}\n".encode())

    answers = [line for lines in spend_in_processes(place, key, 4, work) for line in lines]
    assert len(answers) == 4 * 4 * 5
    assert len(set(answers)) == 5
    with Ledger.open(place, key_file=key) as ledger:
        assert ledger.budget("anna").accounts[0].spent == 5_000_000
        assert ledger.verify().holds


def test_a_backend_that_is_killed_loses_nothing(running, tmp_path):
    import psycopg

    place, key = running.fresh("killed"), tmp_path / "books.key"
    Ledger.open(place, policy=PLENTY, key_file=key).close()

    def victim():
        with psycopg.connect(place) as connection:
            busy = "SELECT pid FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid()"
            pids = [row[0] for row in connection.execute(busy)]
        if pids:
            os.kill(pids[0], signal.SIGKILL)

    tally, dice = Tally(), random.Random(3)
    for number in range(2):
        answers = killed(place, key, f"run {number}", tally, dice, victim=victim, patience=0.4)
        with back(place, key) as ledger:
            repeated(ledger, f"run {number}", answers, tally)
    with Ledger.open(place, key_file=key) as ledger:
        balanced(ledger, tally)


def test_a_silent_network_is_noticed_on_both_sides(running, tmp_path):
    place = f"{running.fresh('silent')}?keepalives_idle=7"
    with Ledger.open(place, policy="40/km ever", key_file=tmp_path / "books.key") as ledger:
        with ledger._store.engine.connect() as connection:
            told = connection.connection.driver_connection.info.get_parameters()
            names = ("tcp_user_timeout", "tcp_keepalives_idle", "idle_in_transaction_session_timeout")
            shown = [connection.exec_driver_sql(f"SHOW {name}").scalar_one() for name in names]
        assert shown == ["20000", "10", "2min"]
    assert {name: told[name] for name in told if "keepalives" in name or "timeout" in name} == {
        "connect_timeout": "5", "keepalives": "1", "keepalives_idle": "7", "keepalives_interval": "5",
        "keepalives_count": "2", "tcp_user_timeout": "20000",
    }  # fmt: skip


def test_a_connection_that_breaks_is_no_noise_for_an_operator(running, tmp_path, capfd, caplog):
    import psycopg

    def broken(raw):
        with raw.pipeline():
            raw.execute("SELECT pg_terminate_backend(pg_backend_pid())")
            raw.execute("SELECT 1").fetchone()

    place, key = running.fresh("noise"), tmp_path / "books.key"
    with Ledger.open(place, policy="40/km ever", key_file=key) as ledger, ledger._store.engine.connect() as connection:
        with caplog.at_level("DEBUG"), pytest.raises(psycopg.Error):
            broken(connection.connection.driver_connection)
        connection.invalidate()
        said = [(record.name, record.getMessage()) for record in caplog.records]
        assert said == [
            ("metricdp.ledger", "the driver let go of a connection that was broken: error ignored terminating")
        ]
    assert "error ignored" not in "".join(capfd.readouterr())


def test_a_server_that_is_gone_is_a_sentence_and_comes_back_by_itself(running, tmp_path):
    place, key = running.fresh("gone"), tmp_path / "books.key"
    with Ledger.open(place.replace("tester@", "tester:geheim@"), policy="40/km ever", key_file=key) as ledger:
        ask(ledger, "anna", "1", draw=lambda: b"one")
        running.stop("immediate")
        for request in ("1", "2"):
            with pytest.raises(LedgerUnavailable, match="ask again with the same request id") as told:
                ask(ledger, "anna", request, draw=lambda: b"two")
            assert "geheim" not in str(told.value)
        running.start()
        assert ask(ledger, "anna", "1").report == b"one"
        assert ask(ledger, "anna", "2").left == 20_000_000
        assert ledger.verify().holds
