"""Long work at the command line: what is shown while it runs, and how it answers Ctrl-C at once.

A signal is heard by a thread of its own, since the thread that works may be inside a compiled loop for a while. Where
there is something to keep, the first Ctrl-C ends the search, and what it found is audited and written; else the program
ends within a second, nothing written. The second one always does.
"""

from __future__ import annotations

import math
import os
import select
import signal
import socket
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from metricdp import progress
from metricdp.cli import terminal
from metricdp.cli.terminal import bounds_text
from metricdp.progress import AUDITING, SEARCHING
from metricdp.rendering import printable

WRITING = "writing"
PATIENCE = 0.8  # seconds for the thread that works to end by itself
LEAVING = 5.0  # seconds for the program to put everything away
ENDING = (
    "Ctrl-C: the search ends, and the best so far is audited and written. Ctrl-C again ends at once, nothing written."
)
DONE_SOON = (
    "Ctrl-C: the search is over already, its result is audited and written. Ctrl-C again ends at once, nothing written."
)
NOTHING = "interrupted: nothing was written"
IS_COMMAND = False  # set by `main` where this process is the command, and ends with it


class Watch:
    """What is known about the work: the stage it is in, its bounds, and how often somebody wanted it to end."""

    def __init__(self, title: str) -> None:
        self._title, self._gap, self._unit = title, 0.0, ""
        self._stage, self._bounds, self._first = "getting ready", "", 0.0
        self._keeps = False
        self._asked = self._heard = 0
        self._late = False
        self.said = False  # that nothing was written: the error is on its way out
        self.held: socket.socket | None = None
        self._bar: Any = None
        self._task: Any = None

    def begin(self, title: str, gap: float, unit: str) -> None:
        """Say what is built, how close it has to come and in which unit losses are."""
        self._title, self._gap, self._unit = title, gap, unit
        self._show()

    def progress(self, lower: float, upper: float, seconds: float, steps: int) -> None:
        """Take the bounds of a search so far; where there is an upper one there is something to keep."""
        self._bounds = bounds_text(lower, upper, self._unit)
        self._keeps = self._keeps or math.isfinite(upper)
        left = max((upper - lower) / upper if upper > 0 else 1.0, self._gap)
        if math.isfinite(left) and self._gap > 0:
            self._first = self._first or max(left, 1.0001 * self._gap)
            done = 1.0 - math.log(left / self._gap) / math.log(self._first / self._gap)
            self._update(total=1.0, completed=min(1.0, max(0.0, done)))
        self._show()

    def hear(self, words: str) -> None:
        """Take what is being done."""
        self._keeps = self._keeps or words == SEARCHING
        share = progress.share()
        self._stage = words if share is None else f"{words}: {100.0 * share:.0f} %"
        if not self._bounds:  # a search shows how near its bounds have come
            self._update(**({} if share is None else {"total": 1.0}), completed=share or 0.0)
        self._show()

    @property
    def _closing(self) -> bool:
        return self._stage in (AUDITING, WRITING)

    # what is shown

    def attach(self, bar: Any) -> None:
        """Show all this on a bar."""
        self._bar = bar
        title, words = printable(self._title), printable(self._words())
        self._task = bar.add_task(title, total=None, words=words)  # no bound yet: it only says it works

    def _show(self) -> None:
        self._update(description=printable(self._title), words=printable(self._words()))

    def _update(self, **changes: Any) -> None:
        if self._bar is not None:
            self._bar.update(self._task, **changes)

    def _words(self) -> str:
        kept = ["Ctrl-C keeps the best so far"] if self._keeps and not self._closing else []
        return "; ".join(words for words in (self._bounds, self._stage, *kept) if words)

    # how it ends

    def interrupt(self, *_: Any) -> None:
        """Answer a signal in the thread that works."""
        self._heard += 1
        self._late = self._closing
        progress.stop()
        if self._heard > 1 or not self._late:
            raise KeyboardInterrupt(NOTHING)

    def count_interrupt(self) -> bool:
        """Take note of a Ctrl-C; tell whether the program has to end now."""
        self._asked += 1
        late = self._late if self._heard else self._closing  # what it was doing when the signal came
        if self._asked > 1 or not (self._keeps or late):
            return self._stage != WRITING  # a moment later it is written
        self._say(DONE_SOON if late else ENDING)
        return False

    def _say(self, sentence: str) -> None:
        if self._bar is not None:
            self._bar.console.print(sentence, highlight=False, markup=False)
        else:
            terminal.say(sentence, stream=sys.stderr)

    def interrupt_exit(self, *_: Any) -> None:
        """Answer a signal that comes while the program is on its way out, before it has said so."""
        self.said = False
        self.end()

    def end(self) -> None:
        """End the program at once: the thread that works, or one that it waits for, did not."""
        shown = "\r\x1b[K\x1b[?25h" if self._bar is not None else ""  # clear the line, show the cursor
        if not self.said:
            os.write(2, f"{shown}{NOTHING}\n".encode())
        os._exit(130)


@contextmanager
def watch(title: str) -> Iterator[Watch]:
    """Watch a piece of work: show it on a terminal's error stream, and let Ctrl-C end it well."""
    found = Watch(title)
    with terminal.show_bar(20) as bar:
        if bar is not None:
            found.attach(bar)
        with _handle_interrupts(found), progress.listen(found.hear):
            yield found


@contextmanager
def _handle_interrupts(found: Watch) -> Iterator[None]:
    """Hear SIGINT by a thread as soon as it comes; only where the program itself runs in the main thread."""
    usual = signal.getsignal(signal.SIGINT) is signal.default_int_handler
    if not usual or threading.current_thread() is not threading.main_thread():
        yield
        return
    hears, wakes = socket.socketpair()
    wakes.setblocking(False)
    before = signal.set_wakeup_fd(wakes.fileno(), warn_on_full_buffer=False)
    signal.signal(signal.SIGINT, found.interrupt)
    listener = threading.Thread(target=_listen, args=(found, hears), daemon=True)
    listener.start()
    leaving = False
    try:
        yield
    except KeyboardInterrupt:
        found.said = leaving = IS_COMMAND  # threads that still work must not keep the program from ending
        found.held = wakes
        raise
    finally:
        signal.signal(signal.SIGINT, found.interrupt_exit if leaving else signal.default_int_handler)
        signal.set_wakeup_fd(before)
        if not leaving:
            wakes.close()  # ends the thread, once it has answered every Ctrl-C
            listener.join()


def _listen(found: Watch, hears: socket.socket) -> None:
    """Answer every Ctrl-C; where the program has to end and does not, end it."""
    ends = math.inf
    with hears:
        while True:
            left = None if math.isinf(ends) else max(0.0, ends - time.monotonic())
            ready, _, _ = select.select([hears], [], [], left)
            if not ready:
                found.end()
            numbers = hears.recv(64)
            if not numbers:
                return  # the work is done
            for _ in range(numbers.count(signal.SIGINT)):
                if found.count_interrupt():
                    ends = min(ends, time.monotonic() + PATIENCE)


def leave() -> None:
    """Let a command that was interrupted end: another Ctrl-C changes nothing, and no thread keeps it for long."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    timer = threading.Timer(LEAVING, os._exit, (130,))
    timer.daemon = True
    timer.start()
