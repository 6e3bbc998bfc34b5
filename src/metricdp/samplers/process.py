"""A program of somebody else that keeps running: lines in, lines out, with limits, and ended for certain.

No shell is involved. Three threads carry the lines, so that neither side waits for a full pipe: one writes, one reads
the answers, one keeps the end of what is said on the error stream.
"""

from __future__ import annotations

import os
import queue
import signal
import subprocess
import threading
import time
import weakref
from collections import deque
from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import IO, Any, Self

from metricdp.arrays import Points
from metricdp.errors import SamplerFailure
from metricdp.samplers.reports import printable

LONGEST_LINE = 1 << 24  # bytes
STRAY = 1000  # lines nobody asked for, after which nothing more is read
LAST_WORDS = 8192  # bytes of the error stream that are stored
CHUNK = 1 << 16  # bytes read at a time
ENDED = "ended its output"
GRACE = 1.0  # seconds to end by itself, and once more after being asked to


class Process:
    """A program that answers lines by lines.

    `patience` is how many seconds it may be silent while an answer is due. `who` names it in errors.
    """

    def __init__(
        self, words: Sequence[str], *, patience: float, who: str, environment: Mapping[str, str] | None = None
    ) -> None:
        self.who, self.patience = who, patience
        self._process = _start(words, who, environment)
        self._change = threading.Condition()
        self._answers: deque[str] = deque()
        self._due = 0
        self._finished = ""  # why nothing more will come
        self._errors = bytearray()
        self._requests: queue.SimpleQueue[bytes | None] = queue.SimpleQueue()
        self._listener = threading.Thread(target=self._listen, daemon=True)
        for thread in (
            self._listener,
            *(threading.Thread(target=work, daemon=True) for work in (self._write, self._read)),
        ):
            thread.start()
        self.close = weakref.finalize(self, _end, self._process, self._requests)  # also when the interpreter ends

    def stray_line(self, seconds: float = 0.0) -> str | None:
        """Return a line that came although nothing was asked, waiting so long for one."""
        with self._change:
            self._change.wait_for(lambda: bool(self._answers), seconds)
            return self._answers[0] if self._answers else None

    def ask(self, text: str, count: int, *, hide: str = "") -> list[str]:
        """Write lines and return the `count` lines of the answer; a sentence with what is known where they do not come.

        `hide` is the secret, which no error repeats.
        """
        with self._change:
            self._due = count
        self._requests.put(text.encode())
        answer: list[str] = []
        silent_since = time.monotonic()
        while len(answer) < count:
            with self._change:
                self._change.wait_for(
                    lambda: self._answers or self._finished, max(0.0, silent_since + self.patience - time.monotonic())
                )
                came = [self._answers.popleft() for _ in range(min(len(self._answers), count - len(answer)))]
                self._due = count - len(answer) - len(came)
            if came:
                answer += came
                silent_since = time.monotonic()
            elif self._finished:
                raise SamplerFailure(self._why_ended(len(answer), count, hide))
            else:
                raise SamplerFailure(self._why_silent(len(answer), count, hide))
        return answer

    def last_words(self, hide: str = "") -> str:
        """Return the last line of the error stream, as a sentence; empty where there is none."""
        with self._change:
            lines = self._errors.decode(errors="replace").strip().splitlines()
        return f" Its error stream ends with: {printable(lines[-1], hide, longest=200)}" if lines else ""

    def _why_ended(self, came: int, count: int, hide: str) -> str:
        _has_ended(self._process, GRACE / 4 if self._finished == ENDED else 0.0)
        code = _exit_code(self._process)
        self.close()
        self._listener.join(GRACE)  # to the end of the error stream
        how = (
            self._finished if code is None or self._finished != ENDED  # why it is read no further comes first
            else f"was killed by signal {-code}" if code < 0
            else f"ended with exit code {code}"
        )  # fmt: skip
        return (
            f"{self.who} {how} after {came} of {count} answers: it has to go on, one report a line for one secret a "
            f"line, until its input ends.{self.last_words(hide)}"
        )

    def _why_silent(self, came: int, count: int, hide: str) -> str:
        """Find out whether the answers come once the input ends: then they were only held back."""
        self._requests.put(None)
        with self._change:
            self._change.wait_for(lambda: self._finished or len(self._answers) >= count - came, GRACE)
            late = len(self._answers)
        self.close()
        said = f"{self.who} gave {came} of {count} answers and then none for {self.patience:g} s"
        if late:
            return (
                f"{said}; more came only when its input was closed, so it holds its output back in a buffer. Let it "
                "flush after every line: python -u, flush=True, fflush(stdout), or stdbuf -oL before the command."
            )
        return (
            f"{said}. It must print one line for every line it reads, at once; raise --timeout if it is slow."
            f"{self.last_words(hide)}"
        )

    def _write(self) -> None:
        stream = _pipe(self._process.stdin)
        with suppress(OSError, ValueError), stream:
            while (request := self._requests.get()) is not None:
                left = memoryview(request)
                while left:
                    left = left[stream.write(left) or 0 :]

    def _read(self) -> None:
        rest, finished = bytearray(), ""
        with _pipe(self._process.stdout) as stream:
            while not finished:
                chunk = stream.read(CHUNK)  # a raw pipe gives what is there
                rest += chunk
                whole: list[bytes] = []
                if b"\n" in chunk:
                    *whole, last = bytes(rest).split(b"\n")
                    rest = bytearray(last)
                if not chunk:
                    finished = ENDED
                    whole = [bytes(rest)] if rest else []
                elif len(rest) > LONGEST_LINE:
                    finished = f"printed a line of more than {LONGEST_LINE:,} bytes"
                with self._change:
                    self._answers.extend(line.decode(errors="replace").rstrip("\r") for line in whole)
                    if len(self._answers) > self._due + STRAY:
                        finished = "printed far more lines than it was asked for"
                    self._finished = finished
                    self._change.notify_all()

    def _listen(self) -> None:
        with _pipe(self._process.stderr) as stream:
            while chunk := stream.read(CHUNK):
                with self._change:
                    self._errors += chunk
                    del self._errors[:-LAST_WORDS]


