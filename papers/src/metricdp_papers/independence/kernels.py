"""Kernel tests of conditional independence from causal-learn, as a second opinion."""

from __future__ import annotations

import importlib
import itertools

import numpy as np
from numpy.typing import ArrayLike

from metricdp.arrays import as_floats
from metricdp.errors import InvalidInput, MissingExtra


def kernel_independence(x: ArrayLike, y: ArrayLike, given: ArrayLike | None = None, *, method: str = "rcit") -> float:
    """Return the p-value of a kernel test on coordinates ("kci" or "rcit" of causal-learn, the extra `audit`).

    "kci" takes about a second for 500 samples and grows with their cube; "rcit" works with random features and is
    random itself: two calls differ a little. Both are asymptotic; see `analytic_independence` for one of our own.
    """
    if method not in ("kci", "rcit"):
        raise InvalidInput(f"`method` must be 'kci' or 'rcit', got {method!r}.")
    parts = [as_floats(part, name) for part, name in ((x, "x"), (y, "y"), (given, "given")) if part is not None]
    if len({len(part) for part in parts}) != 1 or len(parts[0]) < 20:
        lengths = ", ".join(str(len(part)) for part in parts)
        raise InvalidInput(f"`x`, `y` and `given` must be of one length, at least 20, got {lengths}.")
    try:
        cit = importlib.import_module("causallearn.utils.cit")
    except ImportError as error:
        raise MissingExtra(
            "this needs the package `causallearn`: install it with `pip install 'metricdp-papers[audit]'`"
        ) from error
    columns = [part.reshape(len(part), -1) for part in parts]
    edges = np.cumsum([0] + [part.shape[1] for part in columns]).tolist()
    groups = [list(range(a, b)) for a, b in itertools.pairwise(edges)]
    test = cit.CIT(np.column_stack(columns), method)
    return float(test(groups[0], groups[1], groups[2] if given is not None else None))
