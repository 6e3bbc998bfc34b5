"""Mechanisms by name, as the service offers them: what a secret looks like, what is drawn, what is said about it.

A report is stored as bytes that say by themselves what they are: a tag of the mechanism that drew it, then doubles, or
words as JSON. So a stored report is only explained by the guarantee it was drawn under.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import pyarrow as pa

from metricdp import messages
from metricdp.arrays import Floats
from metricdp.auditing.accuracy import radii_of
from metricdp.errors import InvalidInput, OutOfDomain
from metricdp.ledger.amounts import Account, accounts_for
from metricdp.mechanisms import (
    MECHANISMS,
    Guarantee,
    Mechanism,
    require_pure,
)
from metricdp.mechanisms.kinds.product import parts_of
from metricdp.rendering import add_old_fields
from metricdp.service.building import SERVICE
from metricdp.service.refusals import Refused
from metricdp.tables import TableTask, protect, rules_of, secrets_of, task_for, usual_names

TAG_BYTES = 8
LEVEL = 0.95  # of the radius that holds the truth
NUMBERS, WORDS = b"n", b"w"
ORDERED, ORDERED_WORDS = b"N", b"W"  # of batches: by the names of persons as the ledger knows them, not as spelled
Secret = Mapping[str, Any] | Sequence[Any] | float | str


@dataclass(frozen=True, eq=False)
class ServedMechanism:
    """One mechanism under its name; values up to `snap` from a secret become it, at a slack that is charged."""

    name: str
    mechanism: Mechanism
    snap: float = 0.0
    sha256: str = ""  # of its file

    def __post_init__(self) -> None:
        if not self.name.replace("-", "_").isidentifier() or len(self.name) > 64:
            raise InvalidInput(
                f"the name of a mechanism must be one word of letters, digits, - and _, got {self.name!r}: "
                "write --mechanism name=file.mdp."
            )
        _ = self.guarantee  # refuses a mechanism without a pure guarantee, before the first request

    @cached_property
    def task(self) -> TableTask:
        """What is done to secrets."""
        return task_for(self.columns, self.mechanism, columns=self.columns, snap=self.snap)

    @cached_property
    def columns(self) -> tuple[str, ...]:
        """What the parts of a secret are called."""
        return usual_names(self.mechanism)

    @property
    def reports(self) -> tuple[str, ...]:
        """What the parts of a report are called."""
        return self.task.reports

    @property
    def guarantee(self) -> Guarantee:
        """The guarantee of one release, the slack of snapping included."""
        return require_pure(self.task.guarantee, *SERVICE)

    @property
    def dimension(self) -> int:
        """How many coordinates a secret has."""
        return self.mechanism.inputs.dimension

    @cached_property
    def accounts(self) -> tuple[Account, ...]:
        """The accounts that a release is charged in: one for most metrics, several for a product."""
        return accounts_for(self.guarantee.metric, dimension=self.dimension)

    @cached_property
    def kinds(self) -> tuple[bool, ...]:
        """Which parts of a secret are words."""
        return tuple(group.mechanism.inputs.is_text for group in self.task.groups for _ in group.columns)

    @cached_property
    def report_kinds(self) -> tuple[bool, ...]:
        """Which parts of a report are words."""
        return tuple(group.mechanism.outputs.is_text for group in self.task.groups for _ in group.reports)

    @cached_property
    def tag(self) -> bytes:
        """The first bytes of stored reports of this mechanism: a digest of its guarantee, its columns and its file."""
        parts = (self.name, repr(self.guarantee), *self.columns, "|", *self.reports, self.sha256, repr(self.mechanism))
        return hashlib.blake2b("\x1f".join(parts).encode(), digest_size=TAG_BYTES).digest()

    @cached_property
    def guarantee_record(self) -> dict[str, Any]:
        """The guarantee in numbers and in words, under its name and the one it had before."""
        values = self.guarantee.to_dict() | {"sentence": self._in_short(self.guarantee)}
        return {"guarantee": values, "promise": values}

    def _in_short(self, guarantee: Guarantee) -> str:
        parts = parts_of(self.mechanism)
        if len(parts) > 1:
            return messages.short_of_parts([require_pure(part.guarantee, "a product") for part in parts])
        return messages.short_sentence(guarantee)

    @cached_property
    def accuracy(self) -> list[dict[str, Any]]:
        """The radius around a report that holds the truth with 95 %, for every part of a product."""
        return [
            {
                "columns": list(group.reports),
                "radius": float(messages.number(radius.value + group.snap, 4, "up")),
                "unit": radius.unit,
                "level": LEVEL,
            }
            for group in self.task.groups
            for radius in radii_of(group.mechanism, (LEVEL,))
        ]

    @cached_property
    def common(self) -> bytes:
        """The end of every answer: what is the same for all reports of this mechanism, as JSON."""
        values = {"mechanism": self.name, **self.guarantee_record, "accuracy": self.accuracy}
        return b"," + json.dumps(values, ensure_ascii=False, separators=(",", ":")).encode()[1:]

    @cached_property
    def description(self) -> dict[str, Any]:
        """What `/v1/mechanisms` says: the guarantee, the certificate, the secret and the report."""
        return {
            "name": self.name,
            "about": "" if (declared := MECHANISMS.of(self.mechanism)) is None else declared.about,
            "sha256": self.sha256,
            "account": self.accounts[0].name,
            "accounts": [one.name for one in self.accounts],
            "secret": [{"name": name, "kind": kind} for name, kind in _parts(self.columns, self.kinds)],
            "report": [{"name": name, "kind": kind} for name, kind in _parts(self.reports, self.report_kinds)],
            "snap": self.snap,
            **self.guarantee_record,
            "accuracy": self.accuracy,
            "certificate": add_old_fields(
                self.mechanism.certificate.to_dict(self.guarantee.unit), unverified="not_verified"
            ),
        }

    def row(self, secret: Secret) -> tuple[Any, ...]:
        """Return the parts of one secret in order: an object by names, a list by places, a single value alone."""
        if isinstance(secret, Mapping):
            if set(secret) != set(self.columns):
                raise self._shape()
            values = [secret[name] for name in self.columns]
        else:
            values = list(secret) if isinstance(secret, Sequence) and not isinstance(secret, str) else [secret]
        if len(values) != len(self.columns):
            raise self._shape()
        for value, text in zip(values, self.kinds, strict=True):
            number = isinstance(value, int | float) and not isinstance(value, bool)
            if not (isinstance(value, str) if text else number):
                raise self._shape()
        return tuple(values)

    def _shape(self) -> Refused:
        parts = ", ".join(f"{name} ({kind})" for name, kind in _parts(self.columns, self.kinds))
        return Refused(422, "invalid", f"`secret` must hold {parts} for the mechanism {self.name}.")

    def arrays(self, rows: Sequence[tuple[Any, ...]]) -> list[pa.Array]:
        """Return secrets as columns."""
        parts = zip(*rows, strict=True) if rows else [()] * len(self.columns)
        return [
            pa.array(part, pa.string()) if text else pa.array(np.array(part, dtype=np.float64))
            for part, text in zip(parts, self.kinds, strict=True)
        ]

    def draw(self, arrays: Sequence[pa.Array]) -> list[pa.Array]:
        """Return one report for every row, with fresh noise; a row that is no secret is refused without its values."""
        try:
            return list(protect(arrays, self.task).columns)
        except OutOfDomain as error:
            raise self._outside(error.rows) from None

    def check(self, arrays: Sequence[pa.Array]) -> None:
        """Refuse rows that are no secrets, before anything is charged or drawn."""
        start = 0
        for group in self.task.groups:
            good = secrets_of(arrays[start : start + len(group.columns)], group).good
            start += len(group.columns)
            if not good.all():
                raise self._outside(tuple(int(row) for row in np.flatnonzero(~good)[:10]))

    def _outside(self, rows: tuple[int, ...]) -> Refused:
        rules = "; ".join(rule.rstrip(".") for group in self.task.groups for rule in rules_of(group))
        sentence = f"the secret is none of the mechanism {self.name}: {rules}."
        return Refused(422, "outside", sentence, rows=list(rows[:10]))

    def encode_reports(self, reports: Sequence[pa.Array], first: int, last: int, *, ordered: bool = False) -> bytes:
        """Return some rows of reports as bytes for the ledger."""
        if not any(self.report_kinds):
            values = np.stack([np.asarray(part.slice(first, last - first)) for part in reports], axis=1)
            return self.tag + (ORDERED if ordered else NUMBERS) + np.ascontiguousarray(values, dtype="<f8").tobytes()
        rows = list(zip(*(part.slice(first, last - first).to_pylist() for part in reports), strict=True))
        text = json.dumps(rows, ensure_ascii=False, separators=(",", ":"))
        return self.tag + (ORDERED_WORDS if ordered else WORDS) + text.encode()

    def decode_reports(self, report: bytes) -> list[tuple[Any, ...]]:
        """Return the rows of a stored report."""
        kind, body = report[TAG_BYTES : TAG_BYTES + 1], report[TAG_BYTES + 1 :]
        if kind in (WORDS, ORDERED_WORDS):
            return [tuple(row) for row in json.loads(body)]
        return [tuple(row) for row in self.numbers(body).tolist()]

    def numbers(self, body: bytes) -> Floats:
        """Return the doubles of stored reports, one row each."""
        return np.frombuffer(body, dtype="<f8").reshape(-1, len(self.reports))


def _parts(names: Sequence[str], are_texts: Sequence[bool]) -> list[tuple[str, str]]:
    """Return the parts of a secret or a report by name, each with its kind."""
    return [(name, "text" if text else "number") for name, text in zip(names, are_texts, strict=True)]


class MechanismRegistry:
    """All mechanisms that are served, by name; the first is taken where none is named."""

    def __init__(self, served: Sequence[ServedMechanism]) -> None:
        if not served:
            raise InvalidInput("name what to serve: --mechanism rome.mdp, or --epsilon 10/km for Laplace noise.")
        self._named = {one.name: one for one in served}
        if len(self._named) < len(served):
            raise InvalidInput("two mechanisms have the same name: write --mechanism name=file.mdp.")
        self._tagged = {one.tag: one for one in served}

    def __iter__(self) -> Any:
        return iter(self._named.values())

    def find(self, name: str | None) -> ServedMechanism:
        """Return the mechanism of a name, or the only one there is."""
        if name is None and len(self._named) == 1:
            return next(iter(self._named.values()))
        found = self._named.get(name or "")
        if found is None:
            raise Refused(404, "unknown_mechanism", f"`mechanism` must be one of {', '.join(self._named)}.")
        return found

    def of_report(self, report: bytes) -> ServedMechanism:
        """Return the mechanism that drew a stored report."""
        found = self._tagged.get(report[:TAG_BYTES])
        if found is None:
            raise Refused(
                409, "other_mechanism", "this request was answered by a mechanism that is no longer served: its report "
                "cannot be explained here. Nothing was charged now; a new request id draws a new report.",
            )  # fmt: skip
        return found
