"""Books on a real PostgreSQL server: many processes at once, backends killed, the server gone and back."""

import json
import os
import random
import signal
import threading
import time
from contextlib import suppress

import pytest

from books import HOUR, NOON, Clock, ask, fork, postgres, server
from crowds import POLICY as CROWDS
from crowds import compared
from killing import POLICY as PLENTY
from killing import Tally, back, balanced, killed, repeated
from metricdp.errors import BudgetExceeded, InvalidInput, LedgerUnavailable
from metricdp.ledger import PERIODS, Ledger, batch_accounts, settling
from metricdp.mobility import Absorption, Stream
from metricdp.tables import Charging

pytestmark = pytest.mark.skipif(postgres() is None, reason="no PostgreSQL programs (initdb, postgres) on this machine")
HOUR_ENDS = NOON + HOUR
POLICY = "40/km per day, 200/km ever, 30/km per week for ads, 40/km per day for maps"


@pytest.fixture(scope="module")
def running():
    with server() as its:
        yield its


def test_a_server_wants_the_key_it_began_with_and_has_a_program_for_backups(running, tmp_path):
    place, key = running.fresh("keys"), tmp_path / "books.key"
    Ledger.open(place, policy=POLICY, key_file=key).close()
    with pytest.raises(InvalidInput, match="does not belong to the ledger"):
        Ledger.open(place, key_file=other_key(tmp_path))
    with pytest.raises(InvalidInput, match="pg_dump"), Ledger.open(place, key_file=key) as ledger:
        ledger.backup(tmp_path / "copy.db")


def test_a_batch_of_many_people_is_what_one_by_one_would_be(running, tmp_path, monkeypatch):
    monkeypatch.setattr(batch_accounts, "MOST", 7)  # people in one statement
    monkeypatch.setattr(batch_accounts, "MOST_KINDS", 3)
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


def test_an_account_that_is_opened_while_another_process_rotates_is_no_fault(running, tmp_path):
    place, options = running.fresh("rotated"), {"key_file": tmp_path / "books.key"}
    drawing, rotated = threading.Event(), threading.Event()

    def draw():
        drawing.set()
        assert rotated.wait(60)
        return b""

    with (
        Ledger.open(place, policy="40/km ever", clock=Clock(HOUR_ENDS - 1), **options) as first,
        Ledger.open(place, clock=Clock(HOUR_ENDS + 1), **options) as second,
    ):
        second._lane = (first._lane + 1) % 16  # as another process has
        charge = threading.Thread(target=ask, args=(first, "anna", "1"), kwargs={"draw": draw})
        charge.start()
        assert drawing.wait(60)
        second.rotate()
        rotated.set()
        charge.join()
        assert second.budget("anna").accounts[0].spent == 10_000_000
        assert second.verify().holds
        second.rotate()
        assert second.verify().holds


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


def test_an_older_dump_is_refused_by_the_head_file_that_is_named(running, tmp_path):
    import psycopg

    key, head, place = tmp_path / "books.key", tmp_path / "books.head", running.fresh("now")
    with Ledger.open(place, policy="40/km ever", key_file=key) as ledger:
        assert "nobody notices" in ledger.verify().notes[0]
    with Ledger.open(place, key_file=key, head_file=head) as ledger:
        ask(ledger, "anna", "1")
        assert ledger.verify().notes == ()
    with psycopg.connect(running.url, autocommit=True) as connection:
        connection.execute('CREATE DATABASE "old" TEMPLATE "now"')
    with Ledger.open(place, key_file=key, head_file=head) as ledger:
        ask(ledger, "anna", "2")
    old = place.replace("/now", "/old")
    with pytest.raises(InvalidInput, match="behind its head file"):
        Ledger.open(old, key_file=key, head_file=head)
    Ledger.recover(old, key_file=key, head_file=head)
    with Ledger.open(old, key_file=key, head_file=head) as ledger:
        assert ask(ledger, "anna", "2").left == 20_000_000
        assert ledger.verify().holds


