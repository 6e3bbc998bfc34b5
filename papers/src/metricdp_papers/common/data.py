"""Data sets that studies read from the data folder, which METRICDP_DATA names."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Generic, TypeVar

from metricdp.errors import InvalidInput
from metricdp.places import data_folder
from metricdp.text import Vectors, read_vectors

GLOVE = "glove_6b_100d"
T = TypeVar("T")


def data_file(name: str) -> Path:
    """Return a file of the data folder, `FOLDER/FILE`."""
    path = data_folder() / name
    if not path.is_file():
        raise InvalidInput(f"{name} is not in the data folder {str(data_folder())!r}: set METRICDP_DATA.")
    return path


def at_hand(*names: str) -> bool:
    """Tell whether the data sets lie in the data folder, by the names of their folders."""
    return all((data_folder() / name).is_dir() for name in names)


@cache
def glove(*files: str) -> Vectors:
    """Return the words of the files "vectors" and "review_extra" of GloVe, the most frequent first within each."""
    return read_vectors([data_file(f"{GLOVE}/{name}.npz") for name in files])


@dataclass(frozen=True)
class DataSource(Generic[T]):
    """What a study reads by a name of its own, and the data sets that takes."""

    read: Callable[..., T]
    needs: tuple[str, ...] = ()

    @property
    def at_hand(self) -> bool:
        """Whether its data sets lie in the data folder."""
        return at_hand(*self.needs)
