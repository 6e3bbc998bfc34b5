"""What is being done right now: long work reports it, and a progress display listens.

    with doing("auditing"):
        ...

Nothing else depends on it: without a listener the words go nowhere. One listener hears the thread it was made in, and
what other threads say by `now`.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

Listener = Callable[[str], None]
AUDITING = "auditing"  # the last word on a result: an interruption that comes now need not lose it
SEARCHING = "searching on"  # reported once there is a result that an interruption would keep


@dataclass
class _ListenerState:
    """A listener, its thread, and the blocks that this thread is in."""

    listener: Listener
    thread: int = field(default_factory=threading.get_ident)
    blocks: list[str] = field(default_factory=list)
    share: float | None = None
    is_stopped: bool = False


_heard: _ListenerState | None = None


@contextmanager
def listen(listener: Listener) -> Iterator[None]:
    """Hear within this block what is being done: a few words at every change."""
    global _heard
    before, _heard = _heard, _ListenerState(listener)
    try:
        yield
    finally:
        _heard = before


def stop() -> None:
    """Take note, for work of many parts, that somebody wants it to end: a part may have answered Ctrl-C for itself."""
    if _heard is not None:
        _heard.is_stopped = True


def is_stopped() -> bool:
    """Return whether somebody wants the work to end."""
    return _heard is not None and _heard.is_stopped


def report_step(words: str, share: float | None = None) -> None:
    """Report what is done from here on, until the next report; `share` is how much of it is done, where known."""
    if _heard is not None:
        _heard.share = share
        _heard.listener(words)


def share() -> float | None:
    """Return how much of the last reported step is done, where that is known."""
    return None if _heard is None else _heard.share


def share_reporter(words: str) -> Callable[[float], None]:
    """Return what takes shares of a piece of work and says them."""
    return lambda done: report_step(words, done)


def repeat_last() -> None:
    """Say once more what the innermost block does."""
    if _heard is not None:
        report_step(_heard.blocks[-1] if _heard.blocks else "")


@contextmanager
def report_task(words: str) -> Iterator[None]:
    """Say what this block does, and afterwards what the one around it does."""
    heard = _heard
    if heard is None or heard.thread != threading.get_ident():
        yield
        return
    heard.blocks.append(words)
    report_step(words)
    try:
        yield
    finally:
        heard.blocks.pop()
        repeat_last()