def test_an_emptied_database_is_refused_by_its_head_file_and_stays_empty(running, tmp_path):
    import psycopg

    place, options = (
        running.fresh("emptied"),
        {"key_file": tmp_path / "books.key", "head_file": tmp_path / "books.head"},
    )
    with Ledger.open(place, policy="40/km ever", **options) as ledger:
        ask(ledger, "anna", "1")
    with psycopg.connect(place, autocommit=True) as connection:
        connection.execute("DROP TABLE books, lanes, blocks, entries, accounts, tombstones")
        with pytest.raises(InvalidInput, match="beginning anew would give everybody their budget back"):
            Ledger.open(place, policy="40/km ever", **options)
        count = connection.execute("SELECT count(*) FROM pg_tables WHERE schemaname = 'public'").fetchone()
    assert count == (0,)  # so that a dump can be restored, and nobody finds an empty ledger without the head file
    assert "is lost" in Ledger.recover(place, policy="40/km ever", **options)
    with Ledger.open(place, **options) as ledger:
        assert ask(ledger, "anna", "2").left == 30_000_000
        assert ledger.verify().holds


def test_what_another_process_charged_is_missed_when_an_older_dump_comes_back_under_an_open_ledger(running, tmp_path):
    import psycopg

    key, head, place = tmp_path / "books.key", tmp_path / "books.head", running.fresh("under")
    with Ledger.open(place, policy="40/km ever", key_file=key, head_file=head) as first:
        ask(first, "anna", "1")
        with Ledger.open(place, key_file=key, head_file=head) as second:
            second._lane = (first._lane + 1) % 16  # as another process has it
            ask(second, "anna", "2", 30.0)
        with psycopg.connect(place, autocommit=True) as books:  # what a dump made in between would put back
            for table in ("blocks", "entries"):
                books.execute(f"DELETE FROM {table} WHERE lane = %s", (second._lane,))
            books.execute(
                "UPDATE lanes SET blocks = 0, entries = 0, head = %s WHERE lane = %s", (bytes(32), second._lane)
            )
            books.execute(f"UPDATE accounts SET {', '.join(f'{period} = 10000000' for period in PERIODS)}")
        with pytest.raises(LedgerUnavailable, match="lost entries while it was open"):
            ask(first, "anna", "3", 30.0)


def step_until_done(place, key, child, rows):
    """Step rows of one person in a stream of its own process, a few at a time, whenever no other process does."""
    done = 0
    while done < rows:
        with Ledger.open(place, key_file=key) as ledger, suppress(InvalidInput):
            stream = Stream(Charging(ledger), Absorption(4, 8.0))
            for _ in range(3):
                stream.step("7" if child % 2 else 7, time.monotonic(), (41.0 + random.random(), -8.0))
                done += 1


def test_processes_that_step_one_stream_take_turns(running, tmp_path):
    place, key = running.fresh("streams"), tmp_path / "books.key"
    Ledger.open(place, policy="100000/km ever", key_file=key).close()
    children = []
    for number in range(3):
        child = fork()
        if child == 0:
            try:
                step_until_done(place, key, number, 9)
            except BaseException:
                os._exit(1)
            os._exit(0)
        children.append(child)
    assert [os.waitpid(child, 0)[1] for child in children] == [0, 0, 0]
    with Ledger.open(place, key_file=key) as ledger:
        costs = {}
        for one in ledger.history(7):
            at = json.loads(one.report)["time"]
            costs[at] = costs.get(at, 0) + one.amount
        rows = [costs[at] for at in sorted(costs)]
        assert len(rows) == 27
        assert max(sum(rows[start : start + 4]) for start in range(27)) <= 8_000_000 + 8


