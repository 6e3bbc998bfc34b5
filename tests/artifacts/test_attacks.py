"""Files that somebody forged, with a checksum that fits: refused by `CorruptFile`, quickly, whatever they hold."""

from __future__ import annotations

import dataclasses
import json
import time
import tracemalloc
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from safetensors.numpy import save as pack

import metricdp as mdp
from brute import leakage
from forging import Change, forged, mutate, opened, sealed, spelled
from instances import (
    OTHERS,
    SPACES,
    interpolated,
    place_and_hour,
    some_kernel,
    some_local,
    some_matrix,
    streets,
    with_zeros,
)
from metricdp.artifacts import LoadLimits, dumps, limits, load, loads
from metricdp.artifacts.limits import LoadBudget
from metricdp.errors import CorruptFile, InvalidInput, MissingExtra
from metricdp.mechanisms import KernelMechanism, LocalMechanism, MatrixMechanism
from metricdp.registry import Effort
from scripts import main

DATA = Path(__file__).parents[1] / "data"
FILES: dict[str, Callable[[], bytes]] = {
    **{f"metric {name}": lambda build=build: dumps(mdp.exponential(build(), 0.7)) for name, build in SPACES.items()},
    **{name: lambda build=build: dumps(build()) for name, build in OTHERS.items()},
    "sparse": lambda: dumps(with_zeros()),
    "local": lambda: dumps(some_local()),
    "kernel": lambda: dumps(some_kernel()),
    "quantised": lambda: dumps(mdp.quantised(some_matrix(), bits=16)),
    "interpolated": lambda: dumps(interpolated()),
    "streets": lambda: dumps(streets()),
    "product": lambda: dumps(place_and_hour()),
    **{path.name: path.read_bytes for path in sorted(DATA.glob("*.mdp"))},
}


def refused(data: bytes, *, seconds: float = 5.0, megabytes: float = 100.0) -> str:
    """Check that a file is refused with a sentence, soon and without much memory; return the sentence."""
    tracemalloc.start()
    started = time.process_time()
    try:
        with pytest.raises(CorruptFile) as caught:
            loads(data)
        assert time.process_time() - started < seconds
        assert tracemalloc.get_traced_memory()[1] < megabytes * 1e6
    finally:
        tracemalloc.stop()
    assert str(caught.value).startswith("'the mechanism' was refused: ")
    return str(caught.value)


@pytest.mark.parametrize("name", FILES)
def test_mutated_files_are_refused_or_keep_their_promise(name: str) -> None:
    """A few mutations of every kind, metric and version; benchmarks run this for an hour."""
    if name == "metric levenshtein":
        pytest.importorskip("rapidfuzz")
    honest, rng = FILES[name](), np.random.default_rng(len(name))
    for _ in range(25):
        data = forged(honest, lambda manifest, tensors: mutate(manifest, tensors, rng))
        started = time.process_time()
        try:
            made = loads(data)
        except (CorruptFile, MissingExtra):
            continue
        finally:
            assert time.process_time() - started < 10.0
        promise = made.guarantee
        assert 0 < promise.epsilon < np.inf
        assert made.certificate.lower_bound <= made.certificate.loss
        finite = isinstance(made, MatrixMechanism | LocalMechanism | KernelMechanism)
        if finite and promise.basis != "none" and promise.slack == 0:
            apart = made.inputs.distances
            verify = apart if promise.radius is None else np.where(apart <= promise.radius, apart, np.inf)
            assert leakage(made.matrix, verify)[0] <= promise.epsilon * (1 + 1e-9)


def test_ratios_that_overflow_prove_nothing() -> None:
    for build, change in (
        (interpolated, lambda m, t: [t[name].fill(1e308) for name in m["body"]["ratios"]]),
        (streets, lambda m, t: t[m["body"]["ratios"]].fill(1e308)),
    ):
        refused(forged(dumps(build()), change))


