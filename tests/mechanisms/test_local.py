"""Mechanisms of whole cities: sparse rows plus one background law."""

import numpy as np
import pytest

from metricdp.errors import InvalidInput
from metricdp.mechanisms import Certificate, Guarantee, LocalMechanism
from metricdp.metrics import Lp
from metricdp.spaces import FiniteSpace


def local(starts, columns, values, background):
    space = FiniteSpace(np.arange(3.0), Lp(1))
    promise, found = Guarantee(1.0, space.metric), Certificate(loss=1.0, lower_bound=0.0, method="by hand", epsilon=1.0)
    return LocalMechanism(space, space, starts, columns, values, background, promise, found)


def test_the_dense_table_has_the_background_where_nothing_is_stored():
    mechanism = local([0, 2, 2, 3], [0, 2, 1], [3.0, 1.0, 6.0], [1.0, 1.0, 2.0])
    weights = np.array([[3.0, 1.0, 1.0], [1.0, 1.0, 2.0], [1.0, 6.0, 2.0]])
    assert np.allclose(mechanism.totals, weights.sum(axis=1))
    assert np.allclose(mechanism.matrix, weights / weights.sum(axis=1, keepdims=True))


@pytest.mark.parametrize(
    ("starts", "columns", "values", "background"),
    [
        ([0, 2, 2], [0, 2], [1, 1], [1, 1, 1]),
        ([0, 2, 2, 2], [2, 0], [1, 1], [1, 1, 1]),
        ([0, 1, 1, 2], [0, 3], [1, 1], [1, 1, 1]),
        ([0, 1, 1, 2], [0, 2], [1, np.inf], [1, 1, 1]),
        ([0, 1, 1, 2], [0, 2], [1, -1], [1, 1, 1]),
        ([0, 1, 1, 2], [0, 2], [1, 1], [0, 0, 0]),
        ([0, 1, 1, 2], [0, 2], [1, 1], [1, 1]),
    ],
)
def test_rows_that_are_no_rows_are_refused(starts, columns, values, background):
    with pytest.raises(InvalidInput):
        local(starts, columns, values, background)
