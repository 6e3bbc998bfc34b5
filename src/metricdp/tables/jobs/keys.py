"""Keys of partition folders, such as day and zone in `day=2024-05-01/zone=7/part.parquet`, as columns of a table.

Their values leave in the names of folders. So they are looked at, dropped and coarsened like other columns, and the
folders of the output are named after what is left of them.
"""

from __future__ import annotations

import hmac
import os
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from urllib.parse import quote, unquote

import pyarrow as pa

from metricdp.errors import InvalidInput
from metricdp.tables.trim import Trim

FOLDER = re.compile(r"([^=]+)=(.*)", re.DOTALL)
EMPTY = "__HIVE_DEFAULT_PARTITION__"  # how a folder is named whose rows have no value


def root_of(paths: Sequence[Path]) -> Path:
    """Return the folder below which files keep their places: all of them lie in it, and no key stands above it."""
    root = Path(os.path.commonpath([os.path.dirname(os.path.abspath(path)) for path in paths]))
    while FOLDER.fullmatch(root.name):
        root = root.parent
    return root


def folder_keys(paths: Sequence[Path]) -> tuple[str, ...]:
    """Return the keys of the folders that files lie in, the outermost first; files with different ones are refused."""
    root = root_of(paths)
    found: tuple[str, ...] | None = None
    for path in paths:
        keys = tuple(key for key, _ in _folders(Path(os.path.abspath(path)).relative_to(root).parent))
        if len(set(keys)) < len(keys):
            raise InvalidInput(f"{str(path)!r} lies in two folders of one key ({', '.join(keys)}): rename one of them.")
        if found is not None and keys != found:
            raise InvalidInput(
                f"{str(path)!r} lies in folders of the keys {', '.join(keys) or '(none)'}, other files in folders of "
                f"{', '.join(found) or '(none)'}: all files must have the same keys in the same order."
            )
        found = keys
    return found or ()


def key_values(path: Path, keys: Sequence[str]) -> tuple[tuple[str, str | None], ...]:
    """Return keys with their values for all rows of a file; None for a key that its folders do not name."""
    found = dict(_folders(Path(os.path.abspath(path)).parent))
    return tuple((key, found.get(key)) for key in keys)


def released_places(paths: Sequence[Path], keys: Sequence[str], trim: Trim, order_key: str) -> list[Path]:
    """Return where the output of every file lies: in folders that show what is left of the keys.

    Files that meet in one folder under one name are numbered in an order that a random key decides: from an order that
    anybody can work out, whoever guesses the folders would know which file was in which.
    """
    root = root_of(paths)
    places = []
    for path in paths:
        place = Path(os.path.abspath(path)).relative_to(root)
        left = _left(dict(key_values(path, keys)), trim)
        folders = [
            _renamed(folder, left) for folder in place.parent.parts if _name_of(folder) not in set(keys) - set(left)
        ]
        places.append(Path(*folders, place.name))
    meeting = Counter(places)
    key = order_key.encode()
    order = sorted(range(len(paths)), key=lambda n: hmac.digest(key, os.fsencode(os.path.abspath(paths[n])), "sha256"))
    met: Counter[Path] = Counter()
    for number in order:
        place = places[number]
        if trim and keys and meeting[place] > 1:
            stem, dot, ends = place.name.partition(".")
            places[number] = place.with_name(f"{stem}-{met[place]:05d}{dot}{ends}")
            met[place] += 1
    return places


def other_names(paths: Sequence[Path]) -> list[tuple[str, ...]]:
    """Return the names that leave as they are: of every file its own, and those of its folders that are no keys."""
    root = root_of(paths)
    places = [Path(os.path.abspath(path)).relative_to(root) for path in paths]
    stems = [place.name.removesuffix(place.suffix) for place in places]
    folders = [[folder for folder in place.parent.parts if not FOLDER.fullmatch(folder)] for place in places]
    return [(stem, *others) for stem, others in zip(stems, folders, strict=True)]


def _folders(place: Path) -> list[tuple[str, str | None]]:
    found = []
    for folder in place.parts:
        key = FOLDER.fullmatch(folder)
        if key is not None:
            value = unquote(key[2])
            found.append((unquote(key[1]), None if value == EMPTY else value))
    return found


def _name_of(folder: str) -> str | None:
    key = FOLDER.fullmatch(folder)
    return None if key is None else unquote(key[1])


def _left(values: Mapping[str, str | None], trim: Trim) -> dict[str, tuple[str | None, bool]]:
    """Return what is left of the values of keys, and whether it changed."""
    left: dict[str, tuple[str | None, bool]] = {}
    steps = dict(trim.coarsen)
    for key, value in values.items():
        if key in trim.drop:
            continue
        if key in steps:
            own = Trim(coarsen=((key, steps[key]),))
            value = own.applied(pa.table({key: pa.array([value], pa.string())})).column(key)[0].as_py()
        left[key] = value, key in steps
    return left


def _renamed(folder: str, left: Mapping[str, tuple[str | None, bool]]) -> str:
    """Return the name of a folder of the output; what was not changed is written as it was."""
    name = _name_of(folder)
    if name is None or not left[name][1]:
        return folder
    value = left[name][0]
    return f"{quote(name, safe=' ')}={EMPTY if value is None else quote(value, safe=' :,')}"
