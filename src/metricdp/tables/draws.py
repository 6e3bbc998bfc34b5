"""Which random stream a batch draws from, where an engine may run the same work twice; and the mark of simulations.

Engines retry, speculate and resume. If a batch that was run twice drew twice, its secrets could be released twice; if
two different batches drew the same stream, their difference would be released without noise. So the stream of a batch
is ChaCha20 under a key derived (keyed BLAKE2b) from the secret job key and all of

    what is applied      the mechanism's own bytes, the columns, snapping, what becomes of bad rows
    where it is          the partition and the number of the batch in it
    what is in it        the secrets themselves, bad rows included

Run again, the same batch gives the same reports: nothing is released twice. Anything else gets an independent stream:
the same secrets in another place, other secrets in the same place (the input changed between two tries), or the same
secrets under another mechanism or epsilon, where equal noise would let a reader solve for the secret. To whoever does
not hold the key the stream is as good as fresh randomness, since every content is asked for at one label only: the
reports have the law of the mechanism, whatever the secrets are.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from metricdp.randomness import KeyedSource, Randomness, SystemSource

KEY_BYTES = 32


@dataclass(frozen=True)
class Draws:
    """The place of one batch in a job: whoever holds it can derive the stream of that batch.

    `key` is secret. It is never part of a text: `repr` leaves it out.
    """

    key: bytes
    partition: str
    batch: int
    applied: str

    def __repr__(self) -> str:
        return f"Draws(partition {self.partition}, batch {self.batch})"

    def piece(self, number: int) -> Draws:
        """Return the place of a piece of the batch, where it is too long to be protected at once."""
        return Draws(self.key, f"{self.partition}, batch {self.batch}", number, self.applied)

    def source(self, content: Sequence[Any]) -> KeyedSource:
        """Return the stream for secrets with this content."""
        parts = (self.applied, self.partition, str(self.batch), *(fingerprint(part) for part in content))
        # Lengths go with the parts, so that no two lists of parts make one label.
        return KeyedSource(self.key, "".join(f"{len(part)}:{part}," for part in parts))


@dataclass(frozen=True, repr=False)
class KeyedDraws:
    """The streams of one partition of a job, one for every batch."""

    key: bytes
    partition: str
    applied: str
    simulated: bool = False  # the key came from a seed

    def batch(self, number: int) -> Draws:
        """Return the place of a batch, by its number in the partition."""
        return Draws(self.key, self.partition, number, self.applied)


def is_simulated(draws: Randomness | KeyedDraws) -> bool:
    """Tell whether reports drawn so are for simulations: from a generator, or a source that is not cryptographic."""
    if isinstance(draws, KeyedDraws):
        return draws.simulated
    return not (draws is None or isinstance(draws, SystemSource | KeyedSource))


def fingerprint(content: Any) -> str:
    """Return a digest of secrets as they were read: numbers as doubles, words and texts as bytes."""
    digest = hashlib.blake2b(digest_size=32)
    if isinstance(content, np.ndarray):
        rows = np.ascontiguousarray(content, dtype=np.float64)
        digest.update(f"numbers {rows.shape}".encode())
        digest.update(memoryview(rows).cast("B"))  # type: ignore[arg-type]
    else:
        lengths = pc.fill_null(pc.binary_length(content), -1).to_numpy(zero_copy_only=False)
        plain = content.fill_null("") if content.null_count else content
        large = pa.types.is_large_string(content.type)
        kind: Any = np.int64 if large else np.int32
        offsets = np.frombuffer(plain.buffers()[1], dtype=kind)[plain.offset : plain.offset + len(plain) + 1]
        digest.update(f"{'texts' if large else 'words'} {len(content)}".encode())
        digest.update(np.ascontiguousarray(lengths, dtype=kind).tobytes())
        if len(plain) and plain.buffers()[2] is not None:
            digest.update(memoryview(plain.buffers()[2])[int(offsets[0]) : int(offsets[-1])])
    return digest.hexdigest()


SIMULATED_KEY = "metricdp.simulated"
SIMULATED_COLUMN = "metricdp_simulated"  # in CSV files and Polars frames, which have no metadata
SIMULATED = "drawn from a seeded generator: for tests and simulations, not for release"


def mark_schema(schema: pa.Schema) -> pa.Schema:
    """Return the schema with the mark."""
    return schema.with_metadata({**(schema.metadata or {}), SIMULATED_KEY.encode(): SIMULATED.encode()})


def mark_table(table: Any) -> Any:
    """Return a record batch or table with the mark."""
    return table.replace_schema_metadata(mark_schema(table.schema).metadata)


def is_marked(schema: pa.Schema) -> bool:
    """Tell whether a schema carries the mark."""
    return SIMULATED_KEY.encode() in (schema.metadata or {})
