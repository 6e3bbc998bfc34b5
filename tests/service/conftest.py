"""One running service for all tests of the room; those that need their own limits or books start another."""

from collections.abc import Iterator

import pytest

import serving


@pytest.fixture(scope="session")
def running(tmp_path_factory: pytest.TempPathFactory) -> Iterator[serving.Running]:
    policy = "1000/km ever, 1000 ever, 40/km per day, slack 100 ever"
    with serving.service(tmp_path_factory.mktemp("service"), policy=policy) as found:
        yield found
