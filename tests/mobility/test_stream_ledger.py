"""Streams with books: no window of steps costs more than its total, whatever is killed, repeated or late."""

import io
import json
import os
import signal
import tempfile
import threading
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pyarrow as pa
import pyarrow.parquet as parquet
import pytest

from books import fork, quick_folder
from metricdp.errors import BudgetExceeded, InvalidInput, MetricdpError
from metricdp.ledger import Ledger
from metricdp.mobility import Absorption, Distribution, Stream, feeds
from metricdp.tables import Charging
from scripts import main

KINDS = [Distribution, Absorption]
WINDOW, TOTAL = 4, 20.0


@pytest.fixture
def place():
    with tempfile.TemporaryDirectory(dir=quick_folder()) as folder:
        books = Path(folder) / "budget.db"
        Ledger.open(books, policy="100000/km ever").close()
        yield books


def walk(count, seed=0):
    """Somebody who stands still for a while and moves on."""
    rng = np.random.default_rng(seed)
    moves = np.where(rng.random(count) < 0.4, 0.05, 0.0)
    return [(float(60 * n), (41.0 + move, -8.0)) for n, move in enumerate(moves.cumsum().tolist())]


def charges(ledger, person="anna"):
    """What the books hold of a stream, step by step: {number: millionths}, by their own records."""
    costs = {}
    for one in ledger.history(person):
        number = json.loads(one.report)["number"]
        costs[number] = costs.get(number, 0) + one.amount
    return costs


def dearest_window(costs, window):
    steps = range(max(costs) + 1)
    return max(sum(costs.get(number, 0) for number in range(start, start + window)) for start in steps)


@pytest.mark.parametrize("kind", KINDS)
def test_a_stream_that_is_opened_anew_for_every_row_knows_where_it_is(place, kind):
    rows, answers = walk(16), []
    with Ledger.open(place) as ledger:
        for time, where in rows:
            answers.append(Stream(Charging(ledger), kind(WINDOW, TOTAL)).step("anna", time, where))
        assert any(one.fresh for one in answers[1:])
        assert not all(one.fresh for one in answers)
        assert dearest_window(charges(ledger), WINDOW) <= TOTAL * 1e6 + 2 * WINDOW  # each rounded up
        before = ledger.history("anna")
        late = Stream(Charging(ledger), kind(WINDOW, TOTAL))
        for (time, _), answer in zip(rows, answers, strict=True):  # the same rows again, from elsewhere
            again = late.step("anna", time, (0.0, 0.0))
            assert (again.latitude, again.longitude, again.fresh) == (answer.latitude, answer.longitude, answer.fresh)
        assert ledger.history("anna") == before
        assert late.count.charged == 0


@pytest.mark.parametrize("kind", KINDS)
def test_a_stream_that_goes_on_is_what_it_would_have_been(place, kind):
    with Ledger.open(place) as ledger:
        one = Stream(Charging(ledger), kind(WINDOW, TOTAL))
        for number, (time, where) in enumerate(walk(16)):
            one.step("anna", time, where)
            other = Stream(Charging(ledger), kind(WINDOW, TOTAL))._recover("anna")
            mine = one._people[b"anna"]
            assert (other.number, other.last, other.times) == (mine.number, mine.last, mine.times), number
            assert (other.run.steps, other.run.fresh) == (mine.run.steps, mine.run.fresh), number
            assert (other.run.resting, other.run.newest) == (mine.run.resting, mine.run.newest), number
        assert len(one._people[b"anna"].run) <= WINDOW + 1


def test_a_stream_that_is_killed_behind_any_charge_goes_on_within_its_window(place):
    rows = walk(14, seed=3)
    given = {}
    for calls in (1, 2, 3, 5):  # the second kill falls between a test and its report, more often than not
        child = fork()
        if child == 0:
            with Ledger.open(place) as ledger:
                honest, left = ledger.release, [calls]

                def release(*words, honest=honest, left=left, **options):
                    receipt = honest(*words, **options)
                    left[0] -= not receipt.repeated
                    if not left[0]:
                        os.kill(os.getpid(), signal.SIGKILL)
                    return receipt

                ledger.release = release
                stream = Stream(Charging(ledger), Distribution(WINDOW, TOTAL))
                for time, where in rows:
                    stream.step("anna", time, where)
            os._exit(1)
        assert os.waitpid(child, 0)[1] == signal.SIGKILL
    with Ledger.open(place) as ledger:
        counted = len(ledger.history("anna"))
        stream = Stream(Charging(ledger), Distribution(WINDOW, TOTAL))
        for time, where in rows:
            given[time] = stream.step("anna", time, where)
        assert counted == 1 + 2 + 3 + 5
        assert dearest_window(charges(ledger), WINDOW) <= TOTAL * 1e6 + 2 * WINDOW
        records = [json.loads(one.report) for one in ledger.history("anna")]
        assert len({(one["time"], one["what"]) for one in records}) == len(records)  # nothing twice
        fresh = {one["time"] for one in records if one["what"] == "report"}
        assert {time for time, answer in given.items() if answer.fresh} == fresh
        assert ledger.verify().holds


