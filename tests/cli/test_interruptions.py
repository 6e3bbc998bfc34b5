"""Ctrl-C during `metricdp design`: a marked, certified result or nothing, at once, whatever it is doing."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace

import pytest

import metricdp as mdp
from metricdp import cli, progress
from metricdp.cli import watching

RUN = "import sys; from metricdp import cli; sys.exit(cli.main())"
DESIGN = "design --points cells.csv --epsilon 1 --gap 1e-9 -o out.mdp"


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    monkeypatch.chdir(tmp_path)
    # a check that runs in the background has SIGINT ignored
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    Path("cells.csv").write_text("x,y\n" + "".join(f"{i // 3},{i % 3}\n" for i in range(9)))
    yield tmp_path
    signal.signal(signal.SIGINT, before)


def interrupted_at(words: str, line: str, monkeypatch: pytest.MonkeyPatch, *, times: int = 1) -> int:
    """Run a command; once it says that it does this, send it real signals."""
    said, left = progress.report_step, [times]

    def saying(what: str, share: float | None = None) -> None:
        said(what, share)
        while left[0] and re.match(words, what):
            left[0] -= 1
            os.kill(os.getpid(), signal.SIGINT)
            time.sleep(0.02)  # until the signal is here

    monkeypatch.setattr(progress, "report_step", saying)
    for module in ("metricdp.solvers.search", "metricdp.solvers.backends.first_order", "metricdp.design.constopt"):
        __import__(module)
        monkeypatch.setattr(f"{module}.report_step", saying)
    code = cli.main(line.split())
    assert left == [0], "the stage was never reached"
    return code


def test_a_kernel_says_what_it_does_and_how_much_of_it_is_done(here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """While it is designed, and while it is judged again."""
    shares: dict[str, list[float | None]] = {}
    said = progress.report_step

    def saying(what: str, share: float | None = None) -> None:
        shares.setdefault(what, []).append(share)
        said(what, share)

    monkeypatch.setattr(progress, "report_step", saying)
    line = "design --points cells.csv --metric l2 --epsilon 1 --builder exponential --set form=kernel -o out.mdp"
    assert cli.main(line.split()) == 0
    with progress.listen(lambda words: None):
        mdp.load("out.mdp")
    first = [
        "reading",
        "finding the pairs that leak most",
        "summing up all rows, round 1",
        "judging all pairs, round 1",
    ]
    assert [what for what in shares if what in first] == first
    assert {shares[what][-1] for what in (*first[2:], "auditing all pairs of 9 secrets")} == {1.0}


def test_a_share_of_the_work_moves_the_bar_and_is_said_beside_it() -> None:
    shown: dict[str, object] = {}
    bar = SimpleNamespace(add_task=lambda title, **given: 0, update=lambda task, **given: shown.update(given))
    watch = watching.Watch("Designing")
    watch.attach(bar)
    with progress.listen(watch.hear):
        progress.report_step("judging", 0.25)
        assert (shown["completed"], shown["total"], shown["words"]) == (0.25, 1.0, "judging: 25 %")
        progress.report_step("adding up")
        assert (shown["completed"], shown["words"]) == (0.0, "adding up")


@pytest.mark.parametrize("words", ["finding the pairs", "summing up all rows", "judging all pairs", "adding up"])
def test_a_kernel_that_is_being_certified_ends_with_one_line(
    here: Path, words: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    line = "design --points cells.csv --metric l2 --epsilon 1 --builder exponential --set form=kernel -o out.mdp"
    assert interrupted_at(words, line, monkeypatch) == 130
    assert capsys.readouterr().err.strip() == "interrupted: nothing was written"
    assert not Path("out.mdp").exists()


@pytest.mark.parametrize("words", ["reading", "measuring distances", "choosing pairs"])
def test_nothing_is_written_before_there_is_something_to_keep(
    here: Path, words: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert interrupted_at(words, DESIGN, monkeypatch) == 130
    assert capsys.readouterr().err.strip() == "interrupted: nothing was written"
    assert not Path("out.mdp").exists()
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


@pytest.mark.parametrize("solver", ["interior", "first_order"])
def test_the_best_so_far_is_certified_marked_and_has_its_own_exit_code(
    here: Path, solver: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert interrupted_at("searching on", f"{DESIGN} --solver {solver}", monkeypatch) == 3
    said = capsys.readouterr()
    assert "Ctrl-C again ends at once" in said.err
    assert said.out.startswith("INTERRUPTED: ")
    assert "it was interrupted" in said.out
    found = mdp.load("out.mdp")
    assert found.certificate.interrupted
    assert mdp.audit(found).verdict == "holds"
    for line in ("inspect out.mdp --json", "inspect out.mdp"):
        assert cli.main(line.split()) == 0
        shown = capsys.readouterr().out
        assert json.loads(shown)["certificate"]["interrupted"] if "--json" in line else "it was interrupted" in shown


def test_json_says_it_too(here: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    assert interrupted_at("searching on", f"{DESIGN} --json", monkeypatch) == 3
    assert json.loads(capsys.readouterr().out)["certificate"]["interrupted"] is True


@pytest.mark.parametrize("words", ["auditing", "writing"])
def test_a_result_that_is_being_audited_is_not_lost(
    here: Path, words: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    line = "design --points cells.csv --epsilon 1 --gap 0.01 -o out.mdp"
    assert interrupted_at(words, line, monkeypatch) == 0
    assert "the search is over already" in capsys.readouterr().err
    assert not mdp.load("out.mdp").certificate.interrupted


def test_the_second_one_ends_without_a_file(
    here: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert interrupted_at("auditing", DESIGN.replace("1e-9", "0.01"), monkeypatch, times=2) == 130
    assert "interrupted: nothing was written" in capsys.readouterr().err
    assert os.listdir() == ["cells.csv"]


@pytest.mark.parametrize("builder", ["spanner", "constopt", "interpolated --anchors 2"])
def test_every_search_keeps_what_it_has(here: Path, builder: str, monkeypatch: pytest.MonkeyPatch) -> None:
    line = f"design --points cells.csv --epsilon 1 --builder {builder} -o out.mdp"
    assert interrupted_at("searching on", line, monkeypatch) == 3
    found = mdp.load("out.mdp")
    assert found.certificate.interrupted
    assert mdp.audit(found).holds


STUCK = """
import hashlib, sys, threading
from metricdp import cli, progress
from metricdp.design import Builder
def build(builder, space, epsilon, *, progress, **options):
    {told}
    print("working", flush=True)
    while True:  # no Python runs here for minutes, and no signal is answered
        hashlib.pbkdf2_hmac("sha256", b"", b"", 10**9)
