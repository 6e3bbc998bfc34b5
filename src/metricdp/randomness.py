"""The only file that draws randomness.

A `Source` hands out 64-bit words. `None` everywhere means the operating system's cryptographic generator. A NumPy
`Generator` (seeded, for tests and simulations) has to be passed explicitly. A `KeyedSource` derives its words from a
secret key and a label, so that a retried task draws the same noise again.
"""

from __future__ import annotations

import hashlib
import os
import threading
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from metricdp.arrays import Floats, Words
from metricdp.errors import InvalidInput

LONG_DRAW = 4096  # words beyond which a stream of its own is quicker than the system, and as good


class Source(Protocol):
    """Something that hands out independent uniform 64-bit words."""

    def words(self, count: int, /) -> Words:
        """Return `count` uniform 64-bit words."""


Randomness = np.random.Generator | Source | None


class SystemSource:
    """The operating system's cryptographic generator; many words at once are ChaCha20 under 32 bytes of it."""

    def words(self, count: int, /) -> Words:
        if count > LONG_DRAW:
            return fresh_stream().words(count)
        return np.frombuffer(os.urandom(8 * count), dtype=np.uint64)


@dataclass(frozen=True)
class GeneratorSource:
    """A NumPy generator, for tests and simulations only."""

    generator: np.random.Generator

    def words(self, count: int, /) -> Words:
        return np.frombuffer(self.generator.bytes(8 * count), dtype=np.uint64)


class KeyedSource:
    """ChaCha20 words under a secret key and a public label such as a job and partition number.

    The same key and label give the same words; two labels give independent streams. Whoever holds the key can undo
    the noise: keep it as safe as the secrets and destroy it after the job.
    """

    def __init__(self, key: bytes, label: str) -> None:
        from cryptography.hazmat.primitives.ciphers import Cipher, algorithms

        if len(key) != 32:
            raise InvalidInput(f"`key` must be 32 secret bytes, got {len(key)}.")
        stream_key = hashlib.blake2b(label.encode(), key=key, digest_size=32).digest()
        # One key a label, so the nonce (8 bytes of block counter, 8 of nonce) may stay zero.
        self._stream = Cipher(algorithms.ChaCha20(stream_key, bytes(16)), mode=None).encryptor()
        self._lock = threading.Lock()

    def words(self, count: int, /) -> Words:
        with self._lock:
            return np.frombuffer(self._stream.update(bytes(8 * count)), dtype=np.uint64)


def fresh_stream() -> KeyedSource:
    """Return a cryptographic stream of its own: ChaCha20 under 32 new bytes of the operating system."""
    return KeyedSource(os.urandom(32), "fresh")


def source_of(rng: Randomness) -> Source:
    """Return the source behind what the user passed; `None` is the operating system's generator."""
    if rng is None:
        return SystemSource()
    if isinstance(rng, np.random.Generator):
        return GeneratorSource(rng)
    if hasattr(rng, "words"):
        return rng
    raise InvalidInput(
        f"`rng` must be None (cryptographic), a numpy Generator or a source of words, got {type(rng).__name__}."
    )


def open_uniform(count: int, source: Source) -> Floats:
    """Return uniform numbers in (0, 1), each right to 2**-52 of itself: 64 random bits, and 64 more below 2**-12."""
    words = source.words(count)
    numbers = (words.astype(np.float64) + 0.5) * 2.0**-64
    small = np.flatnonzero(words < np.uint64(2**52))
    if small.size:
        deeper = source.words(small.size).astype(np.float64) * 2.0**-64
        numbers[small] = (words[small].astype(np.float64) + deeper + 2.0**-65) * 2.0**-64
    return np.minimum(numbers, 1.0 - 2.0**-53)


def exponential(count: int, source: Source) -> Floats:
    """Return standard exponential variates."""
    return -np.log(open_uniform(count, source))


def erlang(shape: int, count: int, source: Source) -> Floats:
    """Return Gamma(shape, 1) variates for a whole-number shape: minus the log of a product of uniforms."""
    total = np.zeros(count)
    for start in range(0, shape, 4):  # four factors cannot underflow
        factors = min(4, shape - start)
        total -= np.log(open_uniform(factors * count, source).reshape(factors, count).prod(axis=0))
    return total


def signed_gamma_root(p: float, size: tuple[int, ...], source: Source) -> Floats:
    """Return s * G**(1/p) with G ~ Gamma(1/p) and a fair sign s: the direction law of the l_p Laplace."""
    from scipy.special import gamma, gammaincinv, ndtri

    count = int(np.prod(size))
    uniform = open_uniform(count, source)
    if np.isinf(p):
        return (2.0 * uniform - 1.0).reshape(size)
    if p == 2.0:
        return np.asarray(ndtri(uniform)).reshape(size)
    upper = uniform >= 0.5
    fraction = np.where(upper, 2.0 * uniform - 1.0, 2.0 * uniform)
    fraction = np.clip(fraction, 2.0**-64, 1.0 - 2.0**-53)
    if p == 1.0:
        magnitude = -np.log(fraction)
    else:
        drawn = gammaincinv(1.0 / p, fraction)
        # Near zero P(a, x) = x^a / Gamma(a + 1) to the last digit, and x may be no double: take its root at once.
        tiny = drawn < 1e-250
        magnitude = np.where(tiny, fraction * gamma(1.0 + 1.0 / p), np.where(tiny, 1.0, drawn) ** (1.0 / p))
    return np.where(upper, magnitude, -magnitude).reshape(size)
