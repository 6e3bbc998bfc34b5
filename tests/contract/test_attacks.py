"""The attacks of benchmarks/fuzz.py, in short: the first cases of each kind, and what the attacks are judged by."""

import dataclasses
import math
import os
import shutil
import subprocess
import sys
import time
import types
from collections import Counter
from pathlib import Path

import flint
import numpy as np
import pytest

import metricdp as mdp
from metricdp.artifacts import loads
from metricdp.design import BUILDERS
from metricdp.mechanisms import RULES

sys.path.append(str(Path(__file__).parents[2] / "benchmarks"))
import fuzz
from attacks import builds, exact, files, forgery, judges, watch


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
    name, problem = builds._problem(np.random.default_rng([2, 2018282]))
    assert name == "haversine"
    assert len(set(problem.inputs.points[:, 0].tolist())) < len(problem.inputs)  # two of its secrets on one parallel
    assert builds._faults(mdp.decomposed(problem, blocks=2, gap=1e-2), problem, name) == ""


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


def test_every_declared_kind_is_forged_and_has_a_judge():
    how = judges.kinds()
    assert {forgery.kind_of(data) for _, data in forgery.originals()} == set(how)
    assert set(how.values()) == {"exact", "formula"}
    assert {made.rule for made in map(loads, dict(forgery.originals()).values()) if hasattr(made, "rule")} >= set(RULES)


@pytest.mark.parametrize("kind", [*judges.JUDGES, *judges.CONCENTRATED])
def test_a_judge_holds_an_honest_file_for_true_and_finds_half_its_guarantee_exceeded(kind):
    honest = [loads(data) for _, data in forgery.originals() if forgery.kind_of(data) == kind]
    found = 0
    for made in honest:
        assert files._faults(made, 1) == ""
        name = "rho" if kind in judges.CONCENTRATED else "epsilon"
        promise = made.guarantee
        half = dataclasses.replace(promise, **{name: 0.4 * getattr(promise, name)})
        said = files._faults(dataclasses.replace(made, guarantee=half), 1)
        assert "promise" in said or (kind == "interpolated" and not said)  # places on a box may be told apart less
        found += "promise" in said
    assert found


def typed(*words, path=None):
    """Run the command and return its exit code and what it printed."""
    environment = os.environ if path is None else os.environ | {"PATH": str(path)}
    command = [sys.executable, fuzz.__file__, *map(str, words)]
    done = subprocess.run(command, capture_output=True, text=True, check=False, env=environment)
    return done.returncode, done.stdout + done.stderr


def test_the_command_attacks_says_what_it_cannot_and_adds_its_pieces_up(tmp_path):
    one, two, both = (tmp_path / f"{name}.json" for name in ("one", "two", "both"))
    limits = ("--seconds", 600, "--cases", 3, "--jobs", 1)
    code, said = typed(*limits, "--only", "audits,javascript", "--first", 40, "--piece", one, path=tmp_path)
    assert code == 0, said
    assert "javascript is not attacked: this machine has no Node." in said
    first = fuzz.Tally.read(one)
    assert set(first.answers) == {"audits"}
    assert first.answers["audits"].total() >= 3
    assert first.next == 40 + first.answers["audits"].total()
    assert f"next: --first {first.next}" in said
    second = fuzz.Tally(["audits", "files"], first.next)
    second.take("audits", first.next, "held", "holds")
    second.take("files", first.next, "refused", "CorruptFile")
    second.write(two)
    code, said = typed("--add", one, two, "--piece", both)
    assert code == 0, said
    audits = first.answers["audits"] + second.answers["audits"]
    assert f"audits: {', '.join(f'{name} {count:,}' for name, count in sorted(audits.items()))}\n" in said
    assert "files: refused 1\n" in said
    assert fuzz.Tally.read(both).answers == {"audits": audits, "files": second.answers["files"]}


def test_a_finding_is_told_with_its_case_and_survives_the_pieces(tmp_path, capsys):
    tally = fuzz.Tally(["files"])
    tally.take("files", 7, "unsound", "a box leaks")
    assert capsys.readouterr().out == "files:7 unsound: a box leaks\n"
    tally.write(tmp_path / "piece.json")
    code, said = typed("--add", tmp_path / "piece.json")
    assert code == 1
    assert "files:7 unsound: a box leaks" in said


