"""The planted mistakes of `tools/mutate.py` fit the code: every text and every test is there. None is planted here."""

import importlib.util
import re
import sys
from pathlib import Path

import pytest

PROJECT = Path(__file__).parents[1]


@pytest.fixture(scope="module")
def mistakes():
    spec = importlib.util.spec_from_file_location("mutate", PROJECT / "tools" / "mutate.py")
    module = importlib.util.module_from_spec(spec)
    sys.modules["mutate"] = module  # its dataclass asks for it
    try:
        spec.loader.exec_module(module)
        return module.planted_mistakes()
    finally:
        del sys.modules["mutate"]


def test_every_planted_text_occurs_once_and_changes(mistakes):
    assert len(mistakes) > 50
    texts = {one.file: (PROJECT / one.file).read_text(encoding="utf-8") for one in mistakes}
    assert [f"{one.file}: {one.old}" for one in mistakes if texts[one.file].count(one.old) != 1] == []
    assert [str(one) for one in mistakes if one.old == one.new] == []


def test_every_named_test_exists(mistakes):
    for one in mistakes:
        cut = one.tests.index("-k") if "-k" in one.tests else len(one.tests)
        files = [PROJECT / name for name in one.tests[:cut]]
        assert files, one
        assert all(file.is_file() for file in files), one.tests
        text = "\n".join(file.read_text(encoding="utf-8") for file in files)
        for word in re.split(r" (?:and|or) ", one.tests[-1]) if cut < len(one.tests) else ():
            assert word in text, one.tests
