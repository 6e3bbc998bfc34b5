"""What a service logs: no text of others that may quote what was sent, and no line that says nothing."""

from __future__ import annotations

import io
import json
import logging
import sys
from collections.abc import Iterator

import pytest

from metricdp.service import set_up


@pytest.fixture
def logs(monkeypatch: pytest.MonkeyPatch) -> Iterator[io.StringIO]:
    """Return what the error stream gets, with the handlers of the service and no others."""
    root = logging.getLogger()
    handlers, level = list(root.handlers), root.level
    stream = io.StringIO()
    monkeypatch.setattr(sys, "stderr", stream)
    set_up("info")
    yield stream
    for handler in list(root.handlers):
        if handler not in handlers:
            root.removeHandler(handler)
    root.setLevel(level)


@pytest.mark.parametrize("text", ["%s", "%(what)s", "%d: %r", "{}", "%-10s %5.2f", ""])
def test_a_record_of_which_nothing_may_be_kept_says_whose_it_is(logs: io.StringIO, text: str) -> None:
    record = logging.LogRecord("of.others", logging.ERROR, "", 0, text, None, None)
    logging.getLogger().handle(record)
    assert json.loads(logs.getvalue())["event"] == "a record of of.others, whose text is not logged"


def test_the_plain_text_of_others_is_kept_without_what_was_put_into_it(logs: io.StringIO) -> None:
    logging.getLogger("of.others").error("no answer to %s", "41.1234567")
    assert json.loads(logs.getvalue())["event"] == "no answer to %s"


def test_sentences_for_whoever_protects_a_table_are_in_no_log(logs: io.StringIO) -> None:
    logging.getLogger("metricdp").warning("%s", "Look at home: it sounds like places.")
    assert logs.getvalue() == ""
    logging.getLogger("metricdp.service").warning("the disk is full")
    assert json.loads(logs.getvalue())["event"] == "the disk is full"
