"""Files of kernels: vectors inside, or named with their checksums and never believed."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import metricdp as mdp
from forging import Manifest, Tensors, rewritten
from instances import some_kernel
from metricdp.artifacts import create_keys, dumps, inspect, load, loads, save
from metricdp.errors import CorruptFile, InvalidInput, NotPrivate


@pytest.fixture(scope="module")
def kernel() -> mdp.mechanisms.KernelMechanism:
    return some_kernel()


@pytest.fixture
def vectors(tmp_path: Path, kernel: mdp.mechanisms.KernelMechanism) -> Path:
    """A file of vectors with the words of the kernel in another order, and one more."""
    words, points = kernel.space.coordinates[:, 0], kernel.space.points
    turned, extra = [*words[::-1], "another"], np.vstack([points[::-1], np.ones(3)])
    path = tmp_path / "words.npz"
    np.savez(path, words=turned, vectors=extra.astype(np.float32))
    return path


@pytest.fixture
def named(tmp_path: Path, kernel: mdp.mechanisms.KernelMechanism, vectors: Path) -> Path:
    return save(kernel, tmp_path / "words.mdp", vectors=vectors)


def same(one: mdp.mechanisms.KernelMechanism, two: Any) -> bool:
    fields = ("inner", "cap", "log_normalisers", "log_weights")
    equal = all(np.array_equal(getattr(one, name), getattr(two, name)) for name in fields)
    return equal and np.array_equal(one.space.points, two.space.points)


@pytest.mark.parametrize("weights", [None, np.linspace(1.0, 3.0, 24)])
def test_every_bit_comes_back(kernel: mdp.mechanisms.KernelMechanism, weights: Any, tmp_path: Path) -> None:
    made = mdp.weighted_exponential(kernel.space, 0.9, weights=weights, form="kernel")
    found = inspect(save(made, tmp_path / "kernel.mdp"))
    assert same(made, found.mechanism)
    assert (found.kind, found.storage, found.vectors) == ("kernel", "dense", ())
    assert found.mechanism.certificate.stated == ()  # the loss was computed again
    secrets = np.arange(24).repeat(5)
    draws = [each.sample(secrets, rng=np.random.default_rng(1)) for each in (made, found.mechanism)]
    assert np.array_equal(*draws)
    with pytest.raises(InvalidInput, match="no table of probabilities of its own that could be sparse"):
        save(made, tmp_path / "other.mdp", storage="sparse")


def test_named_vectors_come_back_from_beside_the_file_from_a_folder_and_as_given(
    named: Path, vectors: Path, kernel: mdp.mechanisms.KernelMechanism, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert inspect(named).vectors == ("words.npz",)
    assert same(kernel, load(named))
    assert named.stat().st_size < len(dumps(kernel))
    away = tmp_path / "away"
    away.mkdir()
    moved = vectors.rename(away / "words.npz")
    assert same(kernel, load(named, vectors=moved))
    assert same(kernel, loads(named.read_bytes(), vectors=[moved]))
    with pytest.raises(CorruptFile, match=r"names vectors in 'words.npz' .* which is not there\. Put that file beside"):
        load(named)
    monkeypatch.setenv("METRICDP_VECTORS", str(away))
    assert same(kernel, load(named))


def test_vectors_of_two_files_are_one_vocabulary(kernel: mdp.mechanisms.KernelMechanism, tmp_path: Path) -> None:
    words, points = kernel.space.coordinates[:, 0], kernel.space.points.astype(np.float32)
    parts = [tmp_path / "frequent.npz", tmp_path / "rare.npz"]
    np.savez(parts[0], words=words[:10], vectors=points[:10])
    np.savez(parts[1], words=words[10:], vectors=points[10:])
    path = save(kernel, tmp_path / "both.mdp", vectors=parts)
    assert same(kernel, load(path))
    assert inspect(path).vectors == ("frequent.npz", "rare.npz")


def test_another_file_of_vectors_is_refused(named: Path, vectors: Path) -> None:
    data = bytearray(vectors.read_bytes())
    data[len(data) // 2] ^= 1
    vectors.write_bytes(data)
    with pytest.raises(CorruptFile, match="is not the file of vectors that it names, whose sha256 begins"):
        load(named)
    vectors.write_bytes(data[:-1])
    with pytest.raises(CorruptFile, match=r"has [\d,]+ bytes, the vectors it names [\d,]+"):
        load(named)


def test_vectors_that_are_not_those_of_the_mechanism_are_refused_when_it_is_saved(
    kernel: mdp.mechanisms.KernelMechanism, vectors: Path, tmp_path: Path
) -> None:
    words, points = kernel.space.coordinates[:, 0], kernel.space.points
    np.savez(tmp_path / "other.npz", words=words, vectors=(1.5 * points).astype(np.float32))
    with pytest.raises(InvalidInput, match=r"the vectors of this mechanism are not those in other\.npz"):
        dumps(kernel, vectors=tmp_path / "other.npz")
    np.savez(tmp_path / "fewer.npz", words=words[1:], vectors=points[1:].astype(np.float32))
    with pytest.raises(InvalidInput, match=r"the word .word0. is not in fewer\.npz"):
        dumps(kernel, vectors=tmp_path / "fewer.npz")
    with pytest.raises(InvalidInput, match="for mechanisms on words that are measured by their vectors"):
        dumps(mdp.exponential(mdp.FiniteSpace(points, mdp.Lp(2)), 1.0), vectors=vectors)


FORGED: dict[str, Any] = {
    "another folder": lambda entry: entry["files"][0].update(name="../words.npz"),
    "no name": lambda entry: entry["files"][0].update(name=""),
    "no checksum": lambda entry: entry["files"][0].update(sha256="0"),
    "no size": lambda entry: entry["files"][0].update(bytes=-1),
    "no files": lambda entry: entry.update(files=[]),
    "many files": lambda entry: entry.update(files=entry["files"] * 99),
    "other points": lambda entry: entry.update(sha256="0" * 64),
    "more than there is": lambda entry: entry.update(path="/etc/passwd"),
}


@pytest.mark.parametrize("name", FORGED)
def test_forged_references_are_refused(name: str, named: Path) -> None:
    def change(manifest: Manifest, tensors: Tensors) -> None:
        FORGED[name](manifest["spaces"][0]["points"])

    rewritten(named, change)
    with pytest.raises(CorruptFile, match="was refused"):
        load(named)


def test_rows_that_the_file_does_not_have_are_refused(named: Path) -> None:
    def change(manifest: Manifest, tensors: Tensors) -> None:
        tensors["points.rows"][3] = 200

    rewritten(named, change)
    with pytest.raises(CorruptFile, match="names rows that its file does not have"):
        load(named)


def test_a_steeper_kernel_or_another_normaliser_is_refused(
    kernel: mdp.mechanisms.KernelMechanism, tmp_path: Path
) -> None:
    path = save(kernel, tmp_path / "kernel.mdp")
    rewritten(path, lambda manifest, tensors: manifest["body"].update(inner=1.3 * kernel.inner))
    with pytest.raises(CorruptFile, match="does not keep the guarantee in the file"):
        load(path)
    save(kernel, path)

    def change(manifest: Manifest, tensors: Tensors) -> None:
        tensors[manifest["body"]["log_normalisers"]][5] += 0.1

    rewritten(path, change)
    with pytest.raises(CorruptFile, match="normaliser of secret 5"):
        load(path)


def test_a_signature_covers_the_names_of_vectors(
    kernel: mdp.mechanisms.KernelMechanism, vectors: Path, tmp_path: Path
) -> None:
    private, public = create_keys(tmp_path / "me")
    path = save(kernel, tmp_path / "signed.mdp", vectors=vectors, key=private)
    assert same(kernel, load(path, trusted=public))
    rewritten(path, lambda manifest, tensors: manifest["spaces"][0]["points"]["files"][0].update(name="else.npz"))
    with pytest.raises(CorruptFile):
        load(path, trusted=public, vectors=vectors)


def test_a_kernel_that_breaks_its_promise_is_not_saved(kernel: mdp.mechanisms.KernelMechanism, tmp_path: Path) -> None:
    from dataclasses import replace

    broken = replace(kernel, guarantee=replace(kernel.guarantee, epsilon=0.5 * kernel.guarantee.epsilon))
    with pytest.raises(NotPrivate, match="was not saved"):
        save(broken, tmp_path / "broken.mdp")
