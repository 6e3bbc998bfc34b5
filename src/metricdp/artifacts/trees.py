"""Location trees as a folder: a mechanism file for every level, and `tree.json`, which says what lies in what.

A device opens the file of the level it wants, and prunes by the names of areas. `tree.json` holds no secret and no
signature: it names its mechanism files by their checksums, and those are signed where a key is given.

    {"format": "metricdp-tree", "version": 1, "places": 36, "levels": [
        {"name": "places", "file": "places.mdp", "sha256": "...", "areas": ["a", ...] or null},
        {"name": "district", "file": "district.mdp", "sha256": "...", "areas": ["Bonfim", ...],
         "of": [0, 0, 1, ...], "middles": [14, 3, ...]}, ...]}

Levels are finest first. `of` is the area of every place, by its position in `areas`; `middles` are the places that
stand for the areas. All files have the places as secrets; that of a level reports its areas, in their order.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from metricdp.arrays import Integers
from metricdp.artifacts.file import inspect, save
from metricdp.errors import CorruptFile, InvalidInput
from metricdp.files import check_target, existing_file, make_folder, replace_file
from metricdp.mechanisms import MatrixMechanism
from metricdp.places import LocationTree

FORMAT, VERSION, FILE = "metricdp-tree", 1, "tree.json"
PLACES = "places"
LARGEST = 64 * 2**20  # bytes of a tree.json
MOST_LEVELS = 31
LONGEST = 1_000  # letters of a name


@dataclass(frozen=True, eq=False)
class TreeLevel:
    """One level of a tree in a folder: its name, its mechanism file, and the areas by name.

    `areas` is None for places without names; `of` says in which area every place lies, `middles` which place stands for
    every area.
    """

    name: str
    file: str
    sha256: str
    areas: tuple[str, ...] | None
    of: Integers
    middles: Integers


@dataclass(frozen=True, eq=False)
class TreeFile:
    """What `tree.json` says: the levels, finest first."""

    folder: Path
    levels: tuple[TreeLevel, ...]

    @property
    def places(self) -> int:
        """How many places there are."""
        return len(self.levels[0].of)

    def level_number(self, name: str) -> int:
        """Return the number of a level by its name, or by the number itself."""
        names = [level.name for level in self.levels]
        if name in names:
            return names.index(name)
        if name.isdecimal() and int(name) < len(names):
            return int(name)
        raise InvalidInput(f"the tree has no level {name!r}; its levels are {', '.join(names)}.")

    def level_of_areas(self, names: Sequence[str]) -> int:
        """Return the one level that knows all of these names."""
        knowing = [number for number, one in enumerate(self.levels) if one.areas and set(names) <= set(one.areas)]
        if len(knowing) == 1:
            return knowing[0]
        if not knowing and all(name.isdecimal() for name in names) and self.levels[0].areas is None:
            return 0
        titles = ", ".join(one.name for one in self.levels)
        which = "several levels have" if knowing else "no level has"
        raise InvalidInput(f"{which} all of these areas: say which level with --level; there are {titles}.")

    def level_of_file(self, sha256: str) -> int | None:
        """Return the level whose mechanism file has this checksum."""
        return next((number for number, level in enumerate(self.levels) if level.sha256 == sha256), None)

    def area_codes(self, level: int, names: Sequence[str]) -> Integers:
        """Return the areas of a level by their names, or by their numbers where places have no names."""
        known = self.levels[level].areas
        table = {name: code for code, name in enumerate(known)} if known is not None else None
        codes = []
        for name in names:
            if table is not None and name in table:
                codes.append(table[name])
            elif table is None and name.isdecimal() and int(name) < self.places:
                codes.append(int(name))
            else:
                some = f"are numbered from 0 to {self.places - 1}" if known is None else _sample_names(known)
                raise InvalidInput(f"the level {self.levels[level].name!r} has no area {name!r}; its areas {some}.")
        return np.array(codes, dtype=np.int64)

    def reports(self, reported: int, level: int, areas: Integers) -> Integers:
        """Return which reports of the file of level `reported` lie in some areas of a level that is no finer."""
        if level < reported:
            raise InvalidInput(
                f"the file reports areas of the level {self.levels[reported].name!r}, and areas of the finer level "
                f"{self.levels[level].name!r} cannot be left out of them: prune the file of that level."
            )
        inside = np.isin(self.levels[level].of, areas)
        return np.unique(self.levels[reported].of[inside])


def save_tree(
    tree: LocationTree,
    mechanisms: Sequence[MatrixMechanism],
    folder: str | os.PathLike[str],
    *,
    names: Sequence[str] | None = None,
    areas: Sequence[Sequence[str] | None] | None = None,
    key: str | os.PathLike[str] | None = None,
) -> TreeFile:
    """Write a tree and the mechanism of each of its levels to a folder; see the head of this module.

    `mechanisms` are one a level, the places first, each with the places as secrets and the areas of its level as
    reports. `names` are those of the levels above the places, `areas` for every level the names of its areas by their
    number (None: numbers). With `key` every file is signed.
    """
    count = tree.height + 1
    if len(mechanisms) != count:
        raise InvalidInput(
            f"`mechanisms` must be {count}, one for each level and the places first, got {len(mechanisms)}."
        )
    for level, mechanism in enumerate(mechanisms):
        sizes = len(mechanism.inputs), len(mechanism.outputs)
        wanted = len(tree.space), int(tree.labels[level].max()) + 1
        if sizes != wanted:
            raise InvalidInput(
                f"the mechanism of level {level} must have {wanted[0]} secrets and {wanted[1]} reports, got {sizes}."
            )
    titles = [PLACES, *(names or [f"level {level}" for level in range(1, count)])]
    if len(titles) != count or len(set(titles)) < count or not all(0 < len(title) <= LONGEST for title in titles):
        raise InvalidInput(f"`names` must be {count - 1} different names, none of them {PLACES!r}, got {names!r}.")
    place = make_folder(folder)
    levels: list[dict[str, Any]] = []
    for level, mechanism in enumerate(mechanisms):
        file = f"{_slug(titles[level], level)}.mdp"
        save(mechanism, place / file, key=key)
        size = int(tree.labels[level].max()) + 1
        given = None if areas is None else areas[level]
        called = None if given is None and level == 0 else [str(name) for name in given or range(size)]
        if called is not None and (len(called) != size or len(set(called)) < size):
            raise InvalidInput(f"`areas` must be {size} different names for level {level}, got {len(called)}.")
        one: dict[str, Any] = {"name": titles[level], "file": file, "areas": called}
        one["sha256"] = inspect(place / file, verify=False).sha256
        if level:
            one |= {"of": tree.labels[level].tolist(), "middles": tree.middles(level).tolist()}
        levels.append(one)
    written = {"format": FORMAT, "version": VERSION, "places": len(tree.space), "levels": levels}
    with replace_file(place / FILE) as partial:
        partial.write_text(json.dumps(written, ensure_ascii=False) + "\n", encoding="utf-8")
    return load_tree(place)


def check_folder(folder: str | os.PathLike[str], *, overwrite: bool) -> None:
    """Refuse a folder that holds something else, or a tree already."""
    place = Path(folder)
    if place.is_dir() and any(place.iterdir()) and not (place / FILE).is_file():
        raise InvalidInput(f"{str(folder)!r} is a folder that holds something else: name a new one.")
    check_target(place / FILE if place.is_dir() else place, overwrite=overwrite)


def load_tree(path: str | os.PathLike[str]) -> TreeFile:
    """Read `tree.json`, or that of a folder, and check all of it; the mechanism files are not opened."""
    place = Path(path) / FILE if Path(path).is_dir() else existing_file(path, "tree")
    place = existing_file(place, "tree")
    if place.stat().st_size > LARGEST:
        raise CorruptFile(f"{str(path)!r} was refused: a tree has at most {LARGEST // 2**20} MiB.")
    try:
        found: Any = json.loads(place.read_text(encoding="utf-8"))
        return TreeFile(place.parent, _levels(found))
    except (UnicodeDecodeError, json.JSONDecodeError, RecursionError, KeyError, TypeError, ValueError) as error:
        reason = str(error) if isinstance(error, _TreeError) else "it is not a tree that metricdp wrote"
        raise CorruptFile(f"{str(path)!r} was refused: {reason}.") from error


class _TreeError(ValueError):
    """What is wrong with a tree, as half a sentence."""


def _levels(found: Any) -> tuple[TreeLevel, ...]:
    if not isinstance(found, dict) or found.get("format") != FORMAT:
        raise _TreeError("it is not a tree that metricdp wrote")
    if found["version"] != VERSION:
        raise _TreeError("it was written by a later metricdp")
    count, given = found["places"], found["levels"]
    if type(count) is not int or count < 1 or not isinstance(given, list) or not 1 <= len(given) <= MOST_LEVELS:
        raise _TreeError("its places or levels are missing")
    levels: list[TreeLevel] = []
    for number, one in enumerate(given):
        size = count if number == 0 else len(one["areas"])
        of = np.arange(count) if number == 0 else _codes(one["of"], count, size)
        middles = np.arange(count) if number == 0 else _codes(one["middles"], size, count)
        level = TreeLevel(one["name"], one["file"], one["sha256"], _names(one["areas"], size), of, middles)
        _check(level, levels)
        levels.append(level)
    return tuple(levels)


def _check(level: TreeLevel, finer: Sequence[TreeLevel]) -> None:
    if not all(isinstance(text, str) and 0 < len(text) <= LONGEST for text in (level.name, level.file)):
        raise _TreeError("a level has no name or no file")
    if Path(level.file).name != level.file or level.name in [one.name for one in finer]:
        raise _TreeError("a file lies in another folder, or two levels have one name")
    if not isinstance(level.sha256, str) or not re.fullmatch("[0-9a-f]{64}", level.sha256):
        raise _TreeError("a checksum has not 64 digits")
    if not finer:
        return
    if len(np.unique(level.of)) != len(level.middles):
        raise _TreeError("an area has no place")
    if not np.array_equal(level.of[level.middles], np.arange(len(level.middles))):
        raise _TreeError("a place outside an area stands for it")
    below = finer[-1].of
    pairs = np.unique(np.column_stack([below, level.of]), axis=0)
    if len(pairs) > len(np.unique(below)):
        raise _TreeError("an area lies in several of the next level")


def _codes(given: Any, count: int, most: int) -> Integers:
    if not isinstance(given, list) or len(given) != count or any(type(one) is not int for one in given):
        raise _TreeError("a level has not one number a place or area")
    codes = np.array(given, dtype=np.int64)
    if count and not (codes.min() >= 0 and codes.max() < most):
        raise _TreeError("a number is that of no place or area")
    return codes


def _names(given: Any, size: int) -> tuple[str, ...] | None:
    if given is None:
        return None
    if not isinstance(given, list) or len(given) != size or len(set(given)) < size:
        raise _TreeError("areas need one name each, all different")
    if not all(isinstance(name, str) and 0 < len(name) <= LONGEST for name in given):
        raise _TreeError("a name is not a text")
    return tuple(given)


def _slug(title: str, level: int) -> str:
    """Return the name of a file for a level."""
    plain = re.sub(r"[^A-Za-z0-9_-]+", "_", title)[:60]
    return PLACES if level == 0 else f"level_{level}" if plain in ("", "_", PLACES) else f"{level}_{plain}"


def _sample_names(names: Sequence[str]) -> str:
    more = f" and {len(names) - 8:,} more" if len(names) > 8 else ""
    return f"are {', '.join(names[:8])}{more}"
