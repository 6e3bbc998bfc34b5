"""Settings shared by all tests."""

from collections.abc import Iterator

import pytest

from restoring import nothing_left_behind, settle

settle()


@pytest.fixture(autouse=True)
def _nothing_stays_behind() -> Iterator[None]:
    """What a test declares and sets is not there for the next one.

    Fixtures of modules and sessions are made before and ended after: what they set stays as long as they do.
    """
    with nothing_left_behind():
        yield
