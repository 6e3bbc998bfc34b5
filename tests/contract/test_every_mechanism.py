"""One list of properties for EVERY kind of mechanism there is: files, judges, tables, the service, sentences, seeds."""

from __future__ import annotations

import math
from dataclasses import fields, replace
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import metricdp as mdp
from instances import KINDS
from metricdp import plugins
from metricdp.artifacts import dumps, loads
from metricdp.auditing import AuditReport, Claim, ConcentratedReport
from metricdp.auditing.accuracy import radii_of
from metricdp.auditing.distributions import distribution_of
from metricdp.auditing.loss import figures_of
from metricdp.design import rescaler
from metricdp.errors import InvalidInput, NotPrivate, NotPure
from metricdp.mechanisms import (
    MECHANISMS,
    REFUSALS,
    BinDensity,
    ConcentratedGuarantee,
    Kind,
    LossFigures,
    ProductMechanism,
)
from metricdp.registry import Effort, Schema
from metricdp.service import ServedMechanism
from metricdp.tables import usual_names


@pytest.fixture(scope="module", params=KINDS)
def kind(request):
    build, row = KINDS[request.param]
    return request.param, build(), row


def judge(mechanism):
    concentrated = isinstance(mechanism.guarantee, ConcentratedGuarantee)
    return mdp.auditing.audit_concentrated(mechanism) if concentrated else mdp.audit(mechanism)


def lowered(mechanism):
    """Return the same noise under half of its promise."""
    promise = mechanism.guarantee
    name = "rho" if isinstance(promise, ConcentratedGuarantee) else "epsilon"
    return replace(mechanism, guarantee=replace(promise, **{name: getattr(promise, name) / 2}))


def test_no_kind_is_left_out():
    assert set(KINDS) == set(MECHANISMS.names)


def test_it_is_of_its_kind_and_its_promise_holds(kind):
    name, mechanism, _ = kind
    assert MECHANISMS.of(mechanism).name == name
    assert judge(mechanism).verdict == "holds"


def test_a_file_gives_back_the_same_law_and_the_same_promise(kind):
    _, mechanism, row = kind
    again = loads(dumps(mechanism))
    assert str(again.guarantee) == str(mechanism.guarantee)
    assert judge(again).verdict == "holds"
    if row is not None:
        secret = mechanism.inputs.encode([row])
        one, two = (made.sample(secret, rng=np.random.default_rng(3)) for made in (mechanism, again))
        np.testing.assert_array_equal(one, two)


def test_half_of_the_promise_is_not_kept_and_gets_no_file(kind):
    _, mechanism, _ = kind
    if isinstance(mechanism, ProductMechanism):
        return  # its promise is that of its parts
    less = lowered(mechanism)
    assert judge(less).verdict != "holds"
    with pytest.raises(NotPrivate, match="does not keep its"):
        dumps(less)


def test_a_table_is_protected_and_what_is_no_secret_is_refused(kind):
    _, mechanism, row = kind
    if row is None:
        return  # words, streets and products have tables of their own in the room of tables
    names = usual_names(mechanism)
    table = pa.table({**{name: [value] * 5 for name, value in zip(names, row, strict=True)}, "id": range(5)})
    made = mdp.perturb(table, mechanism, columns=list(names))
    assert made["id"].to_pylist() == list(range(5))
    reported = [name for name in made.column_names if name != "id"]
    assert np.all(np.isfinite(np.column_stack([made[name].to_numpy() for name in reported])))
    broken = table.set_column(0, names[0], [[math.nan, *[row[0]] * 4]])
    with pytest.raises(mdp.MetricdpError, match="row"):
        mdp.perturb(broken, mechanism, columns=list(names))


