"""One schema per thing: what a metric, a space or a mechanism is called, is made of and takes to be audited.

A schema stands beside its class. Files read from it how the thing is stored and which values are possible, the
command its names and its one-line description, pages and other languages all of it (`Registry.table`). So a new metric
or mechanism is one class and one schema, in this package or in another:

    METRICS.declare(Schema(Temporal, "Temporal", "time apart", {"period": Number(above=0), "unit": Text()}))

What else can be asked for by name (builders, engines, studies) is declared in a `NameRegistry`. The command, the public
names, the pages and the lists in messages all read the registry; so a new one is one file and one schema, in
this package or in another (see docs/extend.md).

The fields are attributes of the thing and arguments of its constructor by the same names; where they are not, `read`
and `make` translate.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass, field
from typing import Any, Generic, Literal, Protocol, TypeVar

from metricdp import constants
from metricdp.errors import InvalidInput


class RegistryEntry(Protocol):
    """An entry of a registry: the name people type and one line that says what it is."""

    @property
    def name(self) -> str: ...
    @property
    def about(self) -> str: ...


T = TypeVar("T", bound=RegistryEntry)


class NameRegistry(Generic[T]):
    """Entries of one sort of thing, in the order they were made, by name."""

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


def load_function(target: str | Callable[..., Any]) -> Callable[..., Any]:
    """Return a function, or the one at `module:name`: what is heavy is imported when it is first used."""
    if callable(target):
        return target
    module, _, name = target.partition(":")
    found: Callable[..., Any] = getattr(importlib.import_module(module), name)
    return found


LARGEST_WHOLE = 2**53 - 1  # what every reader of JSON holds exactly


@dataclass(frozen=True)
class Number:
    """A number in a range; with `infinite` infinity too."""

    least: float | None = None
    above: float | None = None
    most: float | None = None
    infinite: bool = False


@dataclass(frozen=True)
class Whole:
    """A whole number in a range."""

    least: int = 0
    most: int = LARGEST_WHOLE


@dataclass(frozen=True)
class Text:
    """A text, one of `choices` where there are some."""

    choices: tuple[str, ...] = ()
    longest: int = constants.LICENCE_LIMIT


@dataclass(frozen=True)
class Array:
    """A tensor of numbers or of text, of that many sides (0: any) and range.

    "float" are doubles, "single" floats of 32 bits, "whole" 64-bit whole numbers, "narrow" whole numbers of at least 0
    in the narrowest type that holds them, and "points" text or doubles or whole numbers. One that is `coded` may lie in
    a file as codes and a table of the numbers they stand for.
    """

    of: Literal["float", "single", "whole", "narrow", "points"] = "float"
    sides: int = 0
    least: float | None = None
    most: float | None = None
    coded: bool = False


@dataclass(frozen=True)
class Table:
    """A matrix of probabilities, stored dense, sparse or as whole numbers."""


@dataclass(frozen=True)
class Part:
    """Another thing that is stored by itself; `named` says which kinds will do, by the names of their schemas."""

    of: Literal["metric", "space", "mechanism"]
    named: tuple[str, ...] = ()


@dataclass(frozen=True)
class Many:
    """A list, so long at least and at most."""

    of: Field
    least: int = 0
    most: int = constants.LARGEST_DIMENSION


@dataclass(frozen=True)
class Group:
    """A list with one field for every place."""

    of: tuple[Field, ...]


@dataclass(frozen=True)
class Maybe:
    """A field that may be nothing (null)."""

    of: Field


Field = Number | Whole | Text | Array | Table | Part | Many | Group | Maybe


@dataclass(frozen=True)
class Effort:
    """What some work takes: numbers held in memory at once, and elementary steps of about a nanosecond."""

    values: float = 0.0
    steps: float = 0.0

    def __add__(self, other: Effort) -> Effort:
        return Effort(self.values + other.values, self.steps + other.steps)


@dataclass(frozen=True)
class Schema:
    """What the package knows about one kind of thing.

    Attributes:
        thing: The class.
        name: Its name in files and on pages.
        about: One line for people.
        fields: What it is made of, as it lies in files.
        words: Names people type at the command line, each with what it makes.
        since: The first version of the file format that holds it.
        read: Returns the fields of a thing, where they are not its attributes.
        make: Returns the thing from its fields (as keyword arguments), where its constructor does not take them.
        effort: For a metric, what measuring takes: (metric, points, others, width) -> Effort. For a space, what making
            it takes, from its fields. For a mechanism, what auditing it takes, from an object that has its
            fields, the table only by its shape; parts count by themselves. Files that would take too much are refused
            before any of it.
        promise: For a mechanism, which kind of guarantee it has; its files hold no other one.
    """

    thing: type
    name: str
    about: str
    fields: Mapping[str, Field] = field(default_factory=dict)
    words: Mapping[str, Callable[[], Any]] = field(default_factory=dict)
    since: int = 1
    read: Callable[[Any], Mapping[str, Any]] | None = None
    make: Callable[..., Any] | None = None
    effort: Callable[..., Effort] | None = None
    promise: Literal["pure", "concentrated"] = "pure"

    @property
    def holds_table(self) -> bool:
        """Whether files hold a matrix of probabilities of it."""
        return any(isinstance(one, Table) for one in self.fields.values())

    @property
    def is_sparse(self) -> bool:
        """Whether files hold near reports of every secret and a background of it."""
        return any(isinstance(one, Array) and one.coded for one in self.fields.values())

    def field_values(self, thing: Any) -> Mapping[str, Any]:
        """Return the fields of a thing."""
        return {name: getattr(thing, name) for name in self.fields} if self.read is None else self.read(thing)

    def plain(self) -> dict[str, Any]:
        """Return what is declared as plain values."""
        return {
            "about": self.about,
            "fields": {name: plain_field(kind) for name, kind in self.fields.items()},
            "words": list(self.words),
            "since": self.since,
            **({} if self.promise == "pure" else {"promise": self.promise}),
        }

    def made(self, **values: Any) -> Any:
        """Return a thing from its fields."""
        return self.thing(**values) if self.make is None else self.make(**values)


Facet = Any  # of a thing: a function that is called with it, or words


class Registry(NameRegistry[Schema]):
    """All schemas of one sort of thing, by name and by class, and what each can be asked for.

    A facet is what somebody asks of a thing: it stands in its schema, or is registered by the package that asks,
    where that lies above. What a thing has not is refused with a sentence.
    """

    def __init__(self, sort: str, refusals: Mapping[str, str] | None = None) -> None:
        self._registered: dict[type, dict[str, Facet]] = {}
        self.refusals = {} if refusals is None else refusals
        super().__init__(sort)

    def register(self, type: type, /, **facets: Facet) -> None:
        """Add facets to what is declared, from a package above; one that it has already is not replaced."""
        entry = next((one for one in self if one.thing is type), None)
        if entry is None:
            raise InvalidInput(f"{type.__name__} is not a declared kind of {self.sort}: declare it first.")
        known = self._registered.setdefault(type, {})
        taken = [name for name in facets if name in known or getattr(entry, name, None) is not None]
        if taken:
            raise InvalidInput(f"the {self.sort} {entry.name!r} has its {taken[0]} already.")
        known.update(facets)

    def kind(self, thing: object) -> Schema | None:
        """Return the declaration of a thing's class, or of the nearest class that it extends."""
        known = {entry.thing: entry for entry in self._entries.values()}
        return next((known[one] for one in type(thing).__mro__ if one in known), None)

    def find_facet(self, name: str, thing: object) -> Facet:
        """Return a facet of a thing, None where it has none."""
        found = self.kind(thing)
        own = getattr(found, name, None)
        return own if found is None or own is not None else self._registered.get(found.thing, {}).get(name)

    def has(self, name: str, thing: object) -> bool:
        """Return whether a thing has a facet."""
        return self.find_facet(name, thing) is not None

    def facet(self, name: str, thing: object) -> Facet:
        """Return a facet of a thing, or say that it has none."""
        found = self.find_facet(name, thing)
        if found is None:
            raise self.refusal(name, thing)
        return found

    def refusal(self, name: str, thing: object) -> InvalidInput:
        """Return the error that says what a thing has not."""
        usual = f"the {self.sort} {{kind}} has no `{name}`, which its declaration would say: see docs/extend.md."
        return InvalidInput(self.refusals.get(name, usual).format(kind=type(thing).__name__))

    def declare(self, entry: Schema) -> Schema:
        """Add a declaration; a name, a word or a class that is taken is refused."""
        for other in self:
            if entry.thing is other.thing:
                raise InvalidInput(f"{entry.thing.__name__} is declared already, as the {self.sort} {other.name!r}.")
            taken = set(entry.words) & set(other.words)
            if taken:
                raise InvalidInput(f"the word {sorted(taken)[0]!r} stands for the {self.sort} {other.name!r} already.")
        return super().declare(entry)

    def find(self, name: str) -> Schema | None:
        """Return the declaration of exactly this name, or None: how files ask."""
        return next((entry for entry in self if entry.name == name), None)

    def of(self, thing: object) -> Schema | None:
        """Return the declaration of a thing's class, or None."""
        return next((entry for entry in self if entry.thing is type(thing)), None)

    def names_with(self, facet: str) -> tuple[str, ...]:
        """Return the names of what has a facet."""
        found = (one for one in self if self._registered.get(one.thing, {}).get(facet, getattr(one, facet, None)))
        return tuple(one.name for one in found)

    def words(self) -> dict[str, Callable[[], Any]]:
        """Return every word of the command line with what it makes."""
        return {word: make for entry in self for word, make in entry.words.items()}

    def table(self) -> dict[str, Any]:
        """Return everything that is declared as plain values, for pages and for other languages."""
        return {entry.name: entry.plain() for entry in self}


def plain_field(kind: Field) -> dict[str, Any]:
    """Return a field as plain values: its type in lower case, and its limits where it has some."""
    limits = {
        name: value
        for name, value in asdict(kind).items()
        if name != "of" and value is not None and value is not False and value != ()
    }
    entry: dict[str, Any] = {"type": type(kind).__name__.lower()} | limits
    if isinstance(kind, Many | Maybe):
        return entry | {"of": plain_field(kind.of)}
    if isinstance(kind, Group):
        return entry | {"of": [plain_field(item) for item in kind.of]}
    if isinstance(kind, Array | Part):
        return entry | {"of": kind.of}
    return entry
