"""Commands of others, kept running: what they draw, and what is said of those that misbehave."""

from __future__ import annotations

import os
import sys
import time
from pathlib import Path

import numpy as np
import pytest

from metricdp.errors import InvalidInput, SamplerFailure
from metricdp.samplers import CommandSampler, process

ECHO = "for line in sys.stdin: print(line.strip())"


@pytest.fixture(autouse=True)
def short_grace(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(process, "GRACE", 0.2)


def command(tmp_path: Path, body: str, *, flags: str = "-S") -> str:
    script = tmp_path / "sampler.py"
    script.write_text(f"import sys, os, time, random\n{body}\n")
    return f"{sys.executable} {flags} {script}"


def gone(number: int) -> bool:
    """Whether a process has ended (one that nobody buried yet has)."""
    try:
        return Path(f"/proc/{number}/stat").read_text().rsplit(")", 1)[1].split()[0] == "Z"
    except FileNotFoundError:
        return True


def complaint(line: str, *, secret: object = (0.5, -1.25), count: int = 3, patience: float = 5.0) -> str:
    with CommandSampler(line, patience=patience) as draw, pytest.raises(SamplerFailure) as caught:
        [draw(secret, count) for _ in range(2)]  # what is left over from the first is found at the second
    return str(caught.value)


def test_a_command_gets_every_digit_and_answers_in_order(tmp_path: Path) -> None:
    with CommandSampler(command(tmp_path, ECHO)) as draw:
        secret = (1 / 3, -1e-300)
        assert np.array_equal(draw(secret, 4), np.tile(secret, (4, 1)))
        assert draw(0.1, 2).tolist() == [[0.1], [0.1]]
        assert draw("café au lait", 2).tolist() == ["café au lait"] * 2


def test_one_process_serves_all_draws_until_it_is_started_anew(tmp_path: Path) -> None:
    line = command(tmp_path, "for line in sys.stdin: print(os.getpid())")
    with CommandSampler(line) as draw:
        first, again = draw(1.0, 3), draw(2.0, 50_000)
        other = draw.fresh()(1.0, 1)
    assert len(again) == 50_000
    assert np.unique(np.concatenate([first, again])).size == 1
    assert other[0, 0] != first[0, 0]
    assert gone(int(first[0, 0]))
    assert gone(int(other[0, 0]))


@pytest.mark.parametrize("form", ["{0},{1}", "{0} {1}", "[{0}, {1}]", "({0};{1})", "\t{0}\t{1}  "])
def test_numbers_are_read_however_they_are_written(tmp_path: Path, form: str) -> None:
    line = command(tmp_path, f"for line in sys.stdin: print({form!r}.format(*line.strip().split(',')))")
    with CommandSampler(line) as draw:
        assert draw((0.25, 3.0), 2).tolist() == [[0.25, 3.0]] * 2


def test_a_command_that_dies_is_quoted_without_the_secret(tmp_path: Path) -> None:
    said = complaint(command(tmp_path, "line = input(); raise ValueError('bad ' + line)"))
    assert "exit code 1 after 0 of 1 answers" in said
    assert "ValueError: bad <secret>" in said
    assert "-1.25" not in said
    assert "signal 9" in complaint(command(tmp_path, "input(); os.kill(os.getpid(), 9)"))
    assert "exit code 0" in complaint(command(tmp_path, "print(input())"))  # one answer, then it leaves


def test_silence_has_an_end(tmp_path: Path) -> None:
    said = complaint(command(tmp_path, "time.sleep(60)"), patience=0.3)
    assert "0 of 1 answers and then none for 0.3 s" in said
    assert "--timeout" in said


def test_a_command_that_holds_its_output_back_is_told_to_flush(tmp_path: Path) -> None:
    body = "out = open(1, 'w', buffering=65536)\nfor line in sys.stdin: out.write(line)\nout.flush()"
    said = complaint(command(tmp_path, body), patience=0.3)
    assert "buffer" in said
    assert "stdbuf -oL" in said


def test_python_commands_need_no_flush(tmp_path: Path) -> None:
    body = "while True:\n    line = sys.stdin.readline()\n    if not line: break\n    sys.stdout.write(line)"
    with CommandSampler(command(tmp_path, body), patience=5.0) as draw:
        assert len(draw(1.0, 10)) == 10


@pytest.mark.parametrize(
    ("body", "words"),
    [
        (f"print('Ready.')\n{ECHO}", "printed 'Ready.'"),
        ("while True: print('y')", "printed 'y'"),
        ("for line in sys.stdin: print(line.strip()); print('logged')", "'logged'"),
        ("for line in sys.stdin: print('0.5'); print('0.7')", "'0.7'"),
        ("for n, line in enumerate(sys.stdin): print('warming up' if n == 1 else 0.5)", "nothing else"),
        ("while True: print(input('your place? '))", "as a prompt does"),
        ("for line in sys.stdin: print()", "empty line"),
        ("for n, line in enumerate(sys.stdin): print('0.5,0.5' if n else '0.5')", "1 and 2 numbers"),
        ("sys.stdin.readline(); os.write(1, b'7' * (1 << 25))", "line of more than"),
    ],
)  # fmt: skip
def test_too_much_and_too_little_are_sentences(tmp_path: Path, body: str, words: str) -> None:
    assert words in complaint(command(tmp_path, body))


def test_much_on_the_error_stream_does_not_disturb(tmp_path: Path) -> None:
    body = "for line in sys.stdin:\n    sys.stderr.write('x' * 200000)\n    print(0.5)"
    with CommandSampler(command(tmp_path, body)) as draw:
        assert len(draw(1.0, 20)) == 20


def test_a_command_that_never_ends_is_killed_with_all_that_it_started(tmp_path: Path) -> None:
    body = (
        "import signal, subprocess\n"
        "signal.signal(signal.SIGTERM, signal.SIG_IGN)\n"
        "child = subprocess.Popen(['sleep', '600'])\n"
        "for line in sys.stdin: print(child.pid)\n"
        "time.sleep(600)"
    )
    with CommandSampler(command(tmp_path, body)) as draw:
        child = int(draw(1.0, 1)[0, 0])
        start = time.monotonic()
    assert time.monotonic() - start < 4.0
    until = time.monotonic() + 2.0
    while not gone(child) and time.monotonic() < until:
        time.sleep(0.01)
    assert gone(child)


def test_a_command_that_reads_nothing_is_not_waited_for_for_ever(tmp_path: Path) -> None:
    line = command(tmp_path, "print(input())\ntime.sleep(60)")
    assert "then none for 0.5 s" in complaint(line, secret="a" * 1000, count=20_000, patience=0.5)  # fills the pipe


@pytest.mark.parametrize("line", ["python sampler.py | head", "$HOME/sampler", "~/sampler", "a && b", "a > b"])
def test_no_shell_is_involved(line: str) -> None:
    with pytest.raises(InvalidInput, match="without a shell"):
        CommandSampler(line)


def test_a_program_that_is_not_there_is_named(tmp_path: Path) -> None:
    assert "no program 'nosuchprogram'" in complaint("nosuchprogram --fast")
    (tmp_path / "plain.txt").write_text("no program")
    assert "cannot be started" in complaint(str(tmp_path / "plain.txt"))
    with pytest.raises(InvalidInput, match="empty"):
        CommandSampler("  ")
    with pytest.raises(InvalidInput, match="quotation mark"):
        CommandSampler("python 'sampler.py")


@pytest.mark.parametrize("secret", ["two\nlines", "", [np.nan, 0.0], [[1.0]]])
def test_a_secret_that_is_no_line_is_refused(secret: object) -> None:
    with CommandSampler("cat") as draw, pytest.raises(InvalidInput):
        draw(secret, 1)


def test_words_may_be_reports_of_places(tmp_path: Path) -> None:
    with CommandSampler(command(tmp_path, "for line in sys.stdin: print('cell 7: north')")) as draw:
        assert draw((0.5, 0.5), 2).tolist() == ["cell 7: north"] * 2


def test_the_surroundings_are_those_of_the_caller(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LEVEL", "7.5")
    with CommandSampler(command(tmp_path, "for line in sys.stdin: print(os.environ['LEVEL'])")) as draw:
        assert draw(1.0, 1).tolist() == [[7.5]]
    assert "LEVEL" in os.environ
