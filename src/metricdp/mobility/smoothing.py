"""What the consumer of reports may do for free: combine the reports of a trace with how places follow each other."""

from __future__ import annotations

from typing import Literal

import numpy as np
from numpy.typing import ArrayLike

from metricdp.arrays import Floats, Integers, as_matrix
from metricdp.mobility.hidden import HiddenWalk
from metricdp.spaces import Augmented

Use = Literal["past", "all"]


def smooth(hidden: HiddenWalk, reports: ArrayLike, *, loss: ArrayLike | None = None, use: Use = "all") -> Integers:
    """Return the best guess of every step: argmin_t sum_x Pr[x | reports] loss(x, t).

    The posterior is that of the reports so far ("past", the filter) or of the whole trace ("all", forward-backward).
    It uses reports and public knowledge only, so it is post-processing: the promise stays as it is. It is for whoever
    receives the reports; the one who sends them gains nothing by doing it first.
    """
    inputs = hidden.mechanism.inputs
    costs = inputs.distances if loss is None else as_matrix(loss, "loss", (len(inputs), None))
    posterior = hidden.smoothed(reports) if use == "all" else hidden.filtered(reports)
    return np.asarray((posterior @ costs).argmin(axis=1), dtype=np.int64)


def augmented_steps(augmented: Augmented, following: ArrayLike) -> Floats:
    """Return the transitions between augmented secrets: (x, v_1, ..) goes to (x', x, v_1, ..) with Pr[x' | x, v].

    `following[s]` is the law of the next place after the augmented secret s. Next places that would leave the domain
    are left out and the rest scaled up; a secret with none stays.
    """
    laws = as_matrix(following, "following", (len(augmented), len(augmented.base)))
    matrix = np.zeros((len(augmented), len(augmented)))
    known = {tuple(row): code for code, row in enumerate(augmented.histories.tolist())}
    for code, row in enumerate(augmented.histories.tolist()):
        for place in np.flatnonzero(laws[code] > 0).tolist():
            target = known.get((place, *row[:-1]))
            if target is not None:
                matrix[code, target] += laws[code, place]
        if matrix[code].sum() <= 0:
            matrix[code, code] = 1.0
    return np.asarray(matrix / matrix.sum(axis=1, keepdims=True))
