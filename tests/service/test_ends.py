"""The service killed at random moments, and stopped on purpose while it is busy: nothing is lost, nothing twice."""

from __future__ import annotations

import random
import signal

import pytest

import felled


@pytest.fixture
def nest(tmp_path):
    found = felled.Nest(tmp_path)
    yield found
    found.close()


def test_kills_and_a_stop_lose_nothing_and_charge_nothing_twice(nest):
    """Two kills here, a hundred in benchmarks/kills.py; then a stop that finishes what was charged."""
    tally = felled.kills(nest, 2, random.Random(0), patience=0.15)
    assert tally.ends == 2
    assert tally.answered > 0
    nest.start()
    answers = felled.ended(nest, "stop", signal.SIGTERM, 0.2)
    nest.start()
    before = tally.stored_unanswered
    felled.repeated(nest, "stop", answers, tally)
    assert tally.stored_unanswered == before  # whatever was charged was answered
    nest.end(signal.SIGTERM)
    felled.balanced(nest, tally)