def _start(words: Sequence[str], who: str, environment: Mapping[str, str] | None) -> subprocess.Popen[bytes]:
    try:
        return subprocess.Popen(
            list(words),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            bufsize=0,
            env=None if environment is None else dict(environment),
            start_new_session=True,  # a group of its own: what it starts itself ends with it
        )
    except FileNotFoundError as error:
        raise SamplerFailure(
            f"{who} cannot be started: there is no program {words[0]!r}. Check the spelling, or give its whole path."
        ) from error
    except OSError as error:
        raise SamplerFailure(f"{who} cannot be started: {words[0]!r}: {error.strerror or error}.") from error


def _pipe(stream: IO[bytes] | None) -> IO[bytes]:
    assert stream is not None  # all three are pipes
    return stream


def _end(process: subprocess.Popen[bytes], requests: queue.SimpleQueue[bytes | None]) -> None:
    """End a program and all it started: its input is closed, then it is asked to end, then it is killed."""
    requests.put(None)
    if not _has_ended(process, GRACE):
        _signal(process, signal.SIGTERM)
        _has_ended(process, GRACE)
    _signal(process, getattr(signal, "SIGKILL", signal.SIGTERM))  # its children too, also where it ended by itself
    process.wait()


def _signal(process: subprocess.Popen[bytes], number: int) -> None:
    with suppress(ProcessLookupError, PermissionError):
        if hasattr(os, "killpg"):
            os.killpg(process.pid, number)
        else:
            process.kill()


def _has_ended(process: subprocess.Popen[bytes], seconds: float) -> bool:
    """Wait for a program to end without burying it: until then no other group can get its number."""
    until = time.monotonic() + seconds
    while _exit_code(process) is None:
        if time.monotonic() >= until:
            return False
        time.sleep(0.005)
    return True


def _exit_code(process: subprocess.Popen[bytes]) -> int | None:
    """Return the exit code of a program that has ended (minus the signal that killed it), leaving it unburied."""
    if process.returncode is not None or not hasattr(os, "waitid"):
        return process.poll()
    found = os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOHANG | os.WNOWAIT)
    if found is None:
        return None
    return found.si_status if found.si_code == os.CLD_EXITED else -found.si_status


class RestartingSampler:
    """What samplers have in common that keep a process running: they end it, and the next draw starts it anew."""

    _process: Process | None = None

    def each(self, secrets: Sequence[Any]) -> Points:
        """Return one report for every secret, in their order, one a row."""
        raise NotImplementedError

    def __call__(self, secret: Any, count: int) -> Points:
        """Return `count` reports for a secret, one a row."""
        return self.each([secret] * count)

    def restart(self) -> None:
        """End the process; the next draw starts it anew."""
        if self._process is not None:
            self._process.close()
        self._process = None

    close = restart

    def fresh(self) -> Self:
        """Return the sampler after a new start; an audit compares two starts with each other."""
        self.restart()
        return self

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *unused: object) -> None:
        self.close()
