"""One declaration per thing: a metric and a mechanism from outside the package are built, saved, loaded and judged."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import metricdp as mdp
from brute import leakage
from forging import forged
from metricdp.artifacts import dumps, loads
from metricdp.auditing import AuditReport, Claim, verify_claim
from metricdp.errors import CorruptFile, InvalidInput
from metricdp.mechanisms import MECHANISMS
from metricdp.metrics import METRICS, parse_metric
from metricdp.registry import Number, Part, Registry, Schema, Text
from metricdp.spaces import SPACES

PAGE = (Path(__file__).parents[1] / "docs" / "format.md").read_text(encoding="utf-8")


@dataclass(frozen=True)
class Flat:
    """The distance, but never above a height: what lies far away is all equally far."""

    height: float = 1.0
    unit: str = ""

    def __call__(self, a: Any, b: Any, /) -> Any:
        return np.minimum(np.abs(np.asarray(a, float) - np.asarray(b, float)).sum(axis=-1), self.height)

    def check(self, points: Any, /) -> None:
        if points.dtype.kind == "U":
            raise InvalidInput("Flat measures numbers.")


@pytest.fixture
def flat() -> Iterator[None]:
    fields = {"height": Number(above=0), "unit": Text()}
    METRICS.declare(Schema(Flat, "Flat", "the distance up to a height", fields, words={"flat": Flat}))
    yield
    METRICS._entries.pop("Flat")


@pytest.mark.usefixtures("flat")
def test_a_metric_from_outside_is_built_saved_loaded_judged_and_typed() -> None:
    space = mdp.FiniteSpace(np.arange(6.0)[:, None], Flat(2.5))
    made = mdp.exponential(space, 0.8)
    back: Any = loads(dumps(made))
    assert back.inputs.metric == Flat(2.5)
    assert mdp.audit(back).verdict == "holds"
    apart = [[min(abs(i - j), 2.5) for j in range(6)] for i in range(6)]
    assert leakage(back.matrix, np.array(apart))[0] <= 0.8
    assert np.array_equal(
        back.sample(np.arange(6), rng=np.random.default_rng(1)), made.sample(np.arange(6), rng=np.random.default_rng(1))
    )
    assert parse_metric("flat") == Flat()
    assert dumps(back) == dumps(made)


def test_a_file_with_a_metric_nobody_declared_says_where_to_look(flat: None) -> None:
    data = dumps(mdp.exponential(mdp.FiniteSpace(np.arange(6.0)[:, None], Flat(2.5)), 0.8))
    entry = METRICS._entries.pop("Flat")
    with pytest.raises(
        CorruptFile, match=r"'Flat', which this metricdp does not know.*import the package that declares"
    ):
        loads(data)
    METRICS._entries["Flat"] = entry


@dataclass(frozen=True, eq=False)
class Response:
    """Randomised response: the truth with one probability, every other answer with the rest, shared equally."""

    inputs: mdp.FiniteSpace
    truth: float
    guarantee: mdp.Guarantee
    certificate: mdp.Certificate

    @property
    def outputs(self) -> mdp.FiniteSpace:
        return self.inputs

    def sample(self, secrets: Any, /, *, rng: Any = None) -> Any:
        generator = np.random.default_rng() if rng is None else rng
        codes = np.asarray(secrets)
        other = (codes + generator.integers(1, len(self.inputs), codes.shape)) % len(self.inputs)
        return np.where(generator.random(codes.shape) < self.truth, codes, other)

    def log_density(self, secrets: Any, reports: Any, /) -> Any:
        other = (1 - self.truth) / (len(self.inputs) - 1)
        return np.log(np.where(np.asarray(secrets) == np.asarray(reports), self.truth, other))


def judge_response(mechanism: Response, claim: Claim) -> AuditReport:
    other = (1 - mechanism.truth) / (len(mechanism.inputs) - 1)
    least = min(
        abs(float(a - b)) for a in mechanism.inputs.points[:, 0] for b in mechanism.inputs.points[:, 0] if a != b
    )
    found = abs(math.log(mechanism.truth / other)) / least
    return AuditReport(claimed=claim.epsilon, epsilon=found, basis="theorem", method="two probabilities")


def test_a_mechanism_from_outside_is_saved_loaded_and_judged() -> None:
    space = mdp.FiniteSpace(np.arange(4.0)[:, None], mdp.Lp(2))
    promise = mdp.Guarantee(1.0, space.metric)
    made = Response(space, 0.4, promise, mdp.Certificate(loss=1.0, lower_bound=0.0, method="response", epsilon=1.0))
    with pytest.raises(InvalidInput, match="cannot hold the mechanism Response"):
        dumps(made)
    fields = {"inputs": Part("space", ("finite",)), "truth": Number(above=0)}
    MECHANISMS.declare(Schema(Response, "response", "the truth, or any other answer", fields))
    verify_claim.register(Response, judge_response)
    try:
        back: Any = loads(dumps(made))
        assert (back.truth, back.guarantee.epsilon) == (0.4, 1.0)
        assert mdp.audit(back).verdict == "holds"
        assert back.certificate.stated == ("loss", "lower_bound")
        lying = forged(dumps(made), lambda manifest, tensors: manifest["body"].update(truth=0.9))
        with pytest.raises(CorruptFile, match="does not keep the guarantee"):
            loads(lying)
        with pytest.raises(CorruptFile, match="truth of its body is not a number"):
            loads(forged(dumps(made), lambda manifest, tensors: manifest["body"].update(truth="1")))
    finally:
        MECHANISMS._entries.pop("response")


def test_a_name_a_class_or_a_word_is_declared_once() -> None:
    for declaration in (
        Schema(Flat, "Lp", "x"),
        Schema(mdp.Lp, "Other", "x"),
        Schema(Flat, "Flat", "x", words={"l2": Flat}),
        Schema(Flat, "Flat", ""),
    ):
        with pytest.raises(InvalidInput):
            METRICS.declare(declaration)
    assert METRICS.find("Flat") is None


def test_every_declaration_stands_on_the_page_of_the_format() -> None:
    for registry in (METRICS, SPACES, MECHANISMS):
        for entry in registry:
            assert f"`{entry.name}`" in PAGE or f'`"{entry.name}"`' in PAGE or f"**{entry.name}**" in PAGE, entry.name
            for name in entry.fields:
                assert f"`{name}`" in PAGE, (entry.name, name)


def test_declarations_are_plain_values_for_other_languages() -> None:
    for registry in (METRICS, SPACES, MECHANISMS):
        text = json.dumps(registry.table(), allow_nan=False)
        assert set(json.loads(text)) == set(registry.names)
    table = METRICS.table()
    assert MECHANISMS.table()["streets"]["fields"]["ratios"]["least"] == 0  # nothing is lost for being zero
    assert table["Lp"]["fields"]["p"] == {"type": "number", "least": 1, "infinite": True}
    assert table["StreetPath"]["fields"]["network"] == {"type": "part", "named": ("ShortestPath",), "of": "metric"}
    assert parse_metric("linf") == mdp.Lp(math.inf)
    assert isinstance(METRICS, Registry)