def test_a_test_that_failed_before_a_kill_counts_though_its_row_never_comes_again(place):
    with Ledger.open(place) as ledger:
        stream = Stream(Charging(ledger), Distribution(WINDOW, TOTAL))
        stream.step("anna", 0.0, (41.0, -8.0))
        honest = ledger.release

        def only_tests(person, request, **options):
            if request.endswith("report"):
                raise KeyboardInterrupt
            return honest(person, request, **options)

        ledger.release = only_tests
        with pytest.raises(KeyboardInterrupt):
            stream.step("anna", 60.0, (48.0, -8.0))  # far away: the test fails
        ledger.release = honest
        again = Stream(Charging(ledger), Distribution(WINDOW, TOTAL))
        answer = again.step("anna", 120.0, (48.0, -8.0))
        assert answer.fresh
        assert again._people[b"anna"].number == 3
        assert list(charges(ledger)) == [0, 1, 2]


def row_costs(ledger, person):
    """What every row of a stream cost, in the order of their times, by the books' own records."""
    costs = {}
    for one in ledger.history(person):
        time = json.loads(one.report)["time"]
        costs[time] = costs.get(time, 0) + one.amount
    return [costs[time] for time in sorted(costs)]


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(
    "spellings", [("Jos\u00e9", "Jose\u0301"), (7, "7"), (7.0, b"7", "7")], ids=["text", "number", "all"]
)
def test_a_person_in_several_spellings_has_one_window(place, kind, spellings):
    with Ledger.open(place) as ledger:
        stream, still = Stream(Charging(ledger), kind(WINDOW, TOTAL)), (41.0, -8.0)
        for row in range(14):  # one spelling stands still, saves up and moves at last, the others move all the time
            place = still if row % len(spellings) == 0 and row < 12 else (45.0 + row, -8.0)
            answer = stream.step(spellings[row % len(spellings)], float(row), place)
            still = (answer.latitude, answer.longitude) if row % len(spellings) == 0 else still
        costs = row_costs(ledger, spellings[-1])
        assert len(costs) == 14
        assert max(sum(costs[start : start + WINDOW]) for start in range(14)) <= TOTAL * 1e6 + 2 * WINDOW


@pytest.mark.parametrize("shared", [True, False], ids=["one stream", "two streams"])
def test_threads_that_step_one_stream_have_one_window(place, shared):
    with Ledger.open(place) as ledger:
        first = Stream(Charging(ledger), Distribution(WINDOW, TOTAL))
        streams = [first, first if shared else Stream(Charging(ledger), Distribution(WINDOW, TOTAL))]
        times, got = iter(range(1, 40)), [first.step("anna", 0.0, (41.0, -8.0))]

        def step(stream):
            for time in times:
                got.append(stream.step("anna", float(time), (41.0 + time, -8.0)))

        threads = [threading.Thread(target=step, args=(stream,)) for stream in streams]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert len(got) == 40
        costs = row_costs(ledger, "anna")
        assert max(sum(costs[start : start + WINDOW]) for start in range(len(costs))) <= TOTAL * 1e6 + 2 * WINDOW


def test_a_forked_process_that_closes_its_ledger_takes_no_lock_away(place):
    with Ledger.open(place) as ledger:
        stream = Stream(Charging(ledger), Distribution(WINDOW, TOTAL))
        stream.step("anna", 0.0, (41.0, -8.0))
        child = fork()
        if child == 0:
            ledger.close()
            os._exit(0)
        assert os.waitpid(child, 0)[1] == 0
        with Ledger.open(place) as second, pytest.raises(InvalidInput, match="is at work on it"):
            Stream(Charging(second), Distribution(WINDOW, TOTAL)).step("anna", 1.0, (42.0, -8.0))
        assert stream.step("anna", 1.0, (42.0, -8.0)) is not None


