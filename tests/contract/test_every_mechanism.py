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
from instances import local_on, some_kernel
from metricdp import plugins
from metricdp.artifacts import dumps, loads
from metricdp.auditing.accuracy import radii_of
from metricdp.auditing.claim import Claim
from metricdp.auditing.concentrated import ConcentratedReport
from metricdp.auditing.laws import distribution_of
from metricdp.auditing.loss import figures_of
from metricdp.auditing.report import AuditReport
from metricdp.declarations import Declaration, Effort
from metricdp.design.interpolation.streets import along_streets
from metricdp.design.rescaling import rescaled
from metricdp.errors import InvalidInput, NotPrivate, NotPure
from metricdp.mechanisms import MECHANISMS, ConcentratedGuarantee, ProductMechanism
from metricdp.mechanisms.kind import REFUSALS, Figures, Heights, Kind
from metricdp.service.served import Served
from metricdp.tables.plan import usual_names

SQUARE = mdp.grid((3, 3))
LINE = mdp.FiniteSpace(np.arange(4.0)[:, None], mdp.Lp(1))
ROME, NUMBERS, CURVE = [41.9, 12.5], [3.0, 4.0], [1.0, 3.0, 2.0]


def interpolated():
    places = np.linspace(0, 3, 13)[:, None]
    loss = (places, np.abs(places - LINE.points[:, 0]))
    return mdp.interpolated(
        mdp.Box([0.0], [3.0], mdp.Lp(1)), LINE, 1.0, loss=loss, prior=np.full(13, 1 / 13), anchors=(2,)
    )


def streets():
    roads = mdp.ShortestPath([[0, 1], [1, 2], [2, 0]], [1.0, 2.0, 1.5])
    places = [[41.0, -8.0], [41.0, -8.01], [41.02, -8.0]]
    corners = mdp.FiniteSpace(np.arange(3), roads, coordinates=places, ground=mdp.Haversine())
    return along_streets(corners, corners, 1.0)


KINDS = {  # one of every kind, and a secret as a row of a table holds it
    "matrix": (lambda: mdp.exponential(SQUARE, 1.0), [1.0, 2.0]),
    "local": (lambda: local_on(SQUARE, 1.5), [1.0, 2.0]),
    "kernel": (some_kernel, None),
    "interpolated": (interpolated, [1.3]),
    "streets": (streets, None),
    "spherical-laplace": (lambda: mdp.laplace(mdp.Haversine(), 10.0), ROME),
    "vector-laplace": (lambda: mdp.laplace(mdp.Mahalanobis.ellipse(2.0, 0.5, bearing=25.0), 1.0), NUMBERS),
    "gaussian-noise": (lambda: mdp.gaussian(mdp.Lp(2), 0.5), NUMBERS),
    "spherical-gaussian": (lambda: mdp.gaussian(mdp.Haversine(), 0.5), ROME),
    "projected-laplace": (lambda: mdp.laplace(mdp.Lp(2), 1.0, projection=[[0.6, 0.8]]), NUMBERS),
    "direction-noise": (lambda: mdp.laplace(mdp.Angular(), 3.0, dimension=3, normalise=True), CURVE),
    "hyperbolic-laplace": (lambda: mdp.laplace(mdp.Hyperbolic(), 2.0, dimension=2), [0.3, -0.2]),
    "bag-laplace": (lambda: mdp.laplace(mdp.Bags(mdp.Lp(2), 1), 1.0, dimension=3), CURVE),
    "outline-laplace": (lambda: mdp.laplace(mdp.Frechet(mdp.Lp(1), 1), 1.0, dimension=3), CURVE),
    "nearest": (lambda: mdp.madlib(SQUARE, 1.0), [1.0, 2.0]),
    "product": (lambda: mdp.product(mdp.exponential(SQUARE, 1.0), mdp.exponential(LINE, 1.0)), None),
}


@pytest.fixture(scope="module", params=KINDS)
def kind(request):
    build, row = KINDS[request.param]
    return request.param, build(), row


