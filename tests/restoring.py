"""What belongs to the whole process and outlives a test: put back, so that the order of tests does not matter."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from hypothesis import HealthCheck, settings

from metricdp.design import BUILDERS
from metricdp.ledger import BACKENDS
from metricdp.mechanisms import MECHANISMS
from metricdp.metrics import METRICS
from metricdp.plugins import VARIABLE
from metricdp.registry import NameRegistry
from metricdp.spaces import SPACES
from metricdp.tables import ENGINES, FORMATS

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


def settle() -> None:
    """Decide what holds for all tests: the same examples on every machine, and signals that are heard."""
    settings.register_profile(
        "house", deadline=None, derandomize=True, max_examples=40, suppress_health_check=[HealthCheck.too_slow]
    )
    settings.load_profile("house")
    # A check that runs in the background inherits that signals are ignored, and so would every program that tests end.
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)
    for number in (signal.SIGHUP, signal.SIGQUIT):
        if signal.getsignal(number) is signal.SIG_IGN:
            signal.signal(number, signal.SIG_DFL)


@contextmanager
def nothing_left_behind(*more: NameRegistry[Any]) -> Iterator[None]:
    """Take back what a test declares, by itself or through a plugin, and what it sets."""
    catalogues = (BACKENDS, BUILDERS, ENGINES, FORMATS, MECHANISMS, METRICS, SPACES, *more)
    before = [dict(catalogue._entries) for catalogue in catalogues]
    with as_it_was():
        os.environ[VARIABLE] = ""
        yield
    for catalogue, entries in zip(catalogues, before, strict=True):
        catalogue._entries.clear()
        catalogue._entries.update(entries)