def test_a_stream_whose_lock_file_was_removed_reads_the_books_again(place):
    with Ledger.open(place) as ledger, Ledger.open(place) as second:
        streams = [Stream(Charging(one), Distribution(WINDOW, TOTAL)) for one in (ledger, second)]
        streams[0].step("anna", 0.0, (41.0, -8.0))
        (lock,) = place.parent.glob("*.stream.metricdp-lock")
        lock.unlink()
        streams[1].step("anna", 1.0, (42.0, -8.0))
        for time in range(2, 12):
            with pytest.raises(InvalidInput, match="is at work on it"):
                streams[0].step("anna", float(time), (41.0 + time, -8.0))
            streams[1].step("anna", float(time), (41.0 + time, -8.0))
        assert list(place.parent.glob("*.stream.metricdp-lock")) == [lock]
        costs = row_costs(ledger, "anna")
        assert len(costs) == 12
        assert max(sum(costs[start : start + WINDOW]) for start in range(12)) <= TOTAL * 1e6 + 2 * WINDOW


@pytest.mark.parametrize("kind", KINDS)
def test_windows_of_two_spellings_in_an_old_memory_are_joined_and_give_nothing_back(place, kind, monkeypatch):
    people, dearest = ("anna", "ben", "cleo"), 0
    with Ledger.open(place) as ledger:
        with monkeypatch.context() as patched:  # as it was: a memory of its own for every spelling
            patched.setattr(Stream, "hold", lambda stream: None)
            patched.setattr(Ledger, "holds", lambda *words: True)
            for who in people:
                both = [Stream(Charging(ledger), kind(WINDOW, TOTAL)) for _ in range(2)]
                for stream in both:
                    stream._people[who.encode()] = stream._recover(who)  # nothing yet
                at = [(41.0, -8.0)] * 2
                for row in range(14):  # one stands still, saves up and moves at last, the other moves all the time
                    here = at[0] if row % 2 == 0 and row < 12 else (45.0 + row, -8.0)
                    answer = both[row % 2].step(who, float(row), here)
                    at[row % 2] = (answer.latitude, answer.longitude)
        stream = Stream(Charging(ledger), kind(WINDOW, TOTAL))
        for who in people:
            old = row_costs(ledger, who)
            dearest = max(dearest, max(sum(old[start : start + WINDOW]) for start in range(len(old))))
            for number in range(8):
                assert stream.step(who, 1000.0 + number, (50.0 + 0.5 * number, -8.0)) is not None
            costs = row_costs(ledger, who)
            assert costs[: len(old)] == old
            assert max(costs[len(old) :]) > 1  # it does not rest for ever
            for start in range(len(costs)):
                before = sum(old[start : start + WINDOW])
                assert sum(costs[start : start + WINDOW]) <= max(TOTAL * 1e6, before) + 2 * WINDOW
        assert dearest > TOTAL * 1e6 + 2 * WINDOW  # the old memory did spend too much


def test_other_settings_another_name_and_rows_from_before_the_stream_are_told_apart(place):
    with Ledger.open(place) as ledger:
        Stream(Charging(ledger), Distribution(WINDOW, TOTAL)).step("anna", 100.0, (41.0, -8.0))
        with pytest.raises(InvalidInput, match="begun with other settings"):
            Stream(Charging(ledger), Distribution(WINDOW + 1, TOTAL)).step("anna", 200.0, (41.0, -8.0))
        other = Stream(Charging(ledger), Distribution(WINDOW + 1, TOTAL), name="other")
        assert other.step("anna", 200.0, (41.0, -8.0)).fresh
        with pytest.raises(InvalidInput, match="older than all known"):
            other.step("anna", 100.0, (41.0, -8.0))
        with pytest.raises(InvalidInput, match="latitude"):
            other.step("anna", 300.0, (141.0, -8.0))


def test_books_that_are_spent_end_the_stream_or_leave_rows_out(place):
    with Ledger.open(place) as ledger:
        ledger.change_policy("12/km ever")
        stream = Stream(Charging(ledger), Absorption(1, 8.0))
        assert stream.step("anna", 0.0, (41.0, -8.0)).fresh  # 4, half of 8
        assert stream.step("anna", 60.0, (48.0, -8.0)).fresh  # a test and a report, 8: it is spent
        with pytest.raises(BudgetExceeded):
            stream.step("anna", 120.0, (41.0, -8.0))
        quiet = Stream(Charging(ledger, refused="report"), Absorption(1, 8.0))
        assert quiet.step("anna", 6000.0, (49.0, -8.0)) is None
        assert quiet.count.refused == 1
        assert "1 have no report" in quiet.lines()[0]
        assert sum(charges(ledger).values()) <= 12e6


