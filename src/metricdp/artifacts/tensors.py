"""Arrays by name: how numbers and texts lie in the tensors of a file."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from metricdp.artifacts.container import Tensors
from metricdp.artifacts.limits import LoadBudget
from metricdp.errors import CorruptFile, InvalidInput
from metricdp.registry import LARGEST_WHOLE, Array, Effort, Number, Text, Whole


def encode_scalar(value: Any) -> Any:
    """Return a number, a text or nothing as JSON holds it: numbers that are not finite become {"float": name}."""
    if isinstance(value, bool | str) or value is None:
        return value
    if isinstance(value, int | np.integer):
        return int(value)
    if isinstance(value, float | np.floating):
        number = float(value)
        return number if math.isfinite(number) else {"float": str(number)}
    raise InvalidInput(f"a mechanism file cannot hold a value of type {type(value).__name__}.")


def decode_number(kind: Number, value: Any, where: str) -> float:
    """Return a number that its field allows."""
    if kind.infinite and value == {"float": "inf"}:
        return math.inf
    least, most = _range_of(kind)
    good = type(value) in (int, float) and math.isfinite(value) and least <= value <= most
    if not good or (kind.above is not None and value <= kind.above):
        raise CorruptFile(f"{where} is not a number that is possible there")
    return float(value)


def decode_whole(kind: Whole, value: Any, where: str) -> int:
    """Return a whole number that its field allows."""
    if type(value) is not int or not kind.least <= value <= min(kind.most, LARGEST_WHOLE):
        raise CorruptFile(f"{where} is not a whole number that is possible there")
    return value


def decode_text(kind: Text, value: Any, where: str) -> str:
    """Return a text that its field allows."""
    if type(value) is not str or len(value) > kind.longest:
        raise CorruptFile(f"{where} is not a text")
    if kind.choices and value not in kind.choices:
        raise CorruptFile(f"{where} must be one of {', '.join(kind.choices)}")
    return value


_DECODERS: dict[type, Callable[..., Any]] = {Number: decode_number, Whole: decode_whole, Text: decode_text}


def decode_scalar(kind: Number | Whole | Text, value: Any, where: str) -> Any:
    """Return a number or a text that its field allows."""
    return _DECODERS[type(kind)](kind, value, where)


@dataclass
class TensorWriter:
    """Collects arrays under names; the same object is stored once."""

    tensors: Tensors = field(default_factory=dict)
    _seen: dict[int, tuple[Any, str]] = field(default_factory=dict)  # keeps objects alive, so that ids stay theirs

    def array(self, array: NDArray[Any], name: str, *, single: bool = False) -> str:
        """Store an array and return its name; text becomes its UTF-8 bytes and their ends, `single` numbers stay so."""
        if id(array) in self._seen:
            return self._seen[id(array)][1]
        label = self._free(name)
        if array.dtype.kind == "U":
            texts = [str(text).encode() for text in array.ravel()]
            self.tensors[f"{label}.bytes"] = np.frombuffer(b"".join(texts) or b"\0", dtype=np.uint8)
            ends = np.cumsum([len(text) for text in texts], dtype=np.int64)
            self.tensors[f"{label}.ends"] = ends.reshape(array.shape)
        elif array.dtype.kind in "fiu":
            kind = np.int64 if array.dtype.kind in "iu" else np.float32 if single else np.float64
            self.tensors[label] = np.ascontiguousarray(array, dtype=kind)
        else:
            raise InvalidInput(f"a mechanism file cannot hold an array of {array.dtype}.")
        self._seen[id(array)] = (array, label)
        return label

    def narrow(self, array: NDArray[Any], name: str) -> str:
        """Store numbers of at least 0 in the narrowest unsigned type that holds them, and return the name."""
        label = self._free(name)
        self.tensors[label] = np.ascontiguousarray(array, dtype=narrowest(int(array.max(initial=0))))
        return label

    def _free(self, name: str) -> str:
        """Return the name, or a longer one where it is taken."""
        free = name not in self.tensors and f"{name}.bytes" not in self.tensors
        return name if free else f"{name}.{len(self.tensors)}"


def narrowest(largest: int) -> np.dtype[Any]:
    """Return the narrowest unsigned type that holds whole numbers up to `largest`."""
    kinds = (np.uint8, np.uint16, np.uint32, np.uint64)
    return np.dtype(next(kind for kind in kinds if largest <= np.iinfo(kind).max))


class TensorReader:
    """Returns arrays by name, and knows which were read."""

    def __init__(self, tensors: Tensors, budget: LoadBudget) -> None:
        self._tensors, self.budget = tensors, budget
        self._used: set[str] = set()
        self._texts: dict[str, NDArray[Any]] = {}

    def array(self, name: object, kinds: str, where: str, sides: int = 0) -> NDArray[Any]:
        """Return an array of one of some kinds; the same name gives the same array.

        "f" are doubles, "s" singles, "i" and "u" whole numbers with and without a sign, "U" text.
        """
        if not isinstance(name, str):
            raise CorruptFile(f"{where} is not the name of a tensor")
        if "U" in kinds and f"{name}.bytes" in self._tensors:
            return self._text(name, where)
        if name not in self._tensors:
            raise CorruptFile(f"{where} names a tensor that is not there")
        self._used.add(name)
        array = self._tensors[name]
        kind = "s" if array.dtype == np.float32 else array.dtype.kind
        if kind not in kinds or (sides and array.ndim != sides):
            raise CorruptFile(f"{where} is not a tensor of the right type and shape")
        return array

    def refuse_leftovers(self) -> None:
        """Refuse tensors that nothing refers to."""
        left = sorted(set(self._tensors) - self._used)
        if left:
            raise CorruptFile(f"it holds the tensor {left[0]!r} that nothing refers to")

    def _text(self, name: str, where: str) -> NDArray[Any]:
        if name not in self._texts:
            letters, ends = (self.array(f"{name}.{part}", "iu", where) for part in ("bytes", "ends"))
            stops = ends.ravel()
            if letters.ndim != 1 or letters.dtype != np.uint8 or ends.dtype != np.int64 or stops.size == 0:
                raise CorruptFile(f"{where} is not a text")
            lengths = np.diff(stops, prepend=0)
            full = stops[-1] == letters.size or (stops[-1] == 0 and letters.size == 1)  # a tensor is never empty
            if stops.min() < 0 or lengths.min() < 0 or not full:
                raise CorruptFile(f"{where} is not a text: the ends of its words are out of order")
            longest = int(lengths.max())
            self.budget.spend(Effort(values=stops.size * (longest / 2 + 16)), "words")  # four bytes a letter
            whole = letters.tobytes()
            try:
                words = [whole[stop - length : stop].decode() for stop, length in zip(stops, lengths, strict=True)]
            except UnicodeDecodeError as error:
                raise CorruptFile(f"{where} is not a text in UTF-8") from error
            array = np.array(words, dtype=np.str_).reshape(ends.shape)
            array.flags.writeable = False
            self._texts[name] = array
        return self._texts[name]


def check_range(kind: Array, array: NDArray[Any], where: str) -> NDArray[Any]:
    """Return an array unchanged if its field allows its numbers; refuse it otherwise."""
    least, most = _range_of(kind)
    if array.dtype.kind != "U" and array.size and not (least <= array.min() and array.max() <= most):
        raise CorruptFile(f"{where} holds a number that is not possible there")
    return array


def _range_of(kind: Number | Array) -> tuple[float, float]:
    return -math.inf if kind.least is None else kind.least, math.inf if kind.most is None else kind.most