def judge(mechanism):
    concentrated = isinstance(mechanism.guarantee, ConcentratedGuarantee)
    return mdp.audit_concentrated(mechanism) if concentrated else mdp.audit(mechanism)


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
    with pytest.raises(NotPrivate, match="does not keep its promise"):
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
            Served("noise", mechanism)
        return
    promise = Served("noise", mechanism).promise
    assert promise["sentence"]
    assert promise["epsilon"] == mechanism.guarantee.epsilon


STAIRCASE = Path(__file__).parents[2] / "examples" / "extend" / "staircase.py"
ASKED = sorted({one.name for one in fields(Kind)} - {one.name for one in fields(Declaration)})


REFUSING = {("accuracy", ProductMechanism), ("distribution", ProductMechanism)}  # by part: the facet itself says so


@cache
def built(kind: str) -> Any:
    return KINDS[kind][0]()


def answer(name: str, mechanism: Any) -> Any:
    """Ask as the package asks."""
    codes = np.arange(2)
    if name == "audit":
        return MECHANISMS.facet(name, mechanism)(mechanism, Claim(2.0))
    if name == "audit_concentrated":
        return MECHANISMS.facet(name, mechanism)(mechanism, None)
    if name == "accuracy":
        return radii_of(mechanism, (0.5, 0.9))
    if name == "distribution":
        return distribution_of(mechanism)
    if name == "rescale":
        return rescaled(mechanism)
    if name == "loss":
        MECHANISMS.facet(name, mechanism)
        return figures_of(mechanism, lambda effort, what: None)
    if name == "rows":
        return MECHANISMS.facet(name, mechanism)(mechanism, codes)
    if name == "pairs":
        return MECHANISMS.facet(name, mechanism)(mechanism, np.full((5, 1), 0.1), np.random.default_rng(0))
    return MECHANISMS.facet(name, mechanism)(mechanism)


def right(name: str, mechanism: Any, found: Any) -> bool:
    """Tell whether an answer is of its kind and makes sense."""
    if name == "audit":
        return isinstance(found, AuditReport)
    if name == "audit_concentrated":
        return isinstance(found, ConcentratedReport)
    if name == "accuracy":
        near, far = found
        return 0.0 <= near.value <= far.value and near.unit == far.metric.unit
    if name == "distribution":
        return bool(found.density["formula"])
    if name == "rescale":
        promise = found(3.0).guarantee
        return 3.0 in (getattr(promise, "epsilon", None), getattr(promise, "rho", None))
    if name == "loss":
        return found is None or (isinstance(found, Figures) and found.lower_bound <= found.loss)
    if name == "bins":
        place, points = np.zeros((1, mechanism.inputs.dimension)), np.full((3, mechanism.inputs.dimension), 0.01)
        return isinstance(found, Heights) and found.rate > 0 and found.density(place, points).shape == (1, 3)
    if name == "rows":
        return np.allclose(found.sum(axis=1), 1.0) and found.shape == (2, len(mechanism.outputs))
    if name == "reports":
        return len(found) == mechanism.outputs.width
    left, other = found
    return left.shape == other.shape == (5, mechanism.inputs.dimension)


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
        assert MECHANISMS.has(name, mechanism) or name in ("audit_concentrated", "rows", "reports", "pairs")
        asked(name, mechanism)


def test_what_nobody_declared_is_refused_for_every_facet() -> None:
    for name in ASKED:
        assert not MECHANISMS.has(name, object())
        with pytest.raises(InvalidInput, match=r"\.$"):
            MECHANISMS.facet(name, object())
    assert set(ASKED) == set(REFUSALS) - {"effort"}


def test_effort_is_declared_for_what_is_not_a_formula() -> None:
    for kind in MECHANISMS:
        assert kind.effort is None or callable(kind.effort)
    assert Effort(1.0) + Effort(steps=2.0) == Effort(1.0, 2.0)


def test_a_facet_is_registered_once_and_for_declared_kinds_only() -> None:
    with pytest.raises(InvalidInput, match="has its audit already"):
        MECHANISMS.register(mdp.MatrixMechanism, audit=lambda one, claim: None)
    with pytest.raises(InvalidInput, match="no declared kind"):
        MECHANISMS.register(object, audit=lambda one, claim: None)