# --- the command ------------------------------------------------------------------------------------------------------


def streamed(place, *words):
    return main(["stream", *map(str, words), "--window", "4", "--total", "20/km", "--ledger", str(place)])


def lines(rows, who="anna"):
    return "person,t,lat,lon\n" + "".join(f"{who},{time:g},{at[0]!r},{at[1]!r}\n" for time, at in rows)


def test_lines_come_in_and_go_out_and_what_comes_again_is_answered_the_same(place, capsys, monkeypatch):
    rows = walk(12)
    outputs = []
    for part in (rows[:8], rows[4:]):  # half of the second part was answered before
        monkeypatch.setattr("sys.stdin", io.StringIO(lines(part)))
        assert streamed(place, "-", "--every", "60s") == 0
        told = capsys.readouterr()
        outputs.append(told.out.splitlines())
        assert "any 4 consecutive rows of one person cost at most epsilon 20 per km" in told.err
        assert "a day costs a person at most 7200 per km (360 windows)" in told.err
        assert "41.0" not in told.err
    assert outputs[0][0] == "person,t,lat,lon,fresh"
    assert len(outputs[0]) == len(outputs[1]) == 9
    assert outputs[0][5:] == outputs[1][1:5]


def test_a_file_that_grows_is_followed_and_goes_on_behind_a_torn_line(place, tmp_path, capsys, monkeypatch):
    source, out = tmp_path / "fixes.csv", tmp_path / "out.csv"
    rows = walk(10)
    source.write_text(lines(rows[:6]))

    def tired(seconds):
        raise KeyboardInterrupt

    monkeypatch.setattr(
        feeds, "time", SimpleNamespace(sleep=tired)
    )  # of this module only: others have threads that sleep
    assert streamed(place, source, "--follow", "-o", out) == 130
    whole = out.read_text()
    assert len(whole.splitlines()) == 7
    assert "6 rows" in capsys.readouterr().out
    assert streamed(place, source, "--follow", "-o", out) == 2
    assert "--resume" in capsys.readouterr().err
    cut = whole[: whole.rindex("\n", 0, -1) + 9]  # killed in the middle of the last line
    out.write_text(cut)
    with source.open("a") as file:
        file.write(lines(rows[6:]).split("\n", 1)[1])
    assert streamed(place, source, "--follow", "--resume", "-o", out) == 130
    assert out.read_text().startswith(whole)  # the answer of the torn line is the one it had
    assert len(out.read_text().splitlines()) == 11
    out.write_text("something,else\n1,2\n")
    assert streamed(place, source, "--follow", "--resume", "-o", out) == 2
    assert "left alone" in capsys.readouterr().err


def test_a_table_that_has_grown_keeps_the_answers_it_had(place, tmp_path, capsys):
    rows = [(who, *row) for who in ("anna", "bob") for row in walk(10, seed=len(who))]
    source, out = tmp_path / "fixes.parquet", tmp_path / "out.parquet"

    def table(some):
        names = ("person", "t", "lat", "lon")
        values = ([who for who, _, _ in some], [t for _, t, _ in some], [at[0] for *_, at in some])
        return pa.table(dict(zip(names, (*values, [at[1] for *_, at in some]), strict=True)))

    parquet.write_table(table([row for row in rows if row[1] < 360]), source)
    assert streamed(place, source, "-o", out) == 0
    first = parquet.read_table(out)
    assert first.column_names == ["person", "t", "lat", "lon", "fresh"]
    parquet.write_table(table(rows), source)
    assert streamed(place, source, "-o", out) == 2
    assert streamed(place, source, "-o", out, "--overwrite") == 0
    assert "12 rows were answered before" in " ".join(capsys.readouterr().out.split())
    second = parquet.read_table(out)
    assert second.num_rows == 20
    assert second.filter(pa.compute.less(second["t"], 360.0)).equals(first)


