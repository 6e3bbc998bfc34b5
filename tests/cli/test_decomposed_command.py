"""`metricdp design --builder decomposed` as people run it: killed, interrupted, resumed."""

from __future__ import annotations

import os
import re
import shlex
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from metricdp import cli
from metricdp.artifacts import load

POINTS = 18


def strip() -> None:
    """Points in a strip, so that three blocks have few secrets between them."""
    rng = np.random.default_rng(1)
    across = np.linspace(0, POINTS / 2, POINTS) + rng.uniform(-0.1, 0.1, POINTS)
    points = np.stack([across, rng.uniform(0, 1, POINTS)], axis=1)
    np.savetxt("strip.csv", points, delimiter=",", header="x,y", comments="", fmt="%.3f")


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with the points."""
    monkeypatch.chdir(tmp_path)
    strip()
    return tmp_path


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a run that nothing disturbed."""
    folder = tmp_path_factory.mktemp("whole")
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        strip()
        assert cli.main(line("whole.mdp", "whole.npz")) == 0
    return folder


def line(output: str, checkpoint: str, *more: str) -> list[str]:
    words = "design --points strip.csv --metric l2 --epsilon 1 --builder decomposed --blocks 3 --partition balanced"
    options = f"--neighbours 1.6 --gap 1e-6 --start kernels --seconds 300 --checkpoint {checkpoint} -o {output}"
    return [*words.split(), *options.split(), *more]


def rounds(checkpoint: str) -> Any:
    """The bounds of the rounds in a checkpoint; none where it is not there yet."""
    try:
        with np.load(checkpoint, allow_pickle=False) as stored:
            return stored["rounds"][:, :2]
    except FileNotFoundError:
        return np.empty((0, 2))


SLOWLY = """
import sys, time
from metricdp import cli
from metricdp.cli import watching
told = watching.Watch.progress
def slowly(self, *bounds):
    told(self, *bounds)
    time.sleep(0.5)  # after every round, so that somebody can come in between
watching.Watch.progress = slowly
sys.exit(cli.main())
"""


def started(arguments: list[str], checkpoint: str) -> subprocess.Popen[str]:
    """The command in a process group of its own, some rounds after it began."""
    process = subprocess.Popen(
        [sys.executable, "-c", SLOWLY, *arguments],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    deadline = time.monotonic() + 240
    while len(rounds(checkpoint)) < 4:
        assert process.poll() is None, process.communicate()
        assert time.monotonic() < deadline
        time.sleep(0.02)
    return process


def test_a_killed_run_resumes_to_the_bounds_of_one_that_was_not(here: Path, whole: Path) -> None:
    process = started(line("killed.mdp", "killed.npz"), "killed.npz")
    os.killpg(process.pid, signal.SIGKILL)
    process.communicate()
    assert process.returncode == -signal.SIGKILL
    assert not Path("killed.mdp").exists()
    before = len(rounds("killed.npz"))
    assert before < len(rounds(str(whole / "whole.npz")))
    assert cli.main(line("killed.mdp", "killed.npz")) == 2  # a checkpoint is never thrown away unasked
    assert cli.main(line("killed.mdp", "killed.npz", "--resume")) == 0
    for part in ("", ".full"):
        assert rounds(f"killed.npz{part}") == pytest.approx(rounds(str(whole / f"whole.npz{part}")), abs=1e-9)
    first, again = load(whole / "whole.mdp"), load("killed.mdp")
    assert again.certificate.loss == pytest.approx(first.certificate.loss, abs=1e-9)
    assert again.certificate.lower_bound == pytest.approx(first.certificate.lower_bound, abs=1e-9)
    assert again.matrix == pytest.approx(first.matrix, abs=1e-9)


def test_an_interrupted_run_writes_what_it_has_and_goes_on_later(here: Path, whole: Path) -> None:
    # Ctrl-C on a terminal reaches the command and its workers
    process = started(line("first.mdp", "run.npz", "--executor", "processes"), "run.npz")
    os.killpg(process.pid, signal.SIGINT)
    printed, complaints = process.communicate(timeout=240)
    assert process.returncode == 3
    assert complaints.startswith("Ctrl-C: the search ends")
    assert "it was interrupted" in printed
    first = load("first.mdp").certificate
    assert cli.main(line("last.mdp", "run.npz", "--resume")) == 0
    last, undisturbed = load("last.mdp").certificate, load(whole / "whole.mdp").certificate
    assert last.loss == pytest.approx(undisturbed.loss, abs=1e-5)
    assert last.lower_bound == pytest.approx(undisturbed.lower_bound, abs=1e-5)
    assert first.lower_bound <= last.lower_bound + 1e-12
    assert first.loss >= last.loss - 1e-5


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ("--builder exponential --blocks 3", "--blocks is not an option of exponential"),
        ("--builder optimal --checkpoint x.npz", "--checkpoint is not an option of optimal"),
        ("--builder madlib --prior strip.csv", "--prior is not an option of madlib"),
        ("--builder decomposed --resume", "needs `checkpoint`"),
        ("--builder decomposed --executor fork", "`executor` must be"),
        ("--builder decomposed --partition thirds", "`partition` must be"),
        ("--builder decomposed --start here", "`start` must be"),
        ("--builder decomposed --neighbours 2km", "unit"),
        ("--builder decomposed --neighbours 0.2", "no chain between"),
        ("--builder decomposed --checkpoint none/run.npz", "does not exist"),
    ],
)
def test_what_does_not_fit_is_refused(here: Path, capsys: pytest.CaptureFixture[str], words: str, message: str) -> None:
    assert cli.main(f"design --points strip.csv --metric l2 --epsilon 1 -o x.mdp {words}".split()) == 2
    printed = capsys.readouterr()
    assert message in printed.err
    assert printed.err.count("\n") == 1
    assert not Path("x.mdp").exists()