def test_a_case_that_cannot_be_made_here_leaves_all_others_as_they_are(monkeypatch):
    with_it = [forgery.forged(number) for number in range(300)]
    files, _ = forgery._made()
    less = [(name, b"" if name == "levenshtein" else data) for name, data in files]
    monkeypatch.setattr(forgery, "_made", lambda: (less, {"levenshtein": "install rapidfuzz"}))
    without = [forgery.forged(number) for number in range(300)]
    changed = [one for one, other in zip(with_it, without, strict=True) if one != other]
    assert changed
    assert all(name.startswith("levenshtein") for name, _ in changed)


def test_a_case_is_the_same_attack_again():
    assert [forgery.forged(number) for number in range(200)] == [forgery.forged(number) for number in range(200)]


def test_a_box_that_is_not_private_is_held_to_what_its_certificate_says():
    made = loads(dict(forgery.originals())["box, relaxed"])
    assert files._faults(made, 1) == ""
    less = dataclasses.replace(made.certificate, epsilon=0.4 * made.certificate.epsilon)
    assert "promise" in files._faults(dataclasses.replace(made, certificate=less), 1)


def test_words_that_are_drawn_by_another_noise_are_found():
    words = {name: loads(data) for name, data in forgery.originals() if forgery.kind_of(data) == "nearest"}
    assert {type(made.inputs.metric).__name__ for made in words.values()} == {"Lp", "Mahalanobis", "Hyperbolic"}
    secrets, others = np.arange(4), np.array([1, 2, 3, 0])
    for name in ("words", "words, l1", "words, linf", "words, ellipse"):
        honest = words[name]
        sharper = dataclasses.replace(honest, epsilon=2.0 * honest.epsilon)
        both = types.SimpleNamespace(**vars(honest), sample=sharper.sample)
        assert judges.JUDGES["nearest"](honest, secrets, others) == ""
        assert "brute force" in judges.JUDGES["nearest"](both, secrets, others)


def test_a_bound_above_a_least_loss_that_a_solver_takes_for_zero_is_found():
    problem = mdp.Problem(mdp.grid((2, 2)), 25.0)
    best = mdp.optimal(problem, gap=1e-4)
    assert 0 < best.certificate.loss < 1e-9
    assert builds._faults(best, problem, "l2") == ""
    made = mdp.exponential(problem.inputs, 24.0)  # it keeps more than is asked, and loses more
    certificate = dataclasses.replace(made.certificate, lower_bound=1.001 * best.certificate.loss)
    assert "none is below" in builds._faults(dataclasses.replace(made, certificate=certificate), problem, "l2")
    certificate = dataclasses.replace(made.certificate, loss=0.999 * made.certificate.loss)
    assert "says loss" in builds._faults(dataclasses.replace(made, certificate=certificate), problem, "l2")


def test_a_product_is_held_to_the_sum_of_its_parts():
    made = loads(dict(forgery.originals())["product"])
    assert files._faults(made, 1) == ""
    assert "where a part leaks" in files._faults(
        dataclasses.replace(made, guarantee=dataclasses.replace(made.guarantee, epsilon=0.99)), 1
    )
    close = dataclasses.replace(made.parts[1], guarantee=dataclasses.replace(made.parts[1].guarantee, radius=3.0))
    less = dataclasses.replace(made, parts=(made.parts[0], close, made.parts[2]))
    assert "within 3" in files._faults(less, 1)


def test_a_metric_without_a_formula_is_an_error_and_no_verdict():
    three = judges.distance(mdp.Lp(3), [1.0, 2.0, 7.0], [2.0, 2.0, 5.0])
    assert float(three.mid()) == pytest.approx(9 ** (1 / 3), rel=1e-14)
    with pytest.raises(LookupError, match="no formula for the metric Hamming"):
        judges.distance(mdp.Hamming(), [1.0], [2.0])


def test_every_builder_of_a_table_is_attacked():
    attacked = {name.partition(",")[0] for name in builds.BUILDERS}
    declared = {one.name for one in BUILDERS if one.start in ("space", "problem", "mechanism")}
    assert declared - {"madlib"} <= attacked  # nearest words have no table: they are forged