def test_a_forked_process_that_closes_its_ledger_takes_no_lock_away(running, tmp_path):
    place, key = running.fresh("forked"), tmp_path / "books.key"
    with Ledger.open(place, policy="100000/km ever", key_file=key) as ledger:
        stream = Stream(Charging(ledger), Absorption(4, 8.0))
        stream.step("anna", 0.0, (41.0, -8.0))
        child = fork()
        if child == 0:
            ledger.close()
            os._exit(0)
        assert os.waitpid(child, 0)[1] == 0
        with Ledger.open(place, key_file=key) as second, pytest.raises(InvalidInput, match="another process steps"):
            Stream(Charging(second), Absorption(4, 8.0)).step("anna", 1.0, (42.0, -8.0))
        assert stream.step("anna", 1.0, (42.0, -8.0)) is not None


def test_a_stream_whose_lock_was_lost_reads_the_books_again(running, tmp_path):
    import psycopg

    place, key = running.fresh("lost"), tmp_path / "books.key"
    with Ledger.open(place, policy="100000/km ever", key_file=key) as ledger:
        stream = Stream(Charging(ledger), Absorption(4, 8.0))
        assert stream.step("anna", 0.0, (41.0, -8.0)).fresh
        holders = "SELECT pid FROM pg_locks WHERE locktype = 'advisory'"
        with psycopg.connect(place) as connection:
            ((pid,),) = connection.execute(holders)
        with Ledger.open(place, key_file=key) as second, pytest.raises(InvalidInput, match="another process steps"):
            Stream(Charging(second), Absorption(4, 8.0)).step("anna", 1.0, (41.0, -8.0))
        honest = Stream._request

        def meanwhile(*words):
            with psycopg.connect(place, autocommit=True) as connection:
                connection.execute("SELECT pg_terminate_backend(%s, 5000)", (pid,))
            return honest(*words)

        stream._request = lambda *words: meanwhile(stream, *words)
        with pytest.raises(LedgerUnavailable, match="the lock of the stream"):
            stream.step("anna", 2.0, (48.0, -8.0))
        del stream._request
        with Ledger.open(place, key_file=key) as second:
            assert Stream(Charging(second), Absorption(4, 8.0)).step("anna", 3.0, (48.0, -8.0)) is not None
        assert stream.step("anna", 3.0, (0.0, 0.0)).known


@pytest.mark.parametrize("version", ["now", "0.1.0"])
def test_two_purposes_across_a_full_hour_raise_no_alarm(running, tmp_path, version, monkeypatch):
    """A process that looked at the clock before the hour was full charges another purpose of the account after it."""
    early, late = Clock(HOUR_ENDS - 1), Clock(HOUR_ENDS + 1)
    place, key = running.fresh(f"hour {version}"), tmp_path / "books.key"
    policy = "100/km ever, 10/km per hour for ads, 40/km per hour for maps"
    with Ledger.open(place, policy=policy, key_file=key, clock=early) as ledger:
        ask(ledger, "anna", "1", 5.0, purpose="ads")
        ask(ledger, "anna", "2", 4.0, purpose="ads")
        with Ledger.open(place, key_file=key, clock=late) as other:
            other._lane = (ledger._lane + 1) % 16  # another process
            ask(other, "anna", "3", 3.0, purpose="maps")
        monkeypatch.setattr(
            settling, "state_of", lambda connection, clock: settling.LedgerState(ledger.policy(), clock)
        )
        if version == "now":  # what was spent for ads before the full hour no longer counts
            assert ask(ledger, "anna", "4", 10.0, purpose="ads").left == 0
        else:  # it did count, on top
            ask(ledger, "anna", "4", 1.0, purpose="ads")
            with ledger._store.engine.connect() as connection, connection.begin():
                connection.exec_driver_sql("UPDATE accounts SET hour = 10000000 WHERE purpose = 'ads'")
        assert ledger.verify().faults == ()
        with ledger._store.engine.connect() as connection, connection.begin():
            connection.exec_driver_sql("UPDATE lanes SET time = time + 86400000 WHERE blocks = 0")
        assert "was changed" in ledger.verify().faults[0]