def sparse_bomb(n: int) -> bytes:
    """A small file whose matrix and distances are n x n: everybody reports the same."""
    columns, values = np.zeros(1, dtype=np.uint8), np.ones(n)

    def change(manifest: dict[str, Any], tensors: dict[str, Any]) -> None:
        manifest["body"]["matrix"].update(shape=[n, n], present=None)
        del tensors["matrix.present"]
        tensors.update({"matrix.columns": columns, "matrix.values": values})
        names = {space[key] for space in manifest["spaces"] for key in ("points", "coordinates")}
        tensors.update({name: np.arange(float(n))[:, None] for name in names})

    return forged(dumps(with_zeros(), storage="sparse"), change)


def test_a_small_file_cannot_ask_for_much_memory() -> None:
    data = sparse_bomb(8_700)  # opening this took seven gigabytes
    assert len(data) < 211_000
    assert "GB of memory, above its limit of 2.15 GB" in refused(data, seconds=1, megabytes=5)
    assert "raise `limits`" in refused(data)
    with pytest.raises(CorruptFile, match="of memory"):
        loads(sparse_bomb(13_000), verify=False)


@pytest.mark.parametrize("made", [some_matrix, interpolated, place_and_hour])
def test_a_file_that_nobody_opens_with_the_usual_limits_is_warned_of_when_it_is_written(
    made: Callable[[], Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    mechanism = made()
    mdp.save(mechanism, tmp_path / "small.mdp")  # a warning would fail this test
    monkeypatch.setattr(limits, "LEAST_MEMORY", 1000.0)
    monkeypatch.setattr(limits, "MEMORY_PER_BYTE", 0.1)
    with pytest.warns(UserWarning, match=r"was written.*of memory.*limits=.*METRICDP_OPEN_ANY_SIZE=1"):
        mdp.save(mechanism, tmp_path / "large.mdp")
    with pytest.raises(CorruptFile, match="of memory"):
        load(tmp_path / "large.mdp")
    monkeypatch.setenv(limits.SWITCH, "1")
    mdp.save(mechanism, tmp_path / "any.mdp")
    assert load(tmp_path / "any.mdp").guarantee.epsilon == mechanism.guarantee.epsilon


def test_the_command_says_a_warning_as_a_sentence(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(limits, "LEAST_MEMORY", 1000.0)
    monkeypatch.setattr(limits, "MEMORY_PER_BYTE", 0.1)
    points = tmp_path / "points.csv"
    points.write_text("x,y\n0,0\n1,0\n0,1\n")
    with warnings.catch_warnings():
        warnings.simplefilter("default")
        line = f"design --points {points} --metric l2 --epsilon 1 --builder exponential -o {tmp_path / 'm.mdp'}"
        assert main(line.split()) == 0
    said = capsys.readouterr().err
    assert said.startswith("note: ")
    assert "the usual limits do not allow to open it" in said
    assert "Warning" not in said


def test_limits_are_the_callers(monkeypatch: pytest.MonkeyPatch) -> None:
    data = sparse_bomb(200)
    assert len(loads(data).inputs) == 200  # type: ignore[arg-type]
    for given in (LoadLimits(memory=1e5), LoadLimits(steps=1e5)):
        with pytest.raises(CorruptFile, match="above its limit"):
            loads(data, limits=given)
    big = sparse_bomb(13_000)
    monkeypatch.setenv("METRICDP_OPEN_ANY_SIZE", "1")
    budget = LoadBudget(LoadLimits(), len(big))
    budget.spend(Effort(values=1e12, steps=1e30), "nothing in particular")
    with pytest.raises(CorruptFile, match="above its limit"):
        loads(data, limits=LoadLimits(memory=1e5))  # what the caller says counts


def parameters(**values: Any) -> Change:
    return lambda manifest, tensors: manifest["metrics"][0]["parameters"].update(values)


def long_words(manifest: dict[str, Any], tensors: dict[str, Any]) -> None:
    """Very many words, one of which is very long: as an array all take the room of the longest."""
    tensors["inputs.points.bytes"] = np.full(100_000 + 20_000, ord("a"), dtype=np.uint8)
    tensors["inputs.points.ends"] = (np.arange(20_000) + 100_000 + 1)[:, None]


def laughs(manifest: dict[str, Any], tensors: dict[str, Any]) -> None:
    """Every metric is the one before it, twice."""
    for number in range(40):
        entry = {"parts": [[number, [0], 1.0], [number, [0], 1.0]], "unit": ""}
        manifest["metrics"].append({"name": "Weighted", "parameters": entry})
    manifest["spaces"][0].update(metric=40)


def chain(manifest: dict[str, Any], tensors: dict[str, Any]) -> None:
    for number in range(5000):
        entry = {"parts": [[number, [0, 1], 1.0]], "unit": ""}
        manifest["metrics"].append({"name": "Weighted", "parameters": entry})
    manifest["spaces"][0].update(metric=5000)


def many_axes(manifest: dict[str, Any], tensors: dict[str, Any]) -> None:
    """A box of 15 dimensions with two anchors an axis: few rows, and 3^15 vertices a cell to be checked."""
    manifest["spaces"][0].update(lower=[0.0] * 15, upper=[4.0] * 15)
    for old in (*manifest["body"]["axes"], *manifest["body"]["ratios"]):
        del tensors[old]
    tensors.update(a=np.array([0.0, 4.0]), r=np.array([1.0]), matrix=np.full((2**15, 4), 0.25))
    manifest["body"].update(axes=["a"] * 15, ratios=["r"] * 15, matrix="matrix")


def many_parts(manifest: dict[str, Any], tensors: dict[str, Any]) -> None:
    manifest["body"]["parts"] = manifest["body"]["parts"] * 500


BOMBS: dict[str, tuple[str, Change]] = {
    "a network of many crossings": ("metric roads", parameters(nodes=2**31 - 1)),
    "a network of more": ("metric roads", parameters(nodes=2**52)),
    "long words": ("metric levenshtein", long_words),
    "metrics of metrics": ("metric l1", laughs),
    "a chain of metrics": ("metric l1", chain),
    "words that are moved": (
        "metric documents",
        lambda m, t: t.update({"metric.vectors": np.random.default_rng(1).normal(size=(30_000, 2))}),
    ),
    "curves of many points": (
        "metric curves",
        lambda m, t: t.update({"inputs.points": np.random.default_rng(1).normal(size=(5, 40_000))}),
    ),
    "a box of many axes": ("interpolated", many_axes),
    "streets in many pieces": ("streets", lambda m, t: t["counts"].fill(2**62)),
    "parts without end": ("product", many_parts),
    "noise in many dimensions": ("line", lambda m, t: m["spaces"][0].update(dimension=2**40)),
    "a long licence": ("line", lambda m, t: m.update(licence="x" * 3_000_000)),
    "a long list": ("metric l1", lambda m, t: m["spaces"][0].update(columns=["x"] * 1_000_000)),
}


@pytest.mark.parametrize("name", BOMBS)
def test_files_that_ask_for_too_much_are_refused_before_they_get_it(name: str) -> None:
    if name == "long words":
        pytest.importorskip("rapidfuzz")
    base, change = BOMBS[name]
    refused(forged(FILES[base](), change))


def test_a_loop_of_equal_rows_ends() -> None:
    """Equal rows, a shared zero column and a distance beyond the radius: the auditor once turned for ever."""

    def change(manifest: dict[str, Any], tensors: dict[str, Any]) -> None:
        tensors["matrix"] = np.array([[1.0, 0.0], [1.0, 0.0], [0.0, 1.0]])
        manifest["guarantee"].update(radius=2.0)
        manifest["certificate"].update(worst_pair=[])

    space = mdp.FiniteSpace([[0.0], [1.0], [9.0]], mdp.Lp(2))
    outputs = mdp.FiniteSpace([[0.0], [1.0]], mdp.Lp(2))
    data = forged(dumps(mdp.exponential(space, 1.0, outputs=outputs)), change)
    started = time.process_time()
    made: Any = loads(data)  # it does keep its promise: who is within the radius reports alike
    assert time.process_time() - started < 5.0
    assert np.array_equal(made.matrix[0], made.matrix[1])


# Spellings: the same values, and a checksum that fits.
def respelled(change: Callable[[str], str]) -> bytes:
    manifest, tensors = opened(dumps(some_matrix()))
    manifest["sha256"] = "0" * 64
    return sealed(change(spelled(manifest)), tensors)


@pytest.mark.parametrize(
    "change",
    [
        lambda text: text.replace('"licence":""', '"licence":"","licence":""'),
        lambda text: text.replace('"licence":""', '"licence":"mine","licence":""'),
        lambda text: text.replace('"epsilon":1.0', '"epsilon":1.0,"epsilon":1.0'),
        lambda text: text.replace(":", ": ", 1),
        lambda text: text + " ",
        lambda text: " " + text,
        lambda text: text.replace('"epsilon":1.0', '"epsilon":1.00'),
        lambda text: text.replace('"epsilon":1.0', '"epsilon":1e0'),
        lambda text: text.replace('"epsilon":1.0', '"epsilon":1e999'),
        lambda text: text.replace('"epsilon":1.0', '"epsilon":NaN'),
        lambda text: text.replace('"epsilon":1.0', '"epsilon":Infinity'),
        lambda text: text.replace('"epsilon":1.0', f'"epsilon":{10**400}'),
        lambda text: text.replace('"epsilon":1.0', f'"epsilon":{"9" * 5000}'),
        lambda text: text.replace('"licence":""', '"licence":"\\ud800"'),
        lambda text: text.replace('"licence":""', '"licence":"\\u0041"'),
        lambda text: text.replace('"licence":""', f'"licence":{"[" * 500}{"]" * 500}'),
        lambda text: text.replace('"licence":""', f'"licence":{"[" * 100_000}{"]" * 100_000}'),
        lambda text: text.replace('"licence":""', '"licence":' + '{"a":' * 5000 + "0" + "}" * 5000),
        lambda text: text.replace('"metrics":[', '"metrics":[[],'),
        lambda text: f"[{text}]",
        lambda text: "null",
        lambda text: "{}",
        lambda text: "",
        lambda text: "\ufeff" + text,
        lambda text: json.dumps(dict(reversed(list(json.loads(text).items()))), separators=(",", ":")),
    ],
)
def test_another_spelling_is_refused(change: Callable[[str], str]) -> None:
    assert loads(respelled(lambda text: text)).guarantee.epsilon == 1.0
    refused(respelled(change))


def header_of(data: bytes) -> tuple[dict[str, Any], bytes]:
    size = int.from_bytes(data[:8], "little")
    return json.loads(data[8 : 8 + size]), data[8 + size :]


def with_header(header: object, body: bytes, *, pad: bool = True) -> bytes:
    raw = (
        header if isinstance(header, bytes) else json.dumps(header, separators=(",", ":"), ensure_ascii=False).encode()
    )
    raw += b" " * (-len(raw) % 8 if pad else 0)
    return len(raw).to_bytes(8, "little") + raw + body


def resealed(data: bytes) -> bytes:
    """Give a file whose bytes were moved a checksum that fits again."""
    import hashlib
    import re

    found = re.search(rb'sha256\\":\\"([0-9a-f]{64})', data)
    if found is None:
        return data
    blank = data.replace(found[1], b"0" * 64)
    return blank.replace(b"0" * 64, hashlib.sha256(blank).hexdigest().encode(), 1)


@pytest.mark.parametrize(
    "change",
    [
        lambda h, b: (h["matrix"].update(data_offsets=h["inputs.points"]["data_offsets"]), b)[1],  # one lies on another
        lambda h, b: (h["matrix"].update(data_offsets=[400, 5400]), b + bytes(800))[1],
        lambda h, b: (h["matrix"].update(data_offsets=[-8, 5000]), b)[1],
        lambda h, b: (h["matrix"].update(data_offsets=[8, 2**60]), b)[1],
        lambda h, b: (h["matrix"].update(shape=[2**40, 2**40]), b)[1],
        lambda h, b: (h["matrix"].update(shape=[2**62, 4]), b)[1],
        lambda h, b: (h["matrix"].update(shape=[0, 2**53]), b[:400])[1],
        lambda h, b: (h["matrix"].update(shape=[25.0, 25]), b)[1],
        lambda h, b: (h["matrix"].update(shape=[True, 625]), b)[1],
        lambda h, b: (h["matrix"].update(shape=[1] * 40 + [25, 25]), b)[1],
        lambda h, b: (h["matrix"].update(shape="25"), b)[1],
        lambda h, b: (h["matrix"].update(dtype="F16"), b)[1],
        lambda h, b: (h["matrix"].update(dtype=["F64"]), b)[1],
        lambda h, b: (h["matrix"].update(more=1), b)[1],
        lambda h, b: (h.update(matrix=None), b)[1],
        lambda h, b: (h.update(matrix=[]), b)[1],
        lambda h, b: (h["__metadata__"].update(more="x"), b)[1],
        lambda h, b: (h.update(__metadata__=[]), b)[1],
        lambda h, b: (h["__metadata__"].update(metricdp=1), b)[1],
        lambda h, b: (h.update(empty={"dtype": "F64", "shape": [0], "data_offsets": [0, 0]}), b)[1],
        lambda h, b: (h.update(a=h.pop("matrix")), b)[1],
        lambda h, b: b + b"\0",
        lambda h, b: b[:-8],
    ],
)
def test_a_header_that_lies_about_its_tensors_is_refused(change: Callable[..., bytes]) -> None:
    header, body = header_of(dumps(some_matrix()))
    assert loads(resealed(with_header(header, body))).guarantee.epsilon == 1.0
    refused(resealed(with_header(header, change(header, body))))


def test_a_header_of_any_length_is_refused() -> None:
    header, body = header_of(dumps(some_matrix()))
    for size in (0, 1, 2, 2**20, 2**31, 2**62, 2**64 - 1):
        refused(size.to_bytes(8, "little") + json.dumps(header).encode() + body)
    refused(with_header(b" " * (64 << 20), b""), megabytes=1)
    refused(with_header(b"[" * 1_000_000, b""))
    refused(with_header(b'{"__metadata__":{"metricdp":"\xff\xfe"}}', b""))
    refused(with_header(json.dumps(header).encode(), body))  # with spaces
    refused(with_header(header, body, pad=False) if len(json.dumps(header)) % 8 else b"")
    twice = json.dumps(header, separators=(",", ":"), ensure_ascii=False).replace(
        '"matrix":', '"matrix":0,"matrix":', 1
    )
    refused(resealed(with_header(twice.encode(), body)))
    refused(pack({}, metadata={"metricdp": "{}"}))


def test_a_file_that_is_no_file_is_refused(tmp_path: Path) -> None:
    import os

    pipe = tmp_path / "pipe.mdp"
    os.mkfifo(pipe)
    with pytest.raises(InvalidInput, match="not a plain file"):
        load(pipe)


def test_products_of_products_are_refused() -> None:
    def nest(manifest: dict[str, Any], tensors: dict[str, Any]) -> None:
        inner = {name: json.loads(json.dumps(manifest[name])) for name in ("kind", "body", "guarantee", "certificate")}
        manifest["body"]["parts"][0] = inner

    assert "made of parts" in refused(forged(dumps(place_and_hour()), nest))


PRIME = 2**255 - 19
TWIST = -121665 * pow(121666, -1, PRIME) % PRIME


def added(p: tuple[int, int], q: tuple[int, int]) -> tuple[int, int]:
    """Add two points of the curve -x^2 + y^2 = 1 + d x^2 y^2 of Ed25519."""
    (a, b), (c, d) = p, q
    cross = TWIST * a * b * c * d
    return (a * d + b * c) * pow(1 + cross, -1, PRIME) % PRIME, (b * d + a * c) * pow(1 - cross, -1, PRIME) % PRIME


def lifted(y: int) -> tuple[int, int] | None:
    """Return a point with this y, if there is one."""
    square = (y * y - 1) * pow(TWIST * y * y + 1, -1, PRIME) % PRIME
    x = pow(square, (PRIME + 3) // 8, PRIME)
    if (x * x - square) % PRIME:
        x = x * pow(2, (PRIME - 1) // 4, PRIME) % PRIME
    return None if (x * x - square) % PRIME else (x, y)


def test_keys_of_small_order_are_weak_and_all_eight_are_known() -> None:
    from metricdp.artifacts.signing import is_weak

    order = 2**252 + 27742317777372353535851937790883648493
    torsion = set()
    for y in range(2, 40):  # any point times the large prime order is one of the eight
        point = lifted(y)
        if point is None:
            continue
        result, power = (0, 1), point
        for bit in bin(order)[:1:-1]:
            result, power = added(result, power) if bit == "1" else result, added(power, power)
        torsion.add(result)
    assert len({y for _, y in torsion} | {0, 1, PRIME - 1}) == 5
    for y in {y for _, y in torsion} | {0, 1, PRIME - 1}:
        for spelling in (y, y + PRIME if y + PRIME < 2**255 else y):
            for sign in (0, 1 << 255):
                assert is_weak((spelling | sign).to_bytes(32, "little"))
    assert not is_weak((4 * pow(5, -1, PRIME) % PRIME).to_bytes(32, "little"))  # the base point


def test_a_signature_by_a_weak_key_is_refused() -> None:
    for_all = {"algorithm": "ed25519", "public_key": "01" + "00" * 31, "value": "01" + "00" * 63}
    data = forged(dumps(some_matrix()), lambda manifest, tensors: manifest.update(signature=for_all))
    assert "weak key" in refused(data)


def test_a_weak_key_cannot_be_trusted(tmp_path: Path) -> None:
    import base64

    raw = bytes.fromhex("302a300506032b6570032100") + b"\x01" + bytes(31)
    path = tmp_path / "weak.pub"
    text = base64.b64encode(raw).decode()
    path.write_text(f"-----BEGIN PUBLIC KEY-----\n{text}\n-----END PUBLIC KEY-----\n")
    with pytest.raises(InvalidInput, match="weak key"):
        loads(dumps(some_matrix()), trusted=path)


def test_an_epsilon_is_checked_also_where_nothing_is_promised(tmp_path: Path) -> None:
    """A box with the relaxed rule keeps no guarantee, but its certificate states what it leaks."""
    points = np.array([[1.0, 1.0], [2.0, 2.0], [3.0, 3.0]])
    outputs = mdp.FiniteSpace(np.array([[1.0, 1.0], [1.0, 3.0], [3.0, 1.0], [3.0, 3.0]]), mdp.Lp(2))
    losses = np.linalg.norm(points[:, None] - outputs.points[None], axis=2)
    box = mdp.Box([0, 0], [4, 4], mdp.Lp(2))
    kept = mdp.interpolated(
        box, outputs, 0.8, loss=(points, losses), prior=np.full(3, 1 / 3), anchors=(3, 3), rule="log"
    )
    made = dataclasses.replace(kept, rule="relaxed", guarantee=mdp.Guarantee(0.8, box.metric, basis="none"))
    mdp.save(made, tmp_path / "box.mdp")
    assert mdp.load(tmp_path / "box.mdp").certificate.epsilon == made.certificate.epsilon
    low = dataclasses.replace(made, certificate=dataclasses.replace(made.certificate, epsilon=0.1))
    with pytest.raises(mdp.MetricdpError, match=r"certificate says epsilon 0\.1"):
        mdp.save(low, tmp_path / "low.mdp")