@pytest.mark.parametrize(
    ("text", "options", "answer"),
    [
        ("", [], "nothing came in"),
        ("who,t,lat,lon\n", [], "does not name person"),
        ("person,t,lat,lon\nanna,0,41\n", [], "line 2 has 3 cells instead of 4"),
        ("person,t,lat,lon\nanna,soon,41.4242,-8\n", [], "line 2 has no time"),
        ("person,t,lat,lon\nanna,0,141.4242,-8\n", [], "nowhere on the Earth"),
        ("person,t,lat,lon\nanna,0,nan,-8\n", [], "nowhere on the Earth"),
        ("person,t,lat,lon\n,0,41.4242,-8\n", [], "whose it is"),
        ("person,t,lat,lon\nanna,0,41.4242," + "8" * 70_000 + "\n", [], "longer than"),
        ("person,t,lat,lon\n", ["--crs", "EPSG:25832"], "are for tables"),
        ("person,t,lat,lon\n", ["--columns", "a,b"], "must name four"),
    ],
)
def test_lines_that_are_no_rows_are_named_without_what_they_hold(place, capsys, monkeypatch, text, options, answer):
    monkeypatch.setattr("sys.stdin", io.StringIO(text))
    assert streamed(place, "-", *options) == 2
    told = capsys.readouterr().err
    assert answer in told
    assert "41.4242" not in told


def test_lines_that_are_no_rows_can_be_dropped(place, capsys, monkeypatch):
    monkeypatch.setattr("sys.stdin", io.StringIO("person,t,lat,lon\nanna,0,x,y\n\nanna,2026-11-16T12:00:00,41,-8\n"))
    assert streamed(place, "-", "--on-error", "drop") == 0
    told = capsys.readouterr()
    assert len(told.out.splitlines()) == 2
    assert "without a report, since no row or older than all that is known: 1 line." in told.err


def test_books_are_asked_for_and_begun_and_one_process_steps_a_stream(place, tmp_path, capsys, monkeypatch):
    words = ["stream", "-", "--window", "4", "--total", "20/km"]
    assert main(words) == 2
    assert "a stream needs a ledger" in capsys.readouterr().err
    assert main([*words, "--ledger", str(tmp_path / "new.db")]) == 2
    assert "say what it allows" in capsys.readouterr().err
    monkeypatch.setattr("sys.stdin", io.StringIO("person,t,lat,lon\nanna,0,41,-8\n"))
    assert main([*words, "--ledger", str(tmp_path / "new.db"), "--policy", "960/km per day"]) == 0
    assert main(["stream", "x.csv", *words[2:], "--ledger", str(place), "--resume", "-o", "y.csv"]) == 2
    assert "--resume is for lines" in capsys.readouterr().err
    child = fork()
    if child == 0:  # the same books and name, while somebody is at work
        with Ledger.open(place) as other:
            other.hold("stream", None)
            monkeypatch.setattr("sys.stdin", io.StringIO("person,t,lat,lon\n"))
            os._exit(streamed(place, "-"))
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 2


@pytest.mark.parametrize("kind", KINDS)
def test_a_stream_whose_last_window_the_books_dropped_does_not_begin_to_spend_anew(place, kind):
    now = [4e9]  # the books remember the latest time they saw
    with Ledger.open(place, clock=lambda: now[0]) as ledger:
        first = Stream(Charging(ledger), kind(WINDOW, TOTAL))
        for time, where in walk(WINDOW):
            now[0] += 1.0
            first.step("anna", time, where)
        spent = ledger.budget("anna").accounts[0].spent
        later = (float(60 * WINDOW), (42.0, -8.0))
        ledger.rotate(reports_before=now[0] - 0.5)  # all but the newest
        with pytest.raises(InvalidInput, match="dropped reports of the stream"):
            Stream(Charging(ledger), kind(WINDOW, TOTAL)).step("anna", *later)
        ledger.rotate(reports_before=now[0] + 1.0)  # all of them
        with pytest.raises(MetricdpError, match="no longer stored"):
            Stream(Charging(ledger), kind(WINDOW, TOTAL)).step("anna", *later)
        assert ledger.budget("anna").accounts[0].spent == spent
        assert Stream(Charging(ledger), kind(WINDOW, TOTAL), name="new").step("anna", *later).fresh


def test_a_stream_goes_on_where_only_reports_before_its_last_window_were_dropped(place):
    now = [4e9]  # the books remember the latest time they saw
    with Ledger.open(place, clock=lambda: now[0]) as ledger:
        rows = walk(5 * WINDOW)
        whole = Stream(Charging(ledger), Distribution(WINDOW, TOTAL))
        for time, where in rows:
            now[0] += 1.0
            whole.step("anna", time, where)
        fresh = [number for number, (time, _) in enumerate(rows) if whole._people[b"anna"].standing_report(time).fresh]
        kept = min(len(rows) - WINDOW - 2, max(fresh) - 1)
        ledger.rotate(reports_before=4e9 + kept + 0.5)
        again = Stream(Charging(ledger), Distribution(WINDOW, TOTAL))
        assert again.step("anna", 1e6, (41.0, -8.0)) is not None
        assert again._people[b"anna"].number == len(rows) + 1
