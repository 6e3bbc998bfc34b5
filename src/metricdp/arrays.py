"""Array aliases and the only functions that turn what users pass into checked arrays."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray

from metricdp.errors import InvalidInput

Floats: TypeAlias = NDArray[np.float64]
Integers: TypeAlias = NDArray[np.int64]
Words: TypeAlias = NDArray[np.uint64]
Booleans: TypeAlias = NDArray[np.bool_]
Points: TypeAlias = NDArray[Any]

SUM_TOLERANCE = 1e-9


def as_floats(value: ArrayLike, name: str) -> Floats:
    """Return finite float64 numbers of any shape."""
    array = _convert(value, np.float64)
    if array is None:
        raise InvalidInput(f"`{name}` must be numbers, got {_describe_kind(value)}.")
    bad = np.argwhere(~np.isfinite(array))
    if len(bad):  # not bad.size, which is 0 for a single number
        where = tuple(int(i) for i in bad[0])
        raise InvalidInput(
            f"`{name}` must be finite numbers, got {array[tuple(bad[0])]} at position {where} "
            f"({len(bad)} such value{'s' if len(bad) > 1 else ''}). Remove or repair them first."
        )
    return array


def as_matrix(value: ArrayLike, name: str, shape: tuple[int | None, int | None] = (None, None)) -> Floats:
    """Return a finite float64 matrix, of the given shape where it is given."""
    array = as_floats(value, name)
    wanted = " x ".join("any" if side is None else str(side) for side in shape)
    fits = array.ndim == 2 and all(s is None or s == a for s, a in zip(shape, array.shape, strict=True))
    if not fits:
        raise InvalidInput(f"`{name}` must be a matrix of shape {wanted}, got shape {array.shape}.")
    return array


def as_points(value: Any, name: str = "points") -> Points:
    """Return points as an array whose last axis holds the coordinates; text becomes one coordinate a point."""
    array = _convert(value)
    if array is None:
        raise InvalidInput(f"`{name}` must have rows of equal length, got {_describe_kind(value)}.")
    if array.dtype.kind in "US" or (array.dtype.kind == "O" and all(isinstance(item, str) for item in array.ravel())):
        array = array.astype(np.str_)
    else:
        array = as_floats(value, name)
    if array.ndim == 1:
        array = array[:, None]
    if array.ndim < 2 or array.shape[0] == 0 or array.shape[-1] == 0:
        raise InvalidInput(
            f"`{name}` must hold at least one point, one row a point and one column a coordinate, "
            f"got shape {np.shape(value)}."
        )
    return array


def as_probabilities(value: ArrayLike, size: int, name: str = "prior") -> Floats:
    """Return `size` non-negative numbers that sum to one."""
    array = as_floats(value, name)
    total = float(array.sum())
    if array.shape != (size,) or np.any(array < 0) or abs(total - 1.0) > SUM_TOLERANCE * max(1, size**0.5):
        raise InvalidInput(
            f"`{name}` must be {size} non-negative numbers summing to 1, got shape {array.shape} "
            f"summing to {total:.12g}"
            + (f" with minimum {array.min():.3g}" if array.size and array.min() < 0 else "")
            + ". Divide it by its sum if it holds counts."
        )
    return array / total


def as_whole(value: Any, name: str, least: int = 1) -> int:
    """Return a whole number of at least `least`; 2.0 is one, and True is none."""
    number = isinstance(value, int | float | np.integer | np.floating) and not isinstance(value, bool)
    if not number or not np.isfinite(value) or value != int(value) or value < least:
        raise InvalidInput(f"`{name}` must be a whole number of at least {least}, got {value!r}.")
    return int(value)


def as_positive(value: Any, name: str) -> float:
    """Return a finite number above zero."""
    try:
        number = float(value)
    except (TypeError, ValueError) as error:
        raise InvalidInput(f"`{name}` must be a positive number, got {_shorten(value)}.") from error
    if not (np.isfinite(number) and number > 0):
        raise InvalidInput(f"`{name}` must be a positive finite number, got {number:g}.")
    return number


def as_choice(value: Any, name: str, choices: Sequence[str]) -> str:
    """Return one of some words."""
    if isinstance(value, str) and value in choices:
        return value
    *others, last = map(repr, choices)
    raise InvalidInput(f"`{name}` must be {', '.join(others)} or {last}, got {value!r}.")


def as_codes(value: ArrayLike, size: int, name: str = "secrets") -> Integers:
    """Return indices in [0, size)."""
    array = _convert(value)
    if array is None or array.dtype.kind not in "iuf":
        raise InvalidInput(f"`{name}` must be whole numbers from 0 to {size - 1}, got {_describe_kind(value)}.")
    legal = are_codes(array, size)
    if not legal.all():
        outside = np.flatnonzero(~legal)
        what = "codes" if np.array_equal(array, np.floor(array)) else "whole numbers"
        raise InvalidInput(
            f"`{name}` must be {what} from 0 to {size - 1}; at position {outside[0]} there is none"
            f"{f' ({outside.size} such positions)' if outside.size > 1 else ''}."
        )
    return array.astype(np.int64)


def are_codes(array: NDArray[Any], size: int) -> Booleans:
    """Return which numbers are whole and in [0, size)."""
    inside = (array >= 0) & (array < size)  # NaN is not
    return np.asarray(inside if array.dtype.kind in "iu" else inside & (array == np.floor(array)))


def as_stochastic(value: ArrayLike, name: str = "matrix") -> Floats:
    """Return a matrix of non-negative numbers whose rows sum to one (to rounding)."""
    array = as_matrix(value, name)
    if array.size == 0:
        raise InvalidInput(f"`{name}` must have at least one row and one column, got shape {array.shape}.")
    negative = np.argwhere(array < 0)
    if negative.size:
        i, k = (int(x) for x in negative[0])
        raise InvalidInput(f"`{name}` must hold probabilities, got {array[i, k]:.3g} in row {i}, column {k}.")
    sums = array.sum(axis=1)
    worst = int(np.argmax(np.abs(sums - 1.0)))
    if abs(sums[worst] - 1.0) > 1e-3:
        raise InvalidInput(
            f"`{name}` must have rows that sum to 1, got {sums[worst]:.9g} in row {worst}. "
            "One row belongs to one secret: transpose it if the columns sum to 1."
        )
    return array


def frozen(array: NDArray[Any]) -> NDArray[Any]:
    """Return the array marked read-only (a copy where the caller could still write to it)."""
    if array.flags.writeable:
        array = array.copy()
        array.flags.writeable = False
    return array


def _convert(value: Any, kind: Any = None) -> NDArray[Any] | None:
    """Return an array, or None: what numpy says of a value it cannot convert shows the value."""
    plain = _to_numpy(value)
    try:
        return np.asarray(plain, dtype=kind)
    except (TypeError, ValueError, OverflowError):
        return None


def _to_numpy(value: Any) -> Any:
    """Return a tensor of PyTorch as numpy can read it, or say what has to be done to it first; anything else as it is.

    A report has no gradient, so a tensor with one is refused. bfloat16 becomes float32, which holds each of its values.
    A list may hold a tensor for every row.
    """
    if isinstance(value, list | tuple) and value and type(value[0]).__module__.partition(".")[0] == "torch":
        return [np.asarray(_to_numpy(row)) for row in value]
    if not (type(value).__module__.partition(".")[0] == "torch" and hasattr(value, "requires_grad")):
        return value
    if value.requires_grad:
        raise InvalidInput("the tensor requires gradients, and reports have none: pass `tensor.detach()`.")
    if value.device.type != "cpu":
        raise InvalidInput(f"the tensor is on the device {value.device.type!r}: pass `tensor.cpu()`.")
    return value.float() if str(value.dtype) == "torch.bfloat16" else value


def _describe_kind(value: object) -> str:
    """Say what came without showing it: arrays hold secrets."""
    if isinstance(value, np.ndarray):
        return f"an array of {value.dtype} of shape {value.shape}"
    length = f" of {len(value)}" if isinstance(value, list | tuple) else ""
    return f"a {type(value).__name__}{length}"


def _shorten(value: object) -> str:
    text = repr(value)
    return text if len(text) <= 60 else text[:57] + "..."


def row_slices(count: int, width: int, most: int) -> Iterator[slice]:
    """Yield slices of `count` rows; the rows of a slice, of this width, hold at most that many values together."""
    step = max(1, most // width)
    return (slice(start, min(start + step, count)) for start in range(0, count, step))


def set_fields(record: object, **values: Any) -> None:
    """Set fields of a frozen record while it is made, to what they were checked and converted to.

    A frozen dataclass has no other way to store what its constructor made of an argument; nothing else may use this.
    """
    for name, value in values.items():
        object.__setattr__(record, name, value)