def test_a_simulation_is_never_charged_to_books(kind, tmp_path):
    _, mechanism, row = kind
    if row is None:
        return
    names = usual_names(mechanism)
    table = pa.table({**{name: [value] for name, value in zip(names, row, strict=True)}, "who": ["anna"]})
    books = tmp_path / "b.db"
    with pytest.raises(InvalidInput, match="a simulation is never released"):
        mdp.perturb(
            table, mechanism, columns=list(names), id="who", budget=50.0, ledger=books, rng=np.random.default_rng(0)
        )
    assert not books.exists()


def test_sentences_say_which_kind_of_promise_it_is_and_what_is_approximate_has_no_epsilon(kind):
    _, mechanism, _ = kind
    texts = [str(mechanism.guarantee), repr(mechanism), mechanism.guarantee._repr_html_()]
    if isinstance(mechanism.guarantee, ConcentratedGuarantee):
        assert all("not pure" in text and "epsilon" not in text for text in texts)
        for ask in (lambda: mechanism.guarantee.epsilon, lambda: mdp.audit(mechanism), lambda: mdp.product(mechanism)):
            with pytest.raises((NotPure, InvalidInput)):
                ask()
    else:
        assert all("epsilon" in text for text in texts[:1])
        assert not any("not pure" in text for text in texts)


def test_the_service_offers_what_is_pure_and_refuses_the_rest_before_anybody_asks(kind):
    _, mechanism, _ = kind
    if isinstance(mechanism.guarantee, ConcentratedGuarantee):
        with pytest.raises(NotPure, match="the service"):
            ServedMechanism("noise", mechanism)
        return
    promise = ServedMechanism("noise", mechanism).guarantee_record["guarantee"]
    assert promise["sentence"]
    assert promise["epsilon"] == mechanism.guarantee.epsilon


STAIRCASE = Path(__file__).parents[2] / "examples" / "extend" / "staircase.py"
ASKED = sorted({one.name for one in fields(Kind)} - {one.name for one in fields(Schema)})


NOT_ITS = (  # what its theorem says, and facets of mechanisms with finitely many secrets or reports of their own
    "audit", "audit_concentrated", "mean_distances", "report_probabilities", "operator", "secret_pairs",
    "report_names", "rows", "storage", "worst_ratio",
)  # fmt: skip
REFUSING = {("accuracy", ProductMechanism), ("distribution", ProductMechanism)}  # by part: the facet itself says so


@cache
def built(kind: str) -> Any:
    return KINDS[kind][0]()


def of_facet(name: str, mechanism: Any, *more: Any) -> Any:
    return MECHANISMS.facet(name, mechanism)(mechanism, *more)


ANSWER: dict[str, Any] = {  # how the package asks, where it is not by the mechanism alone
    "audit": lambda one: of_facet("audit", one, Claim(2.0)),
    "audit_concentrated": lambda one: of_facet("audit_concentrated", one, None),
    "accuracy": lambda one: radii_of(one, (0.5, 0.9)),
    "distribution": distribution_of,
    "rescale": rescaler,
    "loss": lambda one: MECHANISMS.facet("loss", one) and figures_of(one, lambda effort, what: None),
    "rows": lambda one: of_facet("rows", one, np.arange(2)),
    "report_probabilities": lambda one: of_facet("report_probabilities", one, np.zeros((2, one.inputs.dimension))),
    "secret_pairs": lambda one: of_facet("secret_pairs", one, np.full((5, 1), 0.1), np.random.default_rng(0)),
    "storage": lambda one: MECHANISMS.facet("storage", one),
}


def are_rates(mechanism: Any, found: Any) -> bool:
    promise = found(3.0).guarantee
    return 3.0 in (getattr(promise, "epsilon", None), getattr(promise, "rho", None))


def are_heights(mechanism: Any, found: Any) -> bool:
    place, points = np.zeros((1, mechanism.inputs.dimension)), np.full((3, mechanism.inputs.dimension), 0.01)
    return isinstance(found, BinDensity) and found.rate > 0 and found.density(place, points).shape == (1, 3)


def are_laws(mechanism: Any, found: Any) -> bool:
    return np.allclose(found.sum(axis=1), 1.0) and found.shape == (2, len(mechanism.outputs))


