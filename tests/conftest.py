"""Settings shared by all tests."""

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

settings.register_profile(
    "house", deadline=None, derandomize=True, max_examples=40, suppress_health_check=[HealthCheck.too_slow]
)
settings.load_profile("house")

# A check that runs in the background inherits that Ctrl-C is ignored, and so would every program that tests interrupt.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.fixture(autouse=True)
def _declarations_end_with_their_test(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """What a test declares, by itself or through a plugin, is not there for the next one, whatever the order."""
    catalogues = (BUILDERS, ENGINES, FORMATS, MECHANISMS, METRICS, SPACES, STUDIES)
    before = [dict(catalogue._entries) for catalogue in catalogues]
    monkeypatch.setenv(VARIABLE, "")  # what is set here is put back as well
    yield
    for catalogue, entries in zip(catalogues, before, strict=True):
        catalogue._entries.clear()
        catalogue._entries.update(entries)
