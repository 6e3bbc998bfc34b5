"""The only file that draws randomness.

A `RandomSource` hands out 64-bit words. `None` everywhere means the operating system's cryptographic generator. A NumPy
`Generator` (seeded, for tests and simulations) has to be passed explicitly. A `KeyedSource` derives its words from a
secret key and a label, so that a retried task draws the same noise again.
"""

from __future__ import annotations

import hashlib
import os
import threading
from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from metricdp.arrays import Floats, Words
from metricdp.errors import InvalidInput

LONG_DRAW = 4096  # words beyond which a stream of its own is quicker than the system, and as good


class RandomSource(Protocol):
    """Something that hands out independent uniform 64-bit words."""

    def words(self, count: int, /) -> Words:
        """Return `count` uniform 64-bit words."""


Randomness = np.random.Generator | RandomSource | None


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

    The same key and label give the same words; two labels give independent streams. Those who hold the key can undo
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


class RowWords:
    """The random words of many rows, each found by its place, so that neither order nor batches matter.

    Uniform k of attempt a of row r is the binary fraction of the words w0 w1 w2 ..., as many as somebody asks for. Word
    number l of it is word r * width + k of the ChaCha20 stream under `key` whose nonce is (a, l), 32 bits each.
    """

    def __init__(self, key: bytes, width: int) -> None:
        self._key, self.width = key, width

    def first(self, attempt: int, start: int, stop: int) -> Words:
        """Return the first words of all uniforms of the rows from `start` to `stop`."""
        words = self._words(attempt, 0, start * self.width, (stop - start) * self.width)
        return words.reshape(stop - start, self.width)

    def digits(self, row: int) -> Callable[[int, int, int], int]:
        """Return what gives the first `count` words of a uniform of the row as a whole number of 64 * count bits."""
        known: dict[tuple[int, int], list[int]] = {}

        def number(attempt: int, uniform: int, count: int) -> int:
            value = 0
            for limb in range(count):
                if (attempt, limb) not in known:
                    known[attempt, limb] = self._words(attempt, limb, row * self.width, self.width).tolist()
                value = (value << 64) | known[attempt, limb][uniform]
            return value

        return number

    def _words(self, attempt: int, limb: int, at: int, count: int) -> Words:
        from cryptography.hazmat.primitives.ciphers import Cipher, algorithms

        block, skipped = divmod(at, 8)  # a block of ChaCha20 holds eight words; its number comes before the nonce
        place = block.to_bytes(8, "little") + attempt.to_bytes(4, "little") + limb.to_bytes(4, "little")
        stream = Cipher(algorithms.ChaCha20(self._key, place), mode=None).encryptor()
        return np.frombuffer(stream.update(bytes(8 * (skipped + count))), dtype=np.uint64)[skipped:]


def row_words(source: RandomSource, width: int) -> RowWords:
    """Return the words of the rows of one call, under a key of 32 bytes from the source."""
    return RowWords(source.words(4).tobytes(), width)


def source_of(rng: Randomness) -> RandomSource:
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


def open_uniform(count: int, source: RandomSource) -> Floats:
    """Return uniform numbers in (0, 1), each right to 2**-52 of itself: 64 random bits, and 64 more below 2**-12."""
    words = source.words(count)
    numbers = (words.astype(np.float64) + 0.5) * 2.0**-64
    small = np.flatnonzero(words < np.uint64(2**52))
    if small.size:
        deeper = source.words(small.size).astype(np.float64) * 2.0**-64
        numbers[small] = (words[small].astype(np.float64) + deeper + 2.0**-65) * 2.0**-64
    return np.minimum(numbers, 1.0 - 2.0**-53)
