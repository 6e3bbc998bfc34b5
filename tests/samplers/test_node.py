"""JavaScript modules as samplers, in a Node that really runs."""

from __future__ import annotations

import shutil
from pathlib import Path

import numpy as np
import pytest

import metricdp as mdp
from metricdp.artifacts import save
from metricdp.errors import InvalidInput, SamplerFailure
from metricdp.samplers import NodeSampler

MODULE = Path(__file__).parents[2] / "js" / "dist" / "metricdp.js"
pytestmark = pytest.mark.skipif(shutil.which("node") is None, reason="needs Node")


def module(tmp_path: Path, text: str) -> Path:
    place = tmp_path / "sampler.mjs"
    place.write_text(text)
    return place


@pytest.mark.parametrize(
    ("returned", "row"),
    [
        ("x", [0.5, 2]),
        ("({ lat: x[0], lon: x[1] })", [0.5, 2]),
        ("({ point: x })", [0.5, 2]),
        ("({ coords: { latitude: x[0], longitude: 7 } })", [0.5, 7]),
        ("new Float64Array(x)", [0.5, 2]),
        ("Promise.resolve(x[1])", [2]),
        ("(console.log('noise'), x)", [0.5, 2]),
    ],
)
def test_any_module_with_a_function_draws(tmp_path: Path, returned: str, row: list[float]) -> None:
    with NodeSampler(module(tmp_path, f"export const sample = (x) => {returned};")) as draw:
        assert draw((0.5, 2.0), 3).tolist() == [row] * 3


def test_numbers_words_defaults_and_names_of_ones_own(tmp_path: Path) -> None:
    with NodeSampler(module(tmp_path, "export default (x) => x + x;")) as draw:
        assert draw(1.5, 1200).tolist() == [[3.0]] * 1200
        assert draw("so", 2).tolist() == ["soso"] * 2
    with NodeSampler(
        module(tmp_path, "export const blur = (x) => -x; export const sample = 1;"), function="blur"
    ) as draw:
        assert draw(1.5, 1).tolist() == [[-1.5]]
    with NodeSampler(module(tmp_path, "export const sample = (x) => 0 / 0;")) as draw:
        assert np.isnan(draw(1.5, 1)).all()  # for the auditor to refuse


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("export const other = 1;", "no function `sample` and no default function; it exports other"),
        ("export function sample(x) { throw new Error(`bad ${x}`) }", "bad <secret>"),
        ("export function sample(x) { }", "returned nothing"),
        ("export function sample(x) { process.exit(3) }", "exit code 3"),
        ("export const sample = (", "Unexpected end of input"),
        ("export const sample = () => ({ north: 1 });", "no report"),
        ("export const sample = (x) => { process.stdout.write('hello\\n'); return x }", "output by itself"),
    ],
)
def test_what_goes_wrong_in_a_module_is_a_sentence(tmp_path: Path, text: str, words: str) -> None:
    with NodeSampler(module(tmp_path, text)) as draw, pytest.raises(SamplerFailure) as caught:
        draw((0.625, 2.25), 2)
    assert words in str(caught.value)
    assert "0.625" not in str(caught.value)


def test_our_own_module_draws_what_the_file_says(tmp_path: Path) -> None:
    points = np.array([[0.0, 0.0], [1.0, 0.0], [0.0, 2.0]])
    mechanism = mdp.exponential(mdp.FiniteSpace(points, mdp.Lp(2)), 1.0)
    save(mechanism, tmp_path / "cells.mdp")
    with NodeSampler(MODULE, mechanism=tmp_path / "cells.mdp") as draw:
        drawn = draw(points[1], 6000)
        with pytest.raises(SamplerFailure):
            draw((5.0, 5.0), 1)  # no secret of the file
    counts = np.array([(drawn == point).all(axis=1).sum() for point in points])
    expected = 6000 * mechanism.matrix[1] / mechanism.matrix[1].sum()
    assert ((counts - expected) ** 2 / expected).sum() < 27.6  # chi-square with 2 degrees of freedom, one in 10^6


def test_a_module_that_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(InvalidInput, match="does not exist"):
        NodeSampler(tmp_path / "nothing.mjs")
