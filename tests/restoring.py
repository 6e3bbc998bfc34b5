"""What belongs to the whole process and outlives a test: put back, so that the order of tests does not matter."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

SIGNALS = (signal.SIGINT, signal.SIGTERM)
# pytest's own, and what Ray decides once a process: a later cluster without it would not be spoken to
LEFT = {"PYTEST_CURRENT_TEST", "RAY_AUTH_MODE"}


@contextmanager
def as_it_was() -> Iterator[None]:
    """Put back variables, the folder and who answers signals: Spark and Ray change them and leave them so."""
    variables, place = dict(os.environ), Path.cwd()
    answers = {number: signal.getsignal(number) for number in SIGNALS}
    try:
        yield
    finally:
        for name in {*variables, *os.environ} - LEFT:
            if name not in variables:
                del os.environ[name]
            elif os.environ.get(name) != variables[name]:
                os.environ[name] = variables[name]
        os.chdir(place)
        for number, answer in answers.items():
            if signal.getsignal(number) is not answer:
                signal.signal(number, answer)
