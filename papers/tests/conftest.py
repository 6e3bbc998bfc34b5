"""Settings shared by the tests of studies."""

from collections.abc import Iterator

import pytest

from metricdp_papers import STUDIES
from restoring import nothing_left_behind, settle

settle()


@pytest.fixture(autouse=True)
def _nothing_stays_behind() -> Iterator[None]:
    """What a test declares and sets is not there for the next one."""
    with nothing_left_behind(STUDIES):
        yield
