"""Mechanism files: what was saved comes back, and nothing else does."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from safetensors.numpy import save as pack
from safetensors.numpy import save_file

import metricdp as mdp
from forging import rewritten
from instances import OTHERS, PLANE, SPACES
from metricdp.artifacts import inspect, load, save
from metricdp.errors import CorruptFile, InvalidInput, NotPrivate, OutputProblem
from metricdp.mechanisms import MatrixMechanism, Mechanism


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "some.mdp"


@pytest.mark.parametrize("name", SPACES)
def test_every_metric_comes_back(name: str, path: Path) -> None:
    if name == "levenshtein":
        pytest.importorskip("rapidfuzz")
    space = SPACES[name]()
    mechanism = mdp.exponential(space, 0.7)
    save(mechanism, path)
    back = load(path)
    assert isinstance(back, MatrixMechanism)
    assert np.array_equal(back.matrix, mechanism.matrix)
    assert np.array_equal(back.inputs.points, space.points)
    assert np.array_equal(back.inputs.coordinates, space.coordinates)
    assert np.array_equal(back.inputs.distances, space.distances)
    assert type(back.inputs.metric) is type(space.metric)
    assert type(back.inputs.ground) is type(space.ground)
    assert back.inputs.columns == space.columns
    assert back.outputs is back.inputs
    assert back.guarantee.metric is back.inputs.metric
    assert back.certificate == mechanism.certificate
    assert replace(back.guarantee, metric=mechanism.guarantee.metric) == mechanism.guarantee
    first = path.read_bytes()
    save(back, path)
    assert path.read_bytes() == first  # one mechanism, one spelling


@pytest.mark.parametrize("name", OTHERS)
def test_every_kind_comes_back(name: str, path: Path) -> None:
    mechanism = OTHERS[name]()
    save(mechanism, path)
    back = load(path)
    assert type(back) is type(mechanism)
    assert back.certificate == mechanism.certificate
    assert mdp.audit(back).verdict == "holds"
    secrets = np.array([0, 2]) if name == "words" else np.full((3, mechanism.inputs.dimension), 0.4)
    ours, theirs = (m.sample(secrets, rng=np.random.default_rng(1)) for m in (mechanism, back))
    assert np.array_equal(ours, theirs)


def test_other_outputs_are_kept(path: Path) -> None:
    inputs, outputs = mdp.FiniteSpace(PLANE, mdp.Lp(2)), mdp.FiniteSpace(PLANE[:4] + 0.1, mdp.Lp(2))
    save(mdp.exponential(inputs, 1.0, outputs=outputs), path)
    back = load(path)
    assert np.array_equal(back.outputs.points, outputs.points)
    assert len(back.inputs) == 12


def test_inspecting_says_what_it_is(path: Path) -> None:
    save(OTHERS["sphere"](), path)
    found = inspect(path)
    assert (found.kind, found.version, found.bytes) == ("spherical-laplace", 2, path.stat().st_size)
    assert b"pickle" not in path.read_bytes()


@pytest.mark.parametrize("build", [lambda: mdp.exponential(SPACES["roads"](), 1.0), OTHERS["sphere"], OTHERS["words"]])
def test_a_flipped_byte_anywhere_is_refused(path: Path, build: Callable[[], Mechanism]) -> None:
    save(build(), path)
    data = path.read_bytes()
    rng = np.random.default_rng(0)
    for position in rng.integers(0, len(data), 200):
        changed = bytearray(data)
        changed[position] ^= 1 << int(rng.integers(8))
        path.write_bytes(changed)
        with pytest.raises(CorruptFile):
            load(path)


def test_a_file_of_another_length_is_refused(path: Path) -> None:
    save(mdp.exponential(SPACES["l1"](), 1.0), path)
    data = path.read_bytes()
    for size in [0, 1, 7, 8, 9, 100, len(data) // 2, len(data) - 1]:
        path.write_bytes(data[:size])
        with pytest.raises(CorruptFile, match="was refused"):
            load(path)
    path.write_bytes(data + b"\0")
    with pytest.raises(CorruptFile, match="too long"):
        load(path)


def test_a_forged_matrix_is_audited_and_refused(path: Path) -> None:
    save(mdp.exponential(SPACES["l1"](), 1.0), path)

    def forge(manifest: dict[str, Any], tensors: dict[str, Any]) -> None:
        tensors["matrix"][0, 0] += tensors["matrix"][0, 1] * 0.999
        tensors["matrix"][0, 1] *= 0.001

    rewritten(path, forge)
    with pytest.raises(CorruptFile, match=r"does not keep the guarantee.*violated"):
        load(path)
    assert mdp.audit(inspect(path, verify=False).mechanism).verdict == "violated"


@pytest.mark.parametrize("name", OTHERS)
def test_forged_noise_is_refused(name: str, path: Path) -> None:
    save(OTHERS[name](), path)
    rewritten(path, lambda manifest, tensors: manifest["body"].update(epsilon=20.0))
    # the nearest word may hide some of the noise's leak, so that no theorem says the promise is broken
    with pytest.raises(CorruptFile, match="cannot judge" if name == "words" else "violated"):
        load(path)


def test_a_forged_lattice_is_refused_and_a_coarser_one_is_as_private(path: Path) -> None:
    for pitch, refused in ((0.7, True), (1e-13, True), (0.01, False)):
        save(OTHERS["sphere"](), path)
        rewritten(path, lambda manifest, tensors, p=pitch: manifest["body"].update(pitch=p))
        if refused:
            with pytest.raises(CorruptFile):
                load(path)
        else:
            assert mdp.audit(load(path)).verdict == "holds"


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda m, t: m.update(version=3), "Update metricdp"),
        (lambda m, t: m.update(kind="quantum"), "Update metricdp"),
        (lambda m, t: m.update(format="else"), "written by mdp.save"),
        (lambda m, t: m.update(version=0), "was refused"),
        (lambda m, t: m.pop("guarantee"), "what its version asks for"),
        (lambda m, t: m.update(version=1), "what its version asks for"),
        (lambda m, t: m.update(more=1), "what its version asks for"),
        (lambda m, t: m.update(licence=1), "not a text"),
        (lambda m, t: m.update(signature="me"), "signature"),
        (lambda m, t: m["guarantee"].update(epsilon={"float": "inf"}), "epsilon"),
        (lambda m, t: m["guarantee"].update(epsilon=-1.0), "epsilon"),
        (lambda m, t: m["guarantee"].update(basis="trust me"), "basis of its guarantee must be one of theorem"),
        (lambda m, t: m["guarantee"].update(promise=1), "does not know"),
        (lambda m, t: m["guarantee"].update(epsilon=True), "epsilon"),
        (lambda m, t: m["guarantee"].update(slack={"float": "nan"}), "slack"),
        (lambda m, t: m["guarantee"].update(radius={"float": "nan"}), "radius"),
        (lambda m, t: m["guarantee"].update(radius=-1), "radius"),
        (lambda m, t: m["guarantee"].update(radius=0), "radius"),
        (lambda m, t: m["guarantee"].update(radius=[1]), "radius"),
        (lambda m, t: m["guarantee"].update(unit="mi"), "per 'mi'"),
        (lambda m, t: m["certificate"].update(lower_bound=1e9), "above the loss"),
        (lambda m, t: m["certificate"].update(loss={"float": "nan"}), "loss"),
        (lambda m, t: m["certificate"].update(objective="median"), "objective"),
        (lambda m, t: m["certificate"].update(worst_pair=[0, 1]), "worst pair"),
        (lambda m, t: m["certificate"].update(worst_pair=[0, 99, 0]), "codes from 0"),
        (lambda m, t: m["certificate"].update(method=1), "not a text"),
        (lambda m, t: m["certificate"].pop("loss"), "does not say 'loss'"),
        (lambda m, t: m["metrics"].append({"name": "Lp", "parameters": {}}), "metric 1 does not say"),
        (
            lambda m, t: m["metrics"].append({"name": "__import__", "parameters": {}}),
            "import the package that declares",
        ),
        (lambda m, t: m["body"].update(inputs=-1), "reference"),
        (lambda m, t: m["body"].update(inputs=9), "reference"),
        (lambda m, t: m["body"].update(matrix="nowhere"), "not there"),
        (lambda m, t: t.update(extra=np.zeros(3)), "nothing refers to"),
        (lambda m, t: t.update(matrix=t["matrix"].astype(np.float16)), "unknown type"),
        (lambda m, t: t.update(matrix=t["matrix"].astype(np.float32)), "right type"),
        (lambda m, t: t.update(matrix=t["matrix"][:, :-1].copy()), "do not make a mechanism"),
        (lambda m, t: t["matrix"].fill(np.nan), "do not make a mechanism"),
    ],
)
def test_strange_manifests_are_refused(path: Path, change: Callable[..., Any], message: str) -> None:
    save(mdp.exponential(SPACES["l1"](), 1.0), path)
    rewritten(path, change)
    with pytest.raises(CorruptFile, match=message):
        load(path)


@pytest.mark.parametrize(
    ("method", "objective"),
    [
        ("constopt, 10 nearest", "worst"),
        ("optimal (worst loss, simplex)", "worst"),
        ("optimal (expected loss, x)", "expected"),
        ("exponential", "expected"),
    ],
)
def test_files_from_before_the_objective_was_written_still_say_which_loss_they_count(
    path: Path, method: str, objective: str
) -> None:
    save(mdp.exponential(SPACES["l1"](), 1.0), path)
    rewritten(path, lambda manifest, tensors: manifest["certificate"].update(method=method))
    assert load(path).certificate.objective == objective


def test_the_worst_loss_stays_the_worst_loss_in_a_file(path: Path) -> None:
    built = mdp.optimal(mdp.Problem(SPACES["l1"](), 1.0), objective="worst")
    save(replace(built, certificate=replace(built.certificate, method="named otherwise")), path)
    back = load(path).certificate
    assert (back.objective, back.loss, back.witness) == ("worst", built.certificate.loss, built.certificate.witness)


def test_foreign_files_are_refused(path: Path) -> None:
    for content in (b"lat,lon\n1,2\n" * 10, b"PK\x03\x04" + bytes(100), bytes(50), b"\xff" * 50):
        path.write_bytes(content)
        with pytest.raises(CorruptFile, match=r"mdp\.save"):
            load(path)
    save_file({"weights": np.zeros(4)}, path)
    with pytest.raises(CorruptFile, match="not one of metricdp"):
        load(path)
    path.write_bytes(pack({"a": np.zeros(2)}, metadata={"metricdp": "[" * 100_000}))
    with pytest.raises(CorruptFile):
        load(path)
    with pytest.raises(InvalidInput, match="does not exist"):
        load(path.with_name("none.mdp"))
    with pytest.raises(InvalidInput, match="folder"):
        load(path.parent)


def test_a_broken_promise_is_not_saved(path: Path) -> None:
    good = mdp.exponential(SPACES["l1"](), 1.0)
    with pytest.raises(NotPrivate, match="not saved"):
        save(replace(good, guarantee=replace(good.guarantee, epsilon=0.5)), path)
    with pytest.raises(InvalidInput, match="can hold"):
        save(object(), path)  # type: ignore[arg-type]
    with pytest.raises(OutputProblem, match="does not exist"):
        save(good, path.parent / "no" / "some.mdp")
    assert list(path.parent.iterdir()) == []


def test_a_mechanism_without_a_promise_loads_as_such(path: Path) -> None:
    good = mdp.exponential(SPACES["l1"](), 1.0)
    save(replace(good, guarantee=replace(good.guarantee, epsilon=0.5, basis="none")), path)
    assert load(path).guarantee.basis == "none"
