"""Mechanism files on their way to a device: old versions, storages, rounding, signatures, forgers."""

from __future__ import annotations

import json
import os
import stat
import subprocess
import sys
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import metricdp as mdp
from brute import grid, leakage
from forging import rewritten
from instances import OTHERS, interpolated, place_and_hour, some_matrix, streets, with_zeros
from metricdp import quantised
from metricdp.artifacts import create_keys, dumps, inspect, load, loads, save
from metricdp.artifacts import file as container
from metricdp.errors import CorruptFile, Infeasible, InvalidInput, NotPrivate, OutputProblem
from metricdp.mechanisms import LossBasis, MatrixMechanism, Mechanism

DATA = Path(__file__).parents[1] / "data"
TABLES: dict[str, Callable[[], Any]] = {
    "matrix": some_matrix, "zeros": with_zeros, "interpolated": interpolated, "streets": streets,
    "remapped": lambda: mdp.remapped(some_matrix(), prior=np.arange(1.0, 26) / 325),
}  # fmt: skip


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "some.mdp"


@pytest.fixture(scope="module")
def keys(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    return create_keys(tmp_path_factory.mktemp("keys") / "me")


@pytest.mark.parametrize(
    ("name", "kind", "epsilon"),
    [
        ("matrix", "MatrixMechanism", 0.7),
        ("interpolated", "InterpolatedMechanism", 0.8),
        ("nearest", "NearestMechanism", 2.0),
        ("spherical-laplace", "SphericalLaplace", 10.0),
        ("vector-laplace", "VectorLaplace", 1.0),
    ],
)
def test_version_one_loads_forever(name: str, kind: str, epsilon: float, path: Path) -> None:
    found = inspect(DATA / f"v1-{name}.mdp")
    assert (found.version, found.storage, found.licence, found.signed_by) == (1, "dense", "", "")
    assert type(found.mechanism).__name__ == kind
    assert found.mechanism.guarantee.epsilon == epsilon
    save(found.mechanism, path)
    again = inspect(path)
    assert again.version == 2
    assert again.mechanism.certificate == found.mechanism.certificate  # type: ignore[attr-defined]
    data = bytearray((DATA / f"v1-{name}.mdp").read_bytes())
    for position in range(0, len(data), 7):
        data[position] ^= 4
        path.write_bytes(data)
        with pytest.raises(CorruptFile):
            load(path)
        data[position] ^= 4


@pytest.mark.parametrize(
    ("name", "storage", "epsilon"),
    [
        ("quantised", "quantised", 1.0),
        ("sparse", "sparse", 1.0),
        ("streets", "dense", 0.7),
        ("interpolated", "quantised", 0.8),
        ("product", "dense", 1.0),
        ("spherical-laplace", "dense", 10.0),
    ],
)
def test_version_two_loads_forever(name: str, storage: str, epsilon: float) -> None:
    found = inspect(DATA / f"v2-{name}.mdp", trusted=DATA / "v2.pub")
    assert (found.version, found.storage, found.trusted) == (2, storage, True)
    assert found.mechanism.guarantee.epsilon == epsilon
    assert found.licence == ("© nobody, CC0 1.0" if name == "quantised" else "")


@pytest.mark.parametrize("name", TABLES)
def test_sparse_is_exact(name: str, path: Path) -> None:
    made = TABLES[name]()
    save(made, path, storage="sparse", licence="© somebody, ODbL 1.0")
    found = inspect(path)
    assert (found.storage, found.licence) == ("sparse", "© somebody, ODbL 1.0")
    assert np.array_equal(found.mechanism.matrix, made.matrix)  # type: ignore[attr-defined]
    assert type(found.mechanism) is type(made)
    first = path.read_bytes()
    save(found.mechanism, path, storage="sparse", licence="© somebody, ODbL 1.0")
    assert path.read_bytes() == first


def test_sparse_leaves_zeros_out(path: Path) -> None:
    space = mdp.FiniteSpace(grid(12), mdp.Lp(2))
    few = mdp.exponential(space, 1.0, outputs=mdp.FiniteSpace(grid(3) * 4, mdp.Lp(2)))
    wide = np.zeros((144, 144))
    wide[:, :9] = few.matrix
    made = replace(few, matrix=wide, outputs=space)
    save(made, path, storage="dense")
    dense = path.stat().st_size
    save(made, path, storage="sparse")
    assert dense - path.stat().st_size > 8 * 144 * 134
    assert np.array_equal(load(path).matrix, wide)  # type: ignore[attr-defined]


@pytest.mark.parametrize("bits", [8, 12, 16, 31, 32, 40, 52])
@pytest.mark.parametrize("name", TABLES)
def test_quantised_is_certified_as_it_is_stored(name: str, bits: int, path: Path) -> None:
    made = TABLES[name]()
    save(quantised(made, bits=bits), path, storage="quantised")
    found = inspect(path)
    back: Any = found.mechanism
    counts = np.ldexp(back.matrix, bits)
    assert found.storage == "quantised"
    assert found.bits is not None
    assert found.bits <= bits
    assert np.array_equal(counts, np.rint(counts))
    assert [sum(int(c) for c in row) for row in counts] == [2**bits] * len(counts)  # not one unit more or less
    assert back.guarantee.epsilon == made.guarantee.epsilon
    assert back.certificate.epsilon <= made.guarantee.epsilon
    assert mdp.audit(back).verdict == "holds"
    if isinstance(back, MatrixMechanism):
        apart = back.inputs.distances
        radius = back.guarantee.radius
        epsilon = leakage(back.matrix, apart if radius is None else np.where(apart <= radius, apart, np.inf))[0]
        assert epsilon <= made.guarantee.epsilon
        assert epsilon == pytest.approx(back.certificate.epsilon, rel=1e-9)
    assert np.abs(back.matrix - made.matrix).max() < 0.11  # the share mixed in is at most a tenth
    if bits >= 32:
        assert np.abs(back.matrix - made.matrix).max() < 1e-6


def test_the_loss_of_the_rounded_law_is_stated() -> None:
    made = some_matrix()
    space = made.inputs
    rounded = quantised(made, bits=10)
    assert rounded.certificate.loss == pytest.approx(float((rounded.matrix * space.distances).sum() / 25))
    prior = np.arange(1.0, 26) ** 2 / 5525
    problem = mdp.Problem(space, 1.0, prior=prior)
    other = mdp.exponential(space, 1.0, prior=prior)
    known = quantised(other, bits=10, problem=problem)
    assert known.certificate.loss == pytest.approx(float((prior[:, None] * known.matrix * space.distances).sum()))
    assert quantised(other, bits=10).certificate.loss == pytest.approx(known.certificate.loss)  # it knows its own
    unknown = quantised(replace(other, loss_basis=LossBasis(known=False)), bits=10)
    assert unknown.certificate.loss == other.certificate.loss
    assert "before rounding" in unknown.certificate.note
    assert quantised(rounded, bits=16) is rounded  # nothing to round


def test_what_rounding_computes_again_is_no_longer_only_stated(path: Path) -> None:
    prior = np.arange(1.0, 26) ** 2 / 5525
    space = some_matrix().inputs
    save(mdp.exponential(space, 1.0, prior=prior), path)
    loaded = mdp.load(path)
    assert loaded.certificate.stated == ("loss", "lower_bound")  # by another prior than the file can hold
    assert quantised(loaded, bits=10).certificate.stated == ("loss", "lower_bound")
    priced = quantised(loaded, bits=10, problem=mdp.Problem(loaded.inputs, 1.0, prior=prior)).certificate
    assert priced.stated == ()
    assert priced.lower_bound == 0.0


@pytest.mark.parametrize("name", TABLES)
def test_saving_never_changes_a_law(name: str, path: Path) -> None:
    made = TABLES[name]()
    for storage in (None, "dense", "sparse"):
        save(made, path, storage=storage)  # type: ignore[arg-type]
        assert load(path).matrix.tobytes() == made.matrix.tobytes()  # type: ignore[attr-defined]
    if name == "remapped" or name == "zeros":
        return
    with pytest.raises(InvalidInput, match=r"never changes a distribution: round them first with mdp\.quantised"):
        save(made, path, storage="quantised")
    rounded = quantised(made, bits=16)
    for storage in (None, "dense", "sparse", "quantised"):
        save(rounded, path, storage=storage)  # type: ignore[arg-type]
        assert load(path).matrix.tobytes() == rounded.matrix.tobytes()  # type: ignore[attr-defined]


def test_the_smallest_storage_is_taken_unless_one_is_named(path: Path) -> None:
    for made, wanted in (
        (some_matrix(), "dense"),
        (with_zeros(), "sparse"),
        (quantised(some_matrix(), bits=16), "quantised"),
        (OTHERS["sphere"](), "dense"),
    ):
        save(made, path)
        assert inspect(path).storage == wanted
        sizes = []
        for storage in ("dense", "sparse", "quantised"):
            with suppress(InvalidInput):
                sizes.append(len(dumps(made, storage=storage)))
        assert path.stat().st_size <= min(sizes) + 256  # its header may be a few words longer


def test_bytes_and_files_are_the_same(path: Path, keys: tuple[Path, Path]) -> None:
    made = some_matrix()
    data = dumps(made, licence="© x", key=keys[0])
    save(made, path, licence="© x", key=keys[0])
    assert path.read_bytes() == data
    assert loads(data, trusted=keys[1]).matrix.tobytes() == made.matrix.tobytes()  # type: ignore[attr-defined]
    assert loads(data, verify=False).guarantee.epsilon == 1.0
    with pytest.raises(CorruptFile, match="'the mechanism' was refused: it is cut off"):
        loads(data[:-1])
    with pytest.raises(CorruptFile, match="it has no signature"):
        loads(dumps(made), trusted=keys[1])
    save(made, path)
    rewritten(path, lambda m, t: m["guarantee"].update(epsilon=0.3))
    with pytest.raises(CorruptFile, match="does not keep the guarantee"):
        loads(path.read_bytes())
    assert mdp.audit(loads(path.read_bytes(), verify=False)).verdict == "violated"


def test_too_few_bits_are_refused(path: Path) -> None:
    fine = mdp.exponential(mdp.FiniteSpace(grid(12) * 0.05, mdp.Lp(2)), 1.0)
    with pytest.raises(Infeasible, match=r"8 bits are too few for 144 reports.* 16 bits are enough"):
        quantised(fine, bits=8)
    assert quantised(fine, bits=16).certificate.epsilon <= 1.0
    for bits in (7, 53, 16.0):
        with pytest.raises(InvalidInput, match="`bits`"):
            quantised(fine, bits=bits)  # type: ignore[arg-type]
    with pytest.raises(InvalidInput, match="one of dense"):
        save(fine, path, storage="tiny")  # type: ignore[arg-type]
    with pytest.raises(InvalidInput, match="omit `storage`"):
        save(OTHERS["sphere"](), path, storage="sparse")
    with pytest.raises(InvalidInput, match="at most"):
        save(fine, path, licence="x" * 20_000)


SAVED: dict[str, tuple[Callable[[], Any], dict[str, Any]]] = {
    "dense": (some_matrix, {}),
    "sparse": (with_zeros, {"storage": "sparse", "licence": "© x"}),
    "quantised": (lambda: quantised(some_matrix(), bits=16), {}),
    "interpolated": (lambda: quantised(interpolated()), {}),
    "streets": (streets, {}),
    "sphere": (OTHERS["sphere"], {}),
    "plane": (OTHERS["ellipse"], {}),
    "words": (OTHERS["words"], {}),
    "product": (lambda: place_and_hour(), {}),
}


@pytest.mark.parametrize("signed", [False, True], ids=["unsigned", "signed"])
@pytest.mark.parametrize("name", SAVED)
def test_one_flipped_byte_anywhere_is_refused(name: str, signed: bool, path: Path, keys: tuple[Path, Path]) -> None:
    build, options = SAVED[name]
    save(build(), path, key=keys[0] if signed else None, **options)
    data = path.read_bytes()
    rng = np.random.default_rng(len(name) + signed)
    for position in rng.integers(0, len(data), 1_000):
        changed = bytearray(data)
        changed[position] ^= int(rng.integers(1, 256))
        path.write_bytes(changed)
        with pytest.raises(CorruptFile):
            load(path)
    for size in rng.integers(0, len(data), 50):
        path.write_bytes(data[:size])
        with pytest.raises(CorruptFile):
            load(path)
    for tail in (b"\0", b" ", data):
        path.write_bytes(data + tail)
        with pytest.raises(CorruptFile):
            load(path)
    path.write_bytes(data)
    load(path)


@pytest.mark.parametrize("name", ["dense", "sparse", "quantised"])
def test_swapped_tensors_are_refused(name: str, path: Path) -> None:
    build, options = SAVED[name]
    save(build(), path, **options)
    data = path.read_bytes()
    size = int.from_bytes(data[:8], "little")
    header = json.loads(data[8 : 8 + size])
    body = header["__metadata__"]["metricdp"]
    spans = {key: entry["data_offsets"] for key, entry in header.items() if key != "__metadata__"}
    one, two = sorted(spans, key=lambda key: spans[key][1] - spans[key][0])[-2:]
    text = data[8 : 8 + size].decode()
    swapped = text.replace(f'"{one}":', '"@":').replace(f'"{two}":', f'"{one}":').replace('"@":', f'"{two}":')
    assert body
    path.write_bytes(data[:8] + swapped.encode() + data[8 + size :])
    with pytest.raises(CorruptFile):
        load(path)

    def exchange(manifest: dict[str, Any], tensors: dict[str, Any]) -> None:
        tensors[one], tensors[two] = tensors[two], tensors[one]

    save(build(), path, **options)
    rewritten(path, exchange)  # with a checksum that fits
    with pytest.raises(CorruptFile):
        load(path)


def forge_counts(manifest: dict[str, Any], tensors: dict[str, Any]) -> None:
    counts = tensors["matrix.counts"]
    moved = counts[0, 0] - 1
    counts[0, 0] -= moved
    counts[0, 1] += moved


def forge_values(manifest: dict[str, Any], tensors: dict[str, Any]) -> None:
    tensors["matrix.values"][0] += tensors["matrix.values"][1] * 0.999
    tensors["matrix.values"][1] *= 0.001


@pytest.mark.parametrize(
    ("options", "change", "message"),
    [
        ({"storage": "quantised"}, forge_counts, "does not keep the guarantee"),
        ({"storage": "sparse"}, forge_values, "does not keep the guarantee"),
        ({"storage": "quantised"}, lambda m, t: t["matrix.counts"].__setitem__((0, 0), 1), "does not sum"),
        ({"storage": "quantised"}, lambda m, t: m["body"]["matrix"].update(bits=17), "does not sum"),
        ({"storage": "quantised"}, lambda m, t: m["body"]["matrix"].update(bits=99), "number of bits"),
        ({"storage": "quantised"}, lambda m, t: m["body"]["matrix"].update(more=1), "unknown way"),
        ({"storage": "quantised"}, lambda m, t: m["body"]["matrix"].update(shape=[25, 26]), "make a mechanism"),
        ({"storage": "quantised"}, lambda m, t: m["body"]["matrix"].update(shape=[25, 2**40]), "a side of its matrix"),
        ({"storage": "quantised"}, lambda m, t: m["body"]["matrix"].update(shape=[25, 2**28]), "of memory"),
        ({"storage": "quantised"}, lambda m, t: t["matrix.columns"].__setitem__(0, 1), "in order"),
        ({"storage": "quantised"}, lambda m, t: t["matrix.columns"].__setitem__(-1, 30), "in order"),
        ({"storage": "sparse"}, lambda m, t: t["matrix.values"].__setitem__(0, 0.0), "not positive"),
        ({"storage": "sparse"}, lambda m, t: t.update({"matrix.values": t["matrix.values"][1:].copy()}), "do not fill"),
        ({"storage": "sparse"}, lambda m, t: m["body"]["matrix"].update(storage="magic"), "unknown way"),
    ],
)  # fmt: skip
def test_forged_tables_are_refused(options: Any, change: Any, message: str, path: Path) -> None:
    made = some_matrix()
    save(quantised(made) if options["storage"] == "quantised" else made, path, **options)
    rewritten(path, change)
    with pytest.raises(CorruptFile, match=message):
        load(path)


def test_forged_bits_are_refused(path: Path) -> None:
    save(with_zeros(), path, storage="sparse")
    rewritten(path, lambda m, t: t["matrix.present"].__setitem__(0, 255))
    with pytest.raises(CorruptFile, match="where the probabilities belong"):
        load(path)


def test_a_signature_says_who(path: Path, tmp_path: Path, keys: tuple[Path, Path]) -> None:
    private, public = keys
    assert stat.S_IMODE(private.stat().st_mode) == 0o600
    assert private.read_text().startswith("-----BEGIN PRIVATE KEY-----")
    assert public.read_text().startswith("-----BEGIN PUBLIC KEY-----")
    _, other = create_keys(tmp_path / "other")
    save(some_matrix(), path, key=private)
    found = inspect(path, trusted=public)
    assert found.trusted
    assert len(found.signed_by) == 64
    assert not inspect(path).trusted  # a good signature, by a key that nobody vouched for
    assert load(path, trusted=[other, public]).guarantee.epsilon == 1.0
    with pytest.raises(CorruptFile, match="not a trusted key"):
        load(path, trusted=other)
    save(some_matrix(), path)
    with pytest.raises(CorruptFile, match="it has no signature"):
        load(path, trusted=public)


def test_a_forger_without_the_key_is_refused(path: Path, keys: tuple[Path, Path]) -> None:
    changes: list[Callable[[Any, Any], Any]] = [
        lambda m, t: m.update(licence="mine"),
        lambda m, t: m["certificate"].update(loss=0.1),
        lambda m, t: m["guarantee"].update(epsilon=2.0),  # true, but not what was signed
    ]
    for change in changes:
        save(some_matrix(), path, key=keys[0])
        rewritten(path, change)
        for trusted in (None, keys[1]):
            with pytest.raises(CorruptFile, match="altered after it was signed"):
                load(path, trusted=trusted)
    save(some_matrix(), path, key=keys[0])
    rewritten(path, lambda m, t: m.update(signature=None))
    load(path)
    with pytest.raises(CorruptFile, match="it has no signature"):
        load(path, trusted=keys[1])
    for entry in ({"algorithm": "none"}, {"public_key": "A" * 64}, {"value": "zz"}, {"more": 1}):
        save(some_matrix(), path, key=keys[0])
        rewritten(path, lambda m, t, e=entry: m["signature"].update(e))
        with pytest.raises(CorruptFile):
            load(path)


def test_openssl_agrees_about_the_signature(path: Path, tmp_path: Path, keys: tuple[Path, Path]) -> None:
    """The rule as docs/format.md states it, by hand and with another program."""
    import hashlib
    import shutil

    if shutil.which("openssl") is None:
        pytest.skip("openssl is not installed")
    save(some_matrix(), path, key=keys[0])
    data = path.read_bytes()
    size = int.from_bytes(data[:8], "little")
    manifest = json.loads(json.loads(data[8 : 8 + size])["__metadata__"]["metricdp"])
    value = manifest["signature"]["value"]
    blank = data.replace(manifest["sha256"].encode(), b"0" * 64).replace(value.encode(), b"0" * 128)
    (tmp_path / "message").write_bytes(b"metricdp-mechanism-signature-1\0" + hashlib.sha256(blank).digest())
    (tmp_path / "signature").write_bytes(bytes.fromhex(value))
    command = ["openssl", "pkeyutl", "-verify", "-pubin", "-inkey", str(keys[1]), "-rawin"]
    files = ["-in", str(tmp_path / "message"), "-sigfile", str(tmp_path / "signature")]
    assert subprocess.run([*command, *files], capture_output=True, check=False).returncode == 0
    (tmp_path / "signature").write_bytes(bytes(64))
    assert subprocess.run([*command, *files], capture_output=True, check=False).returncode != 0


def test_bad_keys_are_refused(path: Path, tmp_path: Path, keys: tuple[Path, Path]) -> None:
    made = some_matrix()
    with pytest.raises(OutputProblem, match="never overwritten"):
        create_keys(str(keys[0]).removesuffix(".key"))
    with pytest.raises(InvalidInput, match="does not exist"):
        save(made, path, key=tmp_path / "none.key")
    junk = tmp_path / "junk.key"
    junk.touch(mode=0o600)
    with pytest.raises(InvalidInput, match="not a private key"):
        save(made, path, key=junk)
    open_key = tmp_path / "open.key"
    open_key.write_bytes(keys[0].read_bytes())
    if os.name == "posix":
        open_key.chmod(0o644)
        with pytest.raises(InvalidInput, match="chmod 600"):
            save(made, path, key=open_key)
    assert not path.exists()
    save(made, path, key=keys[0])
    with pytest.raises(InvalidInput, match="is a private key"):
        load(path, trusted=keys[0])
    with pytest.raises(InvalidInput, match="not a public key"):
        load(path, trusted=path)
    with pytest.raises(InvalidInput, match="names no key"):
        load(path, trusted=[])


def test_products_come_back(path: Path) -> None:
    made = place_and_hour()
    save(made, path, licence="mine")
    back: Any = load(path)
    secrets = [np.array([[41.1, -8.6], [90.0, 0.0]]), np.array([3, 23]), np.array([0, 24])]
    ours, theirs = (m.sample(secrets, rng=np.random.default_rng(1)) for m in (made, back))
    assert all(np.array_equal(a, b) for a, b in zip(ours, theirs, strict=True))
    assert mdp.audit(back).verdict == "holds"
    first = path.read_bytes()
    save(back, path, licence="mine")
    assert path.read_bytes() == first
    with pytest.raises(InvalidInput, match="omit `storage`"):
        save(made, path, storage="sparse")


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda m, t: m["guarantee"].update(epsilon=0.5), "violated"),
        (lambda m, t: m["guarantee"].update(radius=1.0), "not the sum"),
        (lambda m, t: m["body"]["parts"][1]["guarantee"].update(radius=1.0), "close ones alone"),
        (lambda m, t: m["body"]["parts"][1]["guarantee"].update(epsilon=0.1), "part 1"),
        (lambda m, t: m["body"]["parts"][1]["guarantee"].update(epsilon=0.9), "not the sum"),
        (lambda m, t: m["body"]["parts"][0]["body"].update(epsilon=20.0), "part 0"),
        (lambda m, t: m["body"]["parts"].reverse(), "not the sum"),
        (lambda m, t: m["body"]["parts"][0].update(kind="product"), "does not know"),
        (lambda m, t: m["metrics"][-1]["parameters"]["parts"][0].__setitem__(2, 99.0), "not the sum"),
    ],
)
def test_forged_products_are_refused(change: Any, message: str, path: Path) -> None:
    save(place_and_hour(), path)
    rewritten(path, change)
    with pytest.raises(CorruptFile, match=message):
        load(path)


