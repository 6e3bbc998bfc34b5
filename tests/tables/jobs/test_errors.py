"""Errors that travel: sentences of ours arrive as they were, and of others nothing that could be somebody's data."""

from __future__ import annotations

import errno
import json
import traceback

import pyarrow as pa
import pytest

from metricdp import errors
from metricdp.errors import CorruptFile, InvalidInput, MetricdpError, OutOfDomain, OutputProblem
from metricdp.tables.jobs.errors import bare_error, error_in, is_ours, pack_error, reword_error, unpack_error

CANARY = "41.1579438"
KINDS = [kind for kind in vars(errors).values() if isinstance(kind, type) and issubclass(kind, MetricdpError)]


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.__name__)
def test_every_error_of_ours_arrives_as_it_was(kind: type[MetricdpError]) -> None:
    there = unpack_error(json.loads(json.dumps(pack_error(kind("row 3 is no secret.")))))
    assert type(there) is kind
    assert str(there) == "row 3 is no secret."


def test_rows_travel_along() -> None:
    there = unpack_error(json.loads(json.dumps(pack_error(OutOfDomain("rows 3 and 9", rows=(3, 9))))))
    assert isinstance(there, OutOfDomain)
    assert there.rows == (3, 9)
    again = reword_error(there, "in one of the files, rows 3 and 9")
    assert (type(again), again.rows, str(again)) == (OutOfDomain, (3, 9), "in one of the files, rows 3 and 9")
    assert str(there) == "rows 3 and 9"


@pytest.mark.parametrize(
    "error",
    [
        pa.ArrowInvalid(f"could not convert string to double: '{CANARY}'"),
        ValueError(f"bad value {CANARY}"),
        KeyError(CANARY),
        UnicodeDecodeError("utf-8", CANARY.encode(), 0, 1, CANARY),
        OSError(errno.ENOSPC, "No space left on device", f"/secret/{CANARY}.csv"),
        OSError(f"something about {CANARY}"),
        MemoryError(CANARY),
    ],
    ids=lambda error: type(error).__name__,
)
def test_of_other_errors_only_the_kind_travels(error: Exception) -> None:
    packed = pack_error(error)
    assert not is_ours(packed)
    assert CANARY not in json.dumps(packed)
    assert isinstance(unpack_error(packed), OutputProblem)


def test_what_is_raised_in_a_worker_brings_nothing_along() -> None:
    def work() -> None:
        try:
            try:
                raise pa.ArrowInvalid(f"could not convert '{CANARY}'")
            except pa.ArrowInvalid as error:
                raise InvalidInput("the column 'lat' must hold numbers.") from error
        except Exception as error:
            raise bare_error(error) from None

    with pytest.raises(InvalidInput, match="must hold numbers") as caught:
        work()
    assert CANARY not in "".join(traceback.format_exception(caught.value))


def test_an_error_of_ours_is_found_in_the_words_of_an_engine() -> None:
    text = "Job aborted: Traceback ...\n  File x\nmetricdp.errors.CorruptFile: it was altered.\n\n\tat org.apache.spark"
    found = error_in(text)
    assert (type(found), str(found)) == (CorruptFile, "it was altered.")
    assert error_in("Job aborted: Traceback ...\nValueError: 3") is None


@pytest.mark.parametrize("kind", ["importlib", "import_extra", "Exception", "__name__", "nothing"])
def test_only_kinds_of_ours_are_made_again(kind: str) -> None:
    assert type(unpack_error({"kind": kind, "message": "x", "rows": []})) is OutputProblem