def is_operator(mechanism: Any, found: Any) -> bool:
    secrets = len(mechanism.inputs)
    return bool(np.isclose(found.forward(np.full(secrets, 1.0 / secrets)).sum(), 1.0))


RIGHT: dict[str, Any] = {  # whether an answer is of its kind and makes sense
    "audit": lambda one, found: isinstance(found, AuditReport),
    "theorem": lambda one, found: found.rate > 0 and not found.obstacle and "{}" in found.template,
    "audit_concentrated": lambda one, found: isinstance(found, ConcentratedReport),
    "accuracy": lambda one, found: 0.0 <= found[0].value <= found[1].value and found[0].unit == found[1].metric.unit,
    "distribution": lambda one, found: bool(found.density["formula"]),
    "rescale": are_rates,
    "loss": lambda one, found: found is None or (isinstance(found, LossFigures) and found.lower_bound <= found.loss),
    "bins": are_heights,
    "rows": are_laws,
    "report_probabilities": are_laws,
    "mean_distances": lambda one, found: found.shape == (len(one.inputs),) and np.all(found > 0),
    "worst_ratio": lambda one, found: 0 < found <= one.guarantee.epsilon * (1 + 1e-9),
    "operator": is_operator,
    "storage": lambda one, found: " " in found,
    "report_names": lambda one, found: len(found) == one.outputs.width,
    "secret_pairs": lambda one, found: found[0].shape == found[1].shape == (5, one.inputs.dimension),
}


def answer(name: str, mechanism: Any) -> Any:
    """Ask as the package asks."""
    return ANSWER.get(name, lambda one: of_facet(name, one))(mechanism)


def right(name: str, mechanism: Any, found: Any) -> bool:
    """Tell whether an answer is of its kind and makes sense."""
    return bool(RIGHT[name](mechanism, found))


def asked(name: str, mechanism: Any) -> None:
    """Ask for a facet: an answer of its kind, or a refusal that is a sentence."""
    if MECHANISMS.has(name, mechanism) and (name, type(mechanism)) not in REFUSING:
        assert right(name, mechanism, answer(name, mechanism))
        return
    with pytest.raises(InvalidInput, match=r"^[^ ]+( [^ ]+){5,}\.$"):
        answer(name, mechanism)


@pytest.mark.parametrize("name", ASKED)
@pytest.mark.parametrize("kind", sorted(KINDS))
def test_every_kind_answers_for_every_facet_or_refuses_with_a_sentence(kind: str, name: str) -> None:
    asked(name, built(kind))


def test_the_plugin_of_one_file_has_every_facet_too() -> None:
    mechanism = plugins.load(str(STAIRCASE)).staircase(mdp.Lp(1), 0.7)
    for name in ASKED:
        assert MECHANISMS.has(name, mechanism) or name in NOT_ITS
        asked(name, mechanism)


def test_what_nobody_declared_is_refused_for_every_facet() -> None:
    for name in ASKED:
        assert not MECHANISMS.has(name, object())
        with pytest.raises(InvalidInput, match=r"\.$"):
            MECHANISMS.facet(name, object())
    assert set(ASKED) == set(RIGHT) == set(REFUSALS) - {"effort"}


def test_effort_is_declared_for_what_is_not_a_formula() -> None:
    for kind in MECHANISMS:
        assert kind.effort is None or callable(kind.effort)
    assert Effort(1.0) + Effort(steps=2.0) == Effort(1.0, 2.0)


def test_a_facet_is_registered_once_and_for_declared_kinds_only() -> None:
    with pytest.raises(InvalidInput, match="has its audit already"):
        MECHANISMS.register(mdp.mechanisms.MatrixMechanism, audit=lambda one, claim: None)
    with pytest.raises(InvalidInput, match="not a declared kind"):
        MECHANISMS.register(object, audit=lambda one, claim: None)