def test_streets_come_back(path: Path) -> None:
    made = streets()
    save(made, path)
    back: Any = load(path)
    places = np.array([[0.0, 0.3], [5.0, 2.9], [3.0, 1.25]])
    assert np.array_equal(back.probabilities(places), made.probabilities(places))
    seeds = [np.random.default_rng(1) for _ in range(2)]
    ours, theirs = made.sample(places, rng=seeds[0]), back.sample(places, rng=seeds[1])
    assert np.array_equal(ours, theirs)
    rewritten(path, lambda m, t: m["guarantee"].update(epsilon=0.3))
    with pytest.raises(CorruptFile, match="does not keep"):
        load(path)


def test_a_broken_law_gets_no_file(path: Path) -> None:
    good = some_matrix()
    bad: Mechanism = replace(good, guarantee=replace(good.guarantee, epsilon=0.5))
    with pytest.raises(NotPrivate, match="not saved"):
        save(bad, path)
    assert container.VERSION == 2


def test_loading_needs_no_compiler() -> None:
    """A file opens without the slow start of the optional compiler (a second on its own)."""
    code = (
        "import sys, metricdp as mdp; mdp.load(sys.argv[1]); "
        "print([name for name in ('numba', 'clarabel', 'pyarrow', 'cryptography') if name in sys.modules])"
    )
    command = [sys.executable, "-c", code, str(DATA / "v1-matrix.mdp")]
    assert subprocess.run(command, check=True, capture_output=True, text=True).stdout.strip() == "[]"
