"""Exact noise in JavaScript: equal words give the reports of Python, to the last bit, whichever path decides."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import browsers
from metricdp.artifacts import save
from metricdp.mechanisms.noise.hats import Profile
from published import NOISE, noise_of

RNG = np.random.default_rng(7)


@pytest.fixture(scope="module")
def node() -> Iterator[browsers.Engine]:
    if browsers.node() is None:
        pytest.skip("node is not installed (Debian: apt install nodejs)")
    with browsers.running("node") as running:
        yield running


@pytest.mark.parametrize("law", NOISE, ids=lambda law: law["name"])
def test_shared_vectors_give_their_reports(law: dict[str, Any], node: browsers.Engine, tmp_path: Path) -> None:
    path = save(noise_of(law), tmp_path / "noise.mdp")
    drawn = node.ask("uniforms", file=node.offer(path), draws=law["draws"])
    assert drawn == [draw["report"] for draw in law["draws"]]


@pytest.mark.parametrize("law", NOISE, ids=lambda law: law["name"])
def test_random_words_give_the_reports_of_python(law: dict[str, Any], node: browsers.Engine, tmp_path: Path) -> None:
    from metricdp.mechanisms.noise.laws import drawn
    from metricdp.randomness import RowWords

    made = noise_of(law)
    stream, count = RowWords(RNG.bytes(32), made.law.width), 40
    attempts = 3 if law["metric"] in ("angular", "fisher") else 24  # of eight proposals, or of one
    rows = RNG.uniform(-90, 90, (count, law["dimension"]))
    draws = [
        {
            "secret": row.tolist(),
            "words": [
                [[f"{stream.digits(at)(attempt, k, 1):016x}"] for k in range(stream.width)]
                for attempt in range(attempts)
            ],
        }
        for at, row in enumerate(rows)
    ]
    theirs = node.ask("uniforms", file=node.offer(save(made, tmp_path / "noise.mdp")), draws=draws)
    assert theirs == made.lattice.values(drawn(rows, made.law, stream)).tolist()


def test_hats_of_the_sphere_are_the_same_doubles() -> None:
    """A proposal compares with numbers of the hat: one that differed in its last bit would draw another report."""
    rates = np.exp(RNG.uniform(-8.0, 14.0, 120)).tolist()
    asked = [("angle", int(n), rate, int(n) % 2 == 0) for n, rate in zip(RNG.integers(2, 800, 120), rates, strict=True)]
    asked += [("height", int(n), rate, False) for n, rate in zip(RNG.integers(3, 800, 120), rates, strict=True)]
    asked += [(form, 5, rate, False) for form in ("angle", "height") for rate in (1e-100, 1.0, 1e16, 1e100)]
    place = (browsers.PROJECT / "js" / "src" / "hats.js").as_uri()
    script = f"""const {{ Profile }} = await import("{place}");
        const numbers = ({{ start, stop, rise, fall, top, area }}) => [start, stop, rise, fall, top, area];
        answer = given.asked.map((law) => numbers(new Profile(...law).hat));"""
    assert browsers.in_node(script, asked=asked) == [list(Profile(*law).hat.numbers()) for law in asked]
