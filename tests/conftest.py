"""Settings shared by all tests."""

import os
import signal
from collections.abc import Iterator

import pytest
from hypothesis import HealthCheck, settings

from metricdp.design.builders import BUILDERS
from metricdp.experiments import STUDIES
from metricdp.mechanisms.declared import MECHANISMS
from metricdp.metrics.declared import METRICS
from metricdp.plugins import VARIABLE
from metricdp.spaces.declared import SPACES
from metricdp.tables.engines import ENGINES
from metricdp.tables.formats import FORMATS
from restoring import as_it_was

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


@pytest.fixture(autouse=True)
def _nothing_stays_behind() -> Iterator[None]:
    """What a test declares, by itself or through a plugin, and what it sets is not there for the next one.

    Fixtures of modules and sessions are made before and ended after: what they set stays as long as they do.
    """
    catalogues = (BUILDERS, ENGINES, FORMATS, MECHANISMS, METRICS, SPACES, STUDIES)
    before = [dict(catalogue._entries) for catalogue in catalogues]
    with as_it_was():
        os.environ[VARIABLE] = ""
        yield
    for catalogue, entries in zip(catalogues, before, strict=True):
        catalogue._entries.clear()
        catalogue._entries.update(entries)
