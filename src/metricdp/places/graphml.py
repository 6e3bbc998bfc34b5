"""Road networks in GraphML, as osmnx writes them (`osmnx.save_graphml`)."""

from __future__ import annotations

from pathlib import Path
from typing import Any
from xml.parsers import expat

from metricdp.errors import InvalidInput
from metricdp.places.network import Roads, build_listed_roads

PLACES = {"y": 0, "lat": 0, "x": 1, "lon": 1}
STREETS = {"length": 0, "length_m": 0, "oneway": 1, "travel_time": 2, "travel_time_s": 2}
MOST_BYTES = 16 << 30
MOST_ELEMENTS = 50_000_000  # crossings, or streets
LONGEST = 1000  # characters of a value that is read
PIECE = 1 << 20


def from_graphml(path: Path) -> Roads:
    """Return the network of a GraphML file; nodes have `y` and `x` in degrees, edges `length` in metres.

    The file is read as a stream. Declarations of entities, and document types altogether, are refused: a few bytes of
    them can grow to gigabytes or name other files.
    """
    size = path.stat().st_size
    if size > MOST_BYTES:
        raise InvalidInput(f"the file {str(path)!r} has {size:,} bytes; at most {MOST_BYTES:,} are read.")
    reader = _Reader()
    try:
        with path.open("rb") as file:
            while piece := file.read(PIECE):
                reader.parser.Parse(piece, False)
            reader.parser.Parse(b"", True)
    except (OSError, expat.ExpatError) as error:
        raise InvalidInput(f"the file {str(path)!r} cannot be read as GraphML: {error}.") from error
    return reader.roads()


class _Reader:
    """Collects crossings and streets while the parser runs."""

    def __init__(self) -> None:
        self.parser: Any = expat.ParserCreate()
        self.parser.StartDoctypeDeclHandler = self._refuse
        self.parser.EntityDeclHandler = self._refuse
        self.parser.StartElementHandler = self._begin
        self.parser.EndElementHandler = self._end
        self.parser.buffer_text = True
        self._keys: dict[str, dict[str, int]] = {"node": {}, "edge": {}}
        self._numbers: dict[str, int] = {}
        self._places: list[tuple[Any, ...]] = []
        self._ends: list[tuple[str, str]] = []
        self._streets: list[tuple[Any, ...]] = []
        self._directed: list[bool] = []
        self._default = True
        self._kind = ""
        self._slot = -1
        self._text = ""
        self._values: list[Any] = [None, None]
        self._name: Any = ""

    @staticmethod
    def _refuse(*_: Any) -> None:
        raise InvalidInput("the GraphML file declares a document type or entities, which are not read: remove them.")

    def _begin(self, tag: str, attributes: dict[str, str]) -> None:
        name = tag.rpartition(":")[2]
        if name == "data":
            self._slot = self._keys.get(self._kind, {}).get(attributes.get("key", ""), -1)
            if self._slot >= 0:
                self._text = ""
                self.parser.CharacterDataHandler = self._more
        elif name == "node":
            self._kind, self._name, self._values = "node", attributes.get("id"), [None, None]
        elif name == "edge":
            self._kind, self._values = "edge", [None, None, None]
            self._name = (attributes.get("source", ""), attributes.get("target", ""))
            self._directed.append(attributes.get("directed", "true" if self._default else "false") != "false")
        elif name == "graph":
            self._default = attributes.get("edgedefault", "directed") != "undirected"
        elif name == "key":
            self._declare(attributes)

    def _declare(self, attributes: dict[str, str]) -> None:
        for kind, known in (("node", PLACES), ("edge", STREETS)):
            slot = known.get(attributes.get("attr.name", ""))
            if slot is not None and attributes.get("for", "all") in (kind, "all"):
                self._keys[kind][attributes.get("id", "")] = slot

    def _more(self, text: str) -> None:
        self._text += text
        if len(self._text) > LONGEST:
            raise InvalidInput(
                f"a value in the GraphML file has more than {LONGEST} characters where one number is due."
            )

    def _end(self, tag: str) -> None:
        name = tag.rpartition(":")[2]
        if name == "data" and self._slot >= 0:
            self._values[self._slot] = self._text
            self._slot = -1
            self.parser.CharacterDataHandler = None
        elif name == "node" and self._kind == "node":
            if self._numbers.setdefault(str(self._name), len(self._places)) != len(self._places):
                raise InvalidInput(f"the GraphML file has two nodes of the name {self._name!r}.")
            self._places.append(tuple(self._values))
            self._finish(self._places)
        elif name == "edge" and self._kind == "edge":
            self._ends.append(self._name)
            self._streets.append(tuple(self._values))
            self._finish(self._streets)

    def _finish(self, collected: list[Any]) -> None:
        self._kind = ""
        if len(collected) > MOST_ELEMENTS:
            raise InvalidInput(f"the GraphML file has more than {MOST_ELEMENTS:,} crossings or streets.")

    def roads(self) -> Roads:
        """Return what was collected, or say what is missing."""
        bare = next((name for name, number in self._numbers.items() if None in self._places[number]), None)
        if bare is not None:
            raise InvalidInput(f"node {bare!r} must have `y` and `x` (or `lat` and `lon`) in degrees.")
        places = [_number(value, "the coordinates of crossings") for place in self._places for value in place]
        unknown = next((end for pair in self._ends for end in pair if end not in self._numbers), None)
        if unknown is not None:
            raise InvalidInput(f"an edge of the GraphML file ends at node {unknown!r}, which is not in the file.")
        ends = [self._numbers[end] for pair in self._ends for end in pair]
        if self._streets and all(length is None for length, _, _ in self._streets):
            raise InvalidInput(
                "the edges of the GraphML file must have `length` in metres (osmnx: `distance.add_edge_lengths`)."
            )
        lengths = [_number(length, "lengths") for length, _, _ in self._streets]
        ways = [(directed, street[1]) for directed, street in zip(self._directed, self._streets, strict=True)]
        return build_listed_roads(places, ends, lengths, ways, [seconds for _, _, seconds in self._streets])


def _number(text: str | None, what: str) -> float:
    try:
        return float("nan") if text is None else float(text)
    except ValueError as error:
        raise InvalidInput(f"{what} in the GraphML file must be numbers, got something else.") from error
