"""The attacks of benchmarks/fuzz.py, in short: another hundred of each kind with every version of the program."""

import math
import shutil
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path

import flint
import pytest

sys.path.append(str(Path(__file__).parents[2] / "benchmarks"))
import fuzz
from attacks import exact, watch


@pytest.mark.filterwarnings("ignore:overflow", "ignore:divide by zero", "ignore:invalid value", "ignore:underflow")
@pytest.mark.parametrize(
    ("kind", "cases"),
    [("audits", 600), ("local", 150), ("builds", 60), ("files", 500), ("javascript", 2)],
    ids=lambda value: str(value),
)
def test_nothing_is_unsound_and_every_error_is_ours(kind, cases):
    if kind == "javascript" and shutil.which("node") is None:
        pytest.skip("Node is not installed (Debian: apt install nodejs)")
    verdicts = Counter()
    for number in range(cases):
        verdict, said = fuzz.run_case(kind, number)
        assert verdict in ("held", "refused"), f"{kind}:{number} {verdict}: {said}"
        verdicts[verdict] += 1
    assert verdicts["held"] >= cases // 100  # some attacks are answered, so that answers were judged


def test_places_on_one_parallel_on_a_pole_and_opposite_each_other_are_judged():
    places = [[85.0, -47.93313157337229], [85.0, -22.807504940894667], [90.0, 3.0], [90.0, 4.0], [-90.0, 5.0]]
    apart = exact.measured("haversine", places)
    assert all(cell.is_finite() for row in apart for cell in row)
    inner = math.sin(math.radians(85.0)) ** 2 + math.cos(math.radians(85.0)) ** 2 * math.cos(
        math.radians(25.125626632477623)
    )
    assert float(apart[0][1].mid()) == pytest.approx(6371.009 * math.acos(inner), rel=1e-9)
    assert float(apart[2][4].mid()) == pytest.approx(6371.009 * math.pi, rel=1e-15)
    assert apart[2][3].contains(0)
    assert float(apart[2][3].abs_upper()) < 1e-100
    assert fuzz.run_case("builds", 2018282) == ("held", "decomposed")  # two of its secrets lie on one parallel


def test_a_judge_without_a_distance_does_not_call_a_mechanism_unsound():
    unknown = [[flint.arb(0), flint.arb("nan")], [flint.arb("nan"), flint.arb(0)]]
    with pytest.raises(ArithmeticError, match="no distance between secrets 0 and 1"):
        exact.leakage([[0.5, 0.5], [0.4, 0.6]], unknown)


@pytest.fixture
def hasty(monkeypatch):
    """Let a watch look often and give up early."""
    monkeypatch.setattr(watch, "LOOK", 0.02)
    monkeypatch.setattr(watch, "WORK", 0.2)
    monkeypatch.setattr(watch, "SLEEP", 0.2)


@pytest.fixture
def family():
    """Start a shell that leads a group and what it runs; all of it is ended after the test."""
    started = []

    def start(script):
        started.append(subprocess.Popen(["sh", "-c", script], stdout=subprocess.PIPE, process_group=0))
        return started[-1]

    yield start
    for process in started:
        if process.returncode is None:
            watch.end(process.pid)
        process.communicate()


def fault_of(process, *, seconds=20.0):
    """Return what a watch says in the end; nothing where it says nothing within the seconds."""
    watching, until = watch.Watch(process.pid), time.monotonic() + seconds
    while not (said := watching.fault()) and time.monotonic() < until:
        time.sleep(0.01)
    return said


def test_work_of_what_a_process_started_counts_as_its_own(hasty, family, monkeypatch):
    monkeypatch.setattr(watch, "SLEEP", 60.0)
    process = family("(while :; do :; done) & wait")  # it sleeps, its child works
    assert fault_of(process) == "no answer in 0.2 s of processor time"


def test_a_process_that_sleeps_for_ever_has_hung(hasty, family):
    assert fault_of(family("sleep 60 & wait")) == "asleep for 0.2 s without an answer"


def test_a_process_that_waits_for_a_processor_has_not_hung(hasty, family, monkeypatch):
    monkeypatch.setattr(watch, "activity", lambda processes: (0.0, True))
    assert fault_of(family("sleep 60 & wait"), seconds=1.0) == ""


def test_a_watch_that_had_no_processor_itself_blames_nobody(hasty, family, monkeypatch):
    watching = watch.Watch(family("sleep 60 & wait").pid)
    watching.looked -= 3600.0
    watching.seen = 0.0
    monkeypatch.setattr(watch, "activity", lambda processes: (0.0, False))
    assert watching.fault() == ""


def test_a_case_is_ended_with_all_that_it_started(family):
    process = family("sleep 60 & echo started; wait")
    assert process.stdout.readline() == b"started\n"
    assert len(watch.members(process.pid)) == 2
    watch.end(process.pid)
    assert process.communicate(timeout=20) == (b"", None)  # nobody holds the other end any more


def test_a_process_that_died_is_told_and_replaced(capfd):
    worker = fuzz.Worker("nothing", iter(range(9)))  # there is no such attack: the process ends at once
    try:
        for number in (0, 1):
            while (answer := worker.poll()) is None:
                time.sleep(0.01)
            assert answer == ("foreign", "the process died with 1")
            assert worker.number == number
            folder = Path(worker.folder.name)
            worker.restart()
            assert not folder.exists()
    finally:
        worker.stop()
    assert "No module named 'attacks.nothing'" in capfd.readouterr().err
