"""Mechanisms refuse numbers that cannot be theirs, as a forged file would bring them."""

from dataclasses import replace

import numpy as np
import pytest

import metricdp as mdp
from forging import rewritten
from metricdp.errors import CorruptFile, InvalidInput
from metricdp.mechanisms import Lattice

BAD_NUMBERS = (0.0, -1.0, np.nan, np.inf, "one", None, [1.0, 2.0])


def noise():
    return mdp.laplace(mdp.Lp(2), 1.0)


def earth():
    return mdp.laplace(mdp.Haversine(), 1.0)


def words():
    return mdp.madlib(mdp.FiniteSpace([[0.0, 0.0], [1.0, 0.0], [0.0, 2.0]], mdp.Lp(2)), 2.0)


def box():
    outputs = mdp.FiniteSpace([[0.0], [1.0]], mdp.Lp(2))
    return mdp.interpolated(mdp.Box([0.0], [1.0], mdp.Lp(2)), outputs, 1.0, anchors=2)


def streets():
    space = mdp.FiniteSpace(np.arange(3.0)[:, None], mdp.ShortestPath([[0, 1], [1, 2]], [0.5, 1.5]))
    return mdp.interpolated(space, space, 1.0, anchors=2)


@pytest.mark.parametrize("made", [noise, earth, words])
@pytest.mark.parametrize("value", BAD_NUMBERS)
def test_noise_needs_a_positive_finite_epsilon(made, value):
    with pytest.raises(InvalidInput, match="epsilon"):
        replace(made(), epsilon=value)


@pytest.mark.parametrize("value", BAD_NUMBERS)
def test_a_lattice_needs_a_positive_finite_pitch(value):
    with pytest.raises(InvalidInput, match="pitch"):
        Lattice(value)


def test_noise_belongs_to_its_metric():
    for one, other in ((noise(), earth()), (earth(), noise())):
        with pytest.raises(InvalidInput, match="inputs"):
            replace(one, inputs=other.inputs)
    with pytest.raises(InvalidInput, match="dimensions"):
        replace(
            noise(), inputs=mdp.laplace(mdp.Mahalanobis(np.eye(3)), 1.0).inputs.__class__(mdp.Mahalanobis(np.eye(3)), 2)
        )
    with pytest.raises(InvalidInput, match="coordinates"):
        replace(words(), outputs=mdp.FiniteSpace([[0.0], [1.0]], mdp.Lp(2)))
    with pytest.raises(InvalidInput, match="Lp or Mahalanobis"):
        replace(words(), inputs=mdp.FiniteSpace([[0.0, 0.0], [1.0, 1.0]], mdp.Hamming()))


@pytest.mark.parametrize("value", [1e308, np.inf, np.nan, -1.0, 5e-324, 1e-300])
def test_ratios_that_no_promise_needs_are_refused(value):
    made = box()
    with pytest.raises(InvalidInput, match="ratios"):
        replace(made, ratios=tuple(np.full(len(r), value) for r in made.ratios))
    made = streets()
    with pytest.raises(InvalidInput, match="ratios"):
        replace(made, ratios=np.full(len(made.ratios), value))


def test_shapes_that_do_not_fit_are_refused():
    made = box()
    for change in ({"ratios": ()}, {"ratios": (made.ratios[0][:-1],)}, {"axes": (made.axes[0][:, None],)}, {"axes": ()},
                   {"matrix": made.matrix[:-1]}, {"rule": "other"}, {"outputs": made.inputs}):  # fmt: skip
        with pytest.raises(InvalidInput):
            replace(made, **change)
    made = streets()
    for counts in ([1.5, 2.0], [0, 2], [2], [2**62, 2**62], [-1, 2]):
        with pytest.raises(InvalidInput, match="counts"):
            replace(made, counts=np.array(counts))
    with pytest.raises(InvalidInput, match="matrix"):
        replace(made, matrix=made.matrix[:-1])
    with pytest.raises(InvalidInput, match="Streets"):
        replace(made, inputs=box().inputs)


def test_a_box_of_so_many_axes_that_a_proof_never_ends_is_refused():
    cube = mdp.Box([0.0] * 9, [1.0] * 9, mdp.Lp(2))
    with pytest.raises(InvalidInput, match="9"):
        mdp.interpolated(cube, mdp.FiniteSpace(np.eye(9), mdp.Lp(2)), 1.0, anchors=(1,) * 9)


def two_places():
    return mdp.exponential(mdp.FiniteSpace([[41.0, -8.0], [41.1, -8.0]], mdp.Haversine()), 0.1)


def in_unit(unit):
    def change(manifest, tensors):
        manifest["metrics"][0]["parameters"]["unit"] = manifest["units"] = manifest["guarantee"]["unit"] = unit

    return change


@pytest.mark.parametrize(
    ("made", "change", "match"),
    [
        (noise, lambda manifest, tensors: manifest["body"].update(pitch=1e-14), "finer than noise"),
        (earth, lambda manifest, tensors: manifest["body"].update(pitch=1e-12), "finer than noise"),
        (earth, in_unit("leagues"), "unit"),
        (two_places, in_unit("mi"), "violated"),
    ],
)
def test_a_forged_file_meets_the_same_refusals(tmp_path, made, change, match):
    mdp.save(made(), tmp_path / "forged.mdp")
    rewritten(tmp_path / "forged.mdp", change)
    with pytest.raises(CorruptFile, match=match):
        mdp.load(tmp_path / "forged.mdp")