Builder.build = build
sys.exit(cli.main())
"""


@pytest.mark.parametrize(("told", "signals"), [("pass", 1), ("progress(0.0, 1.0, 0.0, 1)", 2)])
def test_it_ends_within_a_second_even_in_a_loop_that_hears_no_signal(here: Path, told: str, signals: int) -> None:
    process = subprocess.Popen(
        [sys.executable, "-c", STUCK.format(told=told), *DESIGN.split()],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert process.stdout is not None
    assert process.stdout.readline() == "working\n"
    for _ in range(signals):
        started = time.perf_counter()
        process.send_signal(signal.SIGINT)
        time.sleep(0.1)
    _, errors = process.communicate(timeout=30)
    assert time.perf_counter() - started < 3.0  # 0.8 s, on a machine that has other things to do
    assert process.returncode == 130
    assert errors.endswith("interrupted: nothing was written\n")
    assert os.listdir() == ["cells.csv"]


EARLY = """
import os, signal, sys
from metricdp.__main__ import main
class Interrupting:  # pressed while the first room is imported
    def find_spec(name, path=None, target=None):
        if name == "metricdp.cli":
            os.kill(os.getpid(), signal.SIGINT)
sys.meta_path.insert(0, Interrupting)
sys.exit(main())
"""


def test_it_ends_with_a_line_while_everything_is_still_imported(here: Path) -> None:
    done = subprocess.run([sys.executable, "-c", EARLY, *DESIGN.split()], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (130, "", "interrupted: nothing was written\n")


def test_compiling_is_said_and_can_be_interrupted(here: Path) -> None:
    pytest.importorskip("numba")
    words = f"{DESIGN} --solver first_order".split()
    leader, follower = os.openpty()
    process = subprocess.Popen(
        [sys.executable, "-c", RUN, *words],
        stdout=subprocess.PIPE,
        stderr=follower,
        env={**os.environ, "NUMBA_CACHE_DIR": "empty", "COLUMNS": "160"},
    )
    os.close(follower)
    shown = b""
    while b"compiling, once on this machine" not in shown:
        shown += os.read(leader, 10_000)
    process.send_signal(signal.SIGINT)
    started = time.perf_counter()
    process.communicate(timeout=60)
    os.close(leader)
    assert time.perf_counter() - started < 5.0
    assert process.returncode in (3, 130)  # 3 where the first answer was there before
    assert Path("out.mdp").exists() == (process.returncode == 3)