def test_a_terminal_sees_a_bar_and_the_answer(here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pty = pytest.importorskip("pty", reason="needs a terminal")
    monkeypatch.setenv("COLUMNS", "200")  # no line is shortened
    seen = bytearray()

    def read(handle: int) -> bytes:
        seen.extend(data := os.read(handle, 4096))
        return data

    words = ["design", "--points", "strip.csv", "--metric", "l2", "--epsilon", "1", "-o", "x.mdp"]
    command = [sys.executable, "-c", "import sys; from metricdp.cli import main; sys.exit(main())"]
    code = pty.spawn([*command, *words], read)
    assert os.waitstatus_to_exitcode(code) == 0, seen.decode()
    assert b"Designing optimal on 18 points" in seen
    assert load("x.mdp").certificate.gap <= 1e-3


@pytest.mark.parametrize(
    "words",
    [
        "spanner --stretch 1.1",
        "spanner --stretch 3 --objective worst",
        "constopt --nearest 4",
        "weighted-exponential --weights w.csv",
    ],
)
def test_every_matrix_builder_has_a_command(here: Path, words: str) -> None:
    np.savetxt("w.csv", np.linspace(1, 2, POINTS), header="weight", comments="")
    line = f"design --points strip.csv --metric l2 --epsilon 1 -o x.mdp --builder {words}".split()
    assert cli.main(line) == 0
    assert cli.main(["audit", "x.mdp"]) == 0


def test_the_commands_of_the_page_run_in_order(here: Path) -> None:
    page = (Path(__file__).parents[2] / "papers" / "docs" / "benders.md").read_text(encoding="utf-8")
    found = re.search(r"```sh\n(.*?)```", page, re.DOTALL)
    assert found is not None
    Path("strip.csv").rename("cells.csv")
    gaps = []
    for words in found[1].splitlines():
        name, *arguments = shlex.split(words)
        assert name == "metricdp"
        assert cli.main(arguments) == 0
        gaps.append(load("cells.mdp").certificate.gap)
    assert len(gaps) == 2
    assert gaps[1] <= gaps[0]
