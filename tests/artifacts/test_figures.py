"""Loss, bound and unit of a loaded file: computed again where that is possible, else said to be the file's word."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import metricdp as mdp
from brute import euclid, grid
from forging import Change, forged
from instances import OTHERS, interpolated, place_and_hour, some_matrix, streets
from metricdp.artifacts import dumps, loads
from metricdp.errors import CorruptFile


def certificate(**values: Any) -> Change:
    return lambda manifest, tensors: manifest["certificate"].update(values)


def test_the_loss_of_a_table_is_computed_again() -> None:
    made = some_matrix()
    distribution = made.matrix / made.matrix.sum(axis=1, keepdims=True)
    assert made.certificate.loss == pytest.approx(float((distribution * euclid(grid(5))).sum() / 25), rel=1e-9)
    back = loads(dumps(made)).certificate
    assert back.stated == ()  # its lower bound is 0, which needs no proof
    assert back == made.certificate
    assert loads(dumps(made), verify=False).certificate.stated == ("loss", "lower_bound")


@pytest.mark.parametrize("loss", [0.001, 1.01, 1e6])
def test_a_loss_that_the_file_cannot_prove_is_only_stated(loss: float) -> None:
    made = some_matrix()
    lying = forged(dumps(made), certificate(loss=made.certificate.loss * loss, lower_bound=0.0))
    assert loads(lying).certificate.stated == ("loss", "lower_bound")
    prior = np.arange(1.0, 26) ** 2 / 5525
    honest = mdp.exponential(made.inputs, 1.0, prior=prior)  # the file does not hold the prior
    assert loads(dumps(honest)).certificate.stated == ("loss", "lower_bound")


def test_a_bound_is_the_files_word() -> None:
    line = mdp.FiniteSpace(np.arange(4.0)[:, None], mdp.Lp(2))
    made = mdp.optimal(mdp.Problem(line, 1.0), gap=0.01)
    assert made.certificate.lower_bound > 0
    assert made.certificate.stated == ()
    back = loads(dumps(made)).certificate
    assert back.stated == ("lower_bound",)
    assert (
        "no mechanism with this guarantee that gives these reports can go below"
        in mdp.messages.certificate_sentence(back, "")
    )
    assert "(stated by the file, not verified)" in mdp.messages.certificate_sentence(back, "")
    assert "(stated by the file, not verified)" not in mdp.messages.certificate_sentence(made.certificate, "")
    worst = mdp.optimal(mdp.Problem(line, 1.0), objective="worst")
    assert loads(dumps(worst)).certificate.stated == ("lower_bound",)


@pytest.mark.parametrize(
    ("build", "change"),
    [
        (OTHERS["sphere"], certificate(loss=1e-9, lower_bound=0.0)),
        (OTHERS["line"], certificate(loss=1e9)),
        (OTHERS["ellipse"], certificate(loss=0.5, lower_bound=0.0)),
        (place_and_hour, certificate(loss=1e-3, lower_bound=0.0)),
        (place_and_hour, lambda m, t: m["certificate"].update(lower_bound=m["certificate"]["loss"])),
        (some_matrix, certificate(lower_bound=1e6)),
        (some_matrix, certificate(loss={"float": "nan"})),
        (some_matrix, certificate(loss={"float": "inf"})),
        (some_matrix, lambda m, t: m.update(units="mi")),
        (OTHERS["sphere"], lambda m, t: m.update(units="mi")),
        (OTHERS["sphere"], lambda m, t: m["guarantee"].update(unit="mi")),
    ],
)
def test_figures_that_cannot_be_true_are_refused(build: Callable[[], Any], change: Change) -> None:
    honest = dumps(build())
    loads(honest)
    with pytest.raises(CorruptFile):
        loads(forged(honest, change))


def test_noise_and_products_are_verified_by_their_formulas() -> None:
    for name, build in OTHERS.items():
        assert "loss" not in loads(dumps(build())).certificate.stated, name
    assert "loss" not in loads(dumps(place_and_hour())).certificate.stated
    for build in (interpolated, streets):
        assert loads(dumps(build())).certificate.stated == ("loss", "lower_bound")
