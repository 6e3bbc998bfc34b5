"""Catalogues: what can be asked for by name, each thing declared once.

The command, the public names, the pages and the lists in messages all read these declarations; so a new builder, engine
or study is one file and one declaration, in this package or in another (see docs/extend.md).
"""

from __future__ import annotations

import ast
import importlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from importlib.resources import files
from typing import Any, Generic, Protocol, TypeVar

from metricdp.errors import InvalidInput


class Entry(Protocol):
    """What everything in a catalogue has: the name people type and one line that says what it is."""

    @property
    def name(self) -> str: ...
    @property
    def about(self) -> str: ...


T = TypeVar("T", bound=Entry)


class Catalogue(Generic[T]):
    """Declarations of one sort of thing, in the order they were made, by name."""

    def __init__(self, sort: str, entries: Iterable[T] = ()) -> None:
        self.sort = sort
        self._entries: dict[str, T] = {}
        for entry in entries:
            self.declare(entry)

    def declare(self, entry: T) -> T:
        """Add a declaration and return it; a name that is taken or cannot be typed is refused."""
        if not entry.name.replace("-", "_").isidentifier():
            raise InvalidInput(f"the name of a {self.sort} must be one word of letters and digits, got {entry.name!r}.")
        if entry.name in self._entries:
            raise InvalidInput(f"there is a {self.sort} {entry.name!r} already: choose another name.")
        if not entry.about.strip():
            raise InvalidInput(f"the {self.sort} {entry.name!r} needs one line that says what it is (`about`).")
        self._entries[entry.name] = entry
        return entry

    def named(self, name: str) -> T:
        """Return the declaration of a name; hyphens and underscores are one."""
        found = self._entries.get(name.strip()) or self._entries.get(name.strip().replace("-", "_"))
        if found is None:
            raise InvalidInput(f"unknown {self.sort} {name!r}: use one of {', '.join(self._entries)}.")
        return found

    def __iter__(self) -> Iterator[T]:
        return iter(tuple(self._entries.values()))

    def __len__(self) -> int:
        return len(self._entries)

    @property
    def names(self) -> tuple[str, ...]:
        """The names, in the order of declaration."""
        return tuple(self._entries)


def loaded(target: str | Callable[..., Any]) -> Callable[..., Any]:
    """Return a function, or the one at `module:name`: what is heavy is imported when it is first used."""
    if callable(target):
        return target
    module, _, name = target.partition(":")
    found: Callable[..., Any] = getattr(importlib.import_module(module), name)
    return found


def named_in_stub(package: str) -> tuple[Callable[[str], Any], list[str]]:
    """Return a `__getattr__` and the names of a package: those of its `__init__.pyi`, imported when they are used."""
    stub = ast.parse(files(package).joinpath("__init__.pyi").read_text(encoding="utf-8"))
    homes: dict[str, list[str]] = {}
    for node in stub.body:
        if isinstance(node, ast.ImportFrom):
            home = (node.module or "").removeprefix(f"{package}.")
            homes[home] = [*homes.get(home, ()), *(alias.name for alias in node.names)]
    return named_later(package, homes), sorted(name for names in homes.values() for name in names)


def named_later(package: str, modules: Mapping[str, Sequence[str]]) -> Callable[[str], Any]:
    """Return a `__getattr__` for a package: names of its modules, which are imported when they are first used."""
    homes = {name: module for module, names in modules.items() for name in names}

    def __getattr__(name: str) -> Any:
        if name not in homes:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        return loaded(f"{package}.{homes[name]}:{name}")

    return __getattr__
