"""From the registry to manifest entries and back: every metric, space and mechanism, field by field.

What is stored and what is possible stands in the registry (`metricdp.registry`); here is the one way to write
a field and the one way to read it. A value that its field does not allow is refused before anything is made of it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from types import SimpleNamespace
from typing import Any, cast

import numpy as np

from metricdp import constants
from metricdp.artifacts.container import Entry, Tensors
from metricdp.artifacts.limits import LoadBudget
from metricdp.artifacts.references import KEYS, VectorFiles
from metricdp.artifacts.storage import (
    CODED,
    StorageLayout,
    decode_codes,
    decode_table,
    encode_codes,
    encode_table,
    layout_of,
    outline,
)
from metricdp.artifacts.tensors import (
    TensorReader,
    TensorWriter,
    check_range,
    decode_scalar,
    encode_scalar,
)
from metricdp.errors import CorruptFile, InvalidInput
from metricdp.mechanisms import MECHANISMS, AnyGuarantee, Certificate, ConcentratedGuarantee, Guarantee, Mechanism
from metricdp.mechanisms.base import BASES, OBJECTIVES
from metricdp.mechanisms.concentrated import FORMS
from metricdp.metrics import METRICS, Lp, Metric, Precomputed
from metricdp.registry import (
    Array,
    Effort,
    Field,
    Group,
    Many,
    Maybe,
    Number,
    Part,
    Registry,
    Schema,
    Table,
    Text,
    Whole,
)
from metricdp.spaces import SPACES, FiniteSpace

# Guarantees and certificates. A certificate keeps the names that version 1 of the format gave its values, so that older
# readers understand it: `worst_pair` holds the codes of the witness, `verified_pairs` the number of pairs. `objective`
# is written only for the worst loss, which an older reader would call the expected one: it refuses the word instead.
# The kind of a mechanism says which kind of guarantee its file holds, one with an epsilon or a concentrated one with a
# rho, so that no reader can confuse them.
GUARANTEE_FIELDS: Mapping[str, Field] = {
    "epsilon": Number(least=1 / constants.LARGEST_RATE, most=constants.LARGEST_RATE),
    "slack": Number(least=0),
    "radius": Maybe(Number(above=0)),
    "unit": Text(longest=100),
    "basis": Text(BASES),
    "metric": Part("metric"),
}
CONCENTRATED_FIELDS: Mapping[str, Field] = {
    "rho": Number(least=1 / constants.LARGEST_RATE, most=constants.LARGEST_RATE),
    "form": Text(FORMS),
    "radius": Maybe(Number(above=0)),
    "unit": Text(longest=100),
    "basis": Text(("theorem", "certificate")),
    "metric": Part("metric"),
}
GUARANTEE_KINDS = {"pure": (GUARANTEE_FIELDS, Guarantee), "concentrated": (CONCENTRATED_FIELDS, ConcentratedGuarantee)}
CERTIFICATE: Mapping[str, Field] = {
    "loss": Number(),
    "lower_bound": Number(),
    "worst_pair": Many(Whole(), most=3),
    "verified_pairs": Whole(),
    "method": Text(),
    "seconds": Number(least=0),
    "epsilon": Number(least=0, infinite=True),
    "note": Text(),
    "objective": Text(OBJECTIVES),
}
LATER = {"radius": None, "note": "", "objective": None}  # what the first files did not say yet


def certificate_values(certificate: Certificate) -> dict[str, Any]:
    """Return a certificate under the names it has in files."""
    values = {name: getattr(certificate, name, None) for name in CERTIFICATE}
    values["worst_pair"] = () if certificate.witness is None else tuple(certificate.witness)
    values["verified_pairs"] = certificate.pairs
    if certificate.objective != "worst":
        del values["objective"]
    return values


def certificate_from(values: dict[str, Any], guarantee: AnyGuarantee) -> tuple[Certificate, tuple[int, ...]]:
    """Undo `certificate_values`: the certificate without its witness, and the codes of the witness."""
    values = dict(values)
    codes = values.pop("worst_pair")
    if len(codes) not in (0, 3):
        raise CorruptFile("the worst pair of its certificate is not one")
    if values["objective"] is None:  # files from before say it by the method alone
        worst = values["method"].startswith(("constopt", "optimal (worst"))
        values["objective"] = "worst" if worst else "expected"
    if guarantee.basis == "none":  # where nothing is guaranteed, the bounds of private mechanisms do not bind
        values["lower_bound"] = min(values["lower_bound"], values["loss"])
    return Certificate(pairs=values.pop("verified_pairs"), **values), codes


KINDS = {"float": "f", "single": "s", "whole": "i", "narrow": "u", "points": "fiU"}
STORED = Many(Whole(), least=1, most=constants.LARGEST_COUNT)
UNSTORABLE = {
    "metric": "give the distances as mdp.Precomputed(space.distances), or declare the class (metricdp.registry).",
    "space": "declare the class (metricdp.registry).",
    "mechanism": "it can hold {}.",
}


class UnknownKind(CorruptFile):
    """The file holds something that was declared later, or elsewhere."""


class ManifestEncoder:
    """Collects metrics, spaces and tensors; what is the same object is stored once."""

    def __init__(self, vector_files: VectorFiles | None = None) -> None:
        self._vector_files = vector_files or VectorFiles()  # of vectors that are named, not held
        self.metrics: list[Entry] = []
        self.spaces: list[Entry] = []
        self.tensors = TensorWriter()
        self._numbers: dict[int, tuple[Any, int]] = {}  # keeps objects alive, so that ids stay theirs
        self._layout = StorageLayout()

    def mechanism(self, mechanism: Mechanism, layout: StorageLayout) -> Entry:
        """Return kind, body, guarantee and certificate of a mechanism."""
        declaration = schema_of(MECHANISMS, mechanism)
        self._layout = layout
        body = self._record(declaration.fields, declaration.field_values(mechanism), "")
        fields, kind = GUARANTEE_KINDS[declaration.promise]
        if not isinstance(mechanism.guarantee, kind):
            raise InvalidInput(
                f"a {declaration.name} has a {declaration.promise} guarantee, got {mechanism.guarantee}."
            )
        values = {name: getattr(mechanism.guarantee, name) for name in fields}
        certificate = certificate_values(mechanism.certificate)
        return {
            "kind": declaration.name,
            "body": body,
            "guarantee": self._record(fields, values, ""),
            "certificate": self._record({name: CERTIFICATE[name] for name in certificate}, certificate, ""),
        }

    def metric(self, metric: Metric) -> int:
        """Store a metric and return its number; one that files cannot hold is refused."""
        return int(self._part(Part("metric"), metric, ""))

    def _part(self, kind: Part, value: Any, name: str) -> Any:
        if kind.of == "mechanism":
            return self.mechanism(value, layout_of(value, None))
        if id(value) in self._numbers:
            return self._numbers[id(value)][1]
        if kind.of == "metric":
            declaration, entries = schema_of(METRICS, value), self.metrics
            fields = self._record(declaration.fields, declaration.field_values(value), "metric.")
            entry: Entry = {"name": declaration.name, "parameters": fields}
        else:
            declaration, entries = schema_of(SPACES, value), self.spaces
            entry = {"kind": declaration.name}
            values = declaration.field_values(value)
            named = _named_fields(self._vector_files, declaration.name, values)
            entry |= self._record(
                {key: field for key, field in declaration.fields.items() if key not in named}, values, f"{name}."
            )
            entry |= {key: self._vector_files.entry(*vectors, self.tensors) for key, vectors in named.items()}
        entries.append(entry)
        _list(entries, STORED, f"its {kind.of}s")
        self._numbers[id(value)] = (value, len(entries) - 1)
        return len(entries) - 1

    def _record(self, fields: Mapping[str, Field], values: Mapping[str, Any], prefix: str) -> Entry:
        return {name: self._field(kind, values[name], f"{prefix}{name}") for name, kind in fields.items()}

    def _field(self, kind: Field, value: Any, name: str) -> Any:
        match kind:
            case Maybe():
                return None if value is None else self._field(kind.of, value, name)
            case Many():
                _list(list(value), kind, name)
                return [self._field(kind.of, item, f"{name}{number}") for number, item in enumerate(value)]
            case Group():
                pairs = enumerate(zip(kind.of, value, strict=True))
                return [self._field(field, item, f"{name}.{number}") for number, (field, item) in pairs]
            case Part():
                return self._part(kind, value, name)
            case Array():
                check_range(kind, value, name)
                if kind.of == "narrow":
                    return self.tensors.narrow(value, name)
                coded = encode_codes(value, self.tensors, name) if kind.coded else None
                if coded is not None:
                    return coded
                return self.tensors.array(value, name, single=kind.of == "single")
            case Table():
                return encode_table(value, self.tensors, self._layout)
            case Number() | Whole() | Text():
                plain = encode_scalar(value)
                decode_scalar(kind, plain, name)  # refuses what its field does not allow
                return plain


def _named_fields(vector_files: VectorFiles, kind: str, values: Mapping[str, Any]) -> dict[str, tuple[Any, list[str]]]:
    """Return which fields of a space are named, not held: the vectors of a vocabulary, found by its words."""
    if not vector_files.given or kind != "finite":
        return {}
    words = values["coordinates"]
    if words.dtype.kind != "U" or words.shape[1:] != (1,) or values["points"].dtype.kind != "f":
        raise InvalidInput("`vectors` are for mechanisms on words that are measured by their vectors.")
    return {"points": (values["points"], words[:, 0].tolist())}


def schema_of(registry: Registry, thing: object) -> Schema:
    """Return the declaration of a thing, or say that files cannot hold it."""
    found = registry.of(thing)
    if found is None:
        known = ", ".join(declaration.thing.__name__ for declaration in registry)
        raise InvalidInput(
            f"a mechanism file cannot hold the {registry.sort} {type(thing).__name__}: "
            + UNSTORABLE[registry.sort].format(known)
        )
    return found


class ManifestDecoder:
    """Rebuilds metrics, spaces and the mechanism, in the order they were stored."""

    def __init__(
        self,
        manifest: Entry,
        tensors: Tensors,
        budget: LoadBudget,
        *,
        verify: bool = True,
        vector_files: VectorFiles | None = None,
    ) -> None:
        self._verify, self._vector_files = verify, vector_files or VectorFiles()
        self._version: int = manifest["version"]
        self._tensors = TensorReader(tensors, budget)
        self._budget = budget
        self._metrics: list[Metric] = []
        self._spaces: list[Any] = []
        self._sizes: list[tuple[int, int]] = []  # of every metric: how deep it is nested, how many it is made of
        self._open = (1, 1)
        self._inside = False
        for number, entry in enumerate(_list(manifest["metrics"], STORED, "its metrics")):
            where = f"metric {number}"
            known = self._lookup(METRICS, _object(entry, ("name", "parameters"), where)["name"], where)
            self._open = (1, 1)
            values = self._record(known.fields, entry["parameters"], where)
            self._metrics.append(known.made(**values))
            self._sizes.append(self._open)
        for number, entry in enumerate(_list(manifest["spaces"], STORED, "its spaces")):
            where, fields = f"space {number}", dict(entry) if isinstance(entry, dict) else {}
            known = self._lookup(SPACES, fields.pop("kind", None), where)
            values = self._record(known.fields, fields, where)
            if known.effort is not None:
                budget.spend(known.effort(**values), where)
            self._spaces.append(known.made(**values))

    def mechanism(self, entry: Entry) -> Mechanism:
        """Return the mechanism of the manifest, refusing tensors that nothing refers to."""
        made = self._mechanism(entry, "it")
        self._tensors.refuse_leftovers()
        return made

    def check_size(self, entry: Entry) -> None:
        """Refuse the mechanism of the manifest where opening it takes too much, without making it."""
        known, body = self._lookup(MECHANISMS, entry["kind"], "it"), entry["body"]
        self._check_table_size(known, body)
        for name, kind in known.fields.items():
            if isinstance(kind, Table):
                rows, reports = outline(body[name], self._tensors, name).shape
                self._budget.spend(Effort(values=2.0 * rows * reports), "its probabilities")
            for part in body[name] if isinstance(kind, Many) and kind.of == Part("mechanism") else ():
                self.check_size(part)

    def _mechanism(self, entry: Entry, where: str) -> Mechanism:
        known = self._lookup(MECHANISMS, entry["kind"], where)
        fields, kind = GUARANTEE_KINDS[known.promise]
        values = self._record(fields, entry["guarantee"], "its guarantee", LATER)
        metric, unit = values["metric"], values.pop("unit")
        if unit != metric.unit:
            raise CorruptFile(f"its guarantee is per {unit!r} and its metric measures in {metric.unit!r}")
        guarantee = kind(**values)
        stated = self._record(CERTIFICATE, entry["certificate"], "its certificate", LATER)
        certificate, codes = certificate_from(stated, guarantee)
        self._check_table_size(known, entry["body"])
        body = self._record(known.fields, entry["body"], "its body")
        made: Any = known.made(**body, guarantee=guarantee, certificate=certificate)
        if not codes:
            return cast(Mechanism, made)
        if not MECHANISMS.has("rows", made):
            raise CorruptFile("its certificate names a worst pair and counts no pairs")
        return cast(Mechanism, replace(made, certificate=replace(made.certificate, witness=made.witness(*codes))))

    def _check_table_size(self, known: Schema, body: object) -> None:
        """Refuse a mechanism that takes too much to audit, before its table is made."""
        if known.effort is None or not self._verify:
            return
        tables = {name for name, kind in known.fields.items() if isinstance(kind, Table)}
        entry = _object(body, tuple(known.fields), "its body")
        values = {name: outline(entry[name], self._tensors, f"{name} of its body") for name in tables}
        others = {name: kind for name, kind in known.fields.items() if name not in tables}
        values |= {name: self._field(kind, entry[name], f"{name} of its body") for name, kind in others.items()}
        self._budget.spend(known.effort(SimpleNamespace(**values)), "judging it")

    def _lookup(self, registry: Registry, name: object, where: str) -> Schema:
        if not isinstance(name, str):
            raise CorruptFile(f"{where} has no name")
        found = registry.find(name)
        if found is None:
            raise UnknownKind(f"it holds a {registry.sort} of the kind {name!r}, which this metricdp does not know")
        if found.since > self._version:
            raise CorruptFile("it holds what its version does not know")
        return found

    def _record(
        self, fields: Mapping[str, Field], entry: object, where: str, later: Mapping[str, Any] | None = None
    ) -> dict[str, Any]:
        """Return the values of an entry that holds these fields and nothing else; `later` ones may be absent."""
        defaults = {name: value for name, value in (later or {}).items() if name in fields}
        given = _object(entry, tuple(fields), where, tuple(defaults))
        return defaults | {
            name: self._field(fields[name], value, f"{name} of {where}") for name, value in given.items()
        }

    def _field(self, kind: Field, value: Any, where: str) -> Any:
        match kind:
            case Maybe():
                return None if value is None else self._field(kind.of, value, where)
            case Many():
                return tuple(self._field(kind.of, item, where) for item in _list(value, kind, where))
            case Group():
                items = zip(kind.of, _list(value, Many(kind, len(kind.of), len(kind.of)), where), strict=True)
                return tuple(self._field(field, item, where) for field, item in items)
            case Part():
                return self._part(kind, value, where)
            case Array():
                if kind.coded and isinstance(value, dict):
                    return decode_codes(kind, _object(value, CODED, where), self._tensors, where)
                if kind.of == "points" and isinstance(value, dict) and self._version > 1:
                    named = self._vector_files.points(_object(value, KEYS, where), self._tensors, where)
                    return check_range(kind, named, where)
                array = self._tensors.array(value, KINDS[kind.of], where, kind.sides)
                return check_range(kind, array, where)
            case Table():
                if self._version == 1 and not isinstance(value, str):
                    raise CorruptFile("it holds what its version does not know")
                return decode_table(value, self._tensors, where)
            case Number() | Whole() | Text():
                return decode_scalar(kind, value, where)

    def _part(self, kind: Part, value: Any, where: str) -> Any:
        if kind.of == "mechanism":
            return self._inner(value, where)
        made: list[Any] = self._metrics if kind.of == "metric" else self._spaces
        if type(value) is not int or not 0 <= value < len(made):
            raise CorruptFile(f"{where} is a reference to nothing")
        found = made[value]
        registry = METRICS if kind.of == "metric" else SPACES
        known = registry.of(found)
        if kind.named and (known is None or known.name not in kind.named):
            raise CorruptFile(f"{where} must be a {registry.sort} of the kind {' or '.join(kind.named)}")
        if kind.of == "metric":
            self._nest(value, where)
        return found

    def _nest(self, number: int, where: str) -> None:
        """Count what a metric is made of: a few words could otherwise say a metric that takes years to measure."""
        depth, parts = self._sizes[number]
        self._open = (max(self._open[0], depth + 1), self._open[1] + parts)
        if self._open[0] > constants.DEEPEST_METRIC or self._open[1] > constants.LARGEST_METRIC_TERMS:
            raise CorruptFile(f"{where} is nested too deep")

    def _inner(self, value: Any, where: str) -> Mechanism:
        _object(value, ("kind", "body", "guarantee", "certificate"), where)
        if self._inside:
            raise CorruptFile("a part of it is made of parts")
        self._inside = True
        made = self._mechanism(value, where)
        self._inside = False
        return made


def _object(entry: object, wanted: tuple[str, ...], where: str, optional: tuple[str, ...] = ()) -> Entry:
    if not isinstance(entry, dict):
        raise CorruptFile(f"{where} is not an object")
    strange, missing = sorted(set(entry) - set(wanted)), sorted(set(wanted) - set(entry) - set(optional))
    if strange:
        raise CorruptFile(f"{where} says {strange[0]!r}, which this metricdp does not know")
    if missing:
        raise CorruptFile(f"{where} does not say {missing[0]!r}")
    return entry


def _list(value: object, kind: Many, where: str) -> list[Any]:
    if not isinstance(value, list) or not kind.least <= len(value) <= kind.most:
        raise CorruptFile(f"{where} is not a list of the right length")
    return value


def tabulate_metric(mechanism: Any) -> Any:
    """Return a table with `Precomputed` distances if its metric is a function of the user's; any other unchanged.

    The distribution and the guarantee stay: the distances are the very numbers that the guarantee was certified with.
    What tables hold is looked up by its coordinates, as before; how far others lie from it, in that metric, the file
    does not know.
    """
    if not MECHANISMS.has("rows", mechanism) or (_fits(mechanism.inputs) and _fits(mechanism.outputs)):
        return mechanism
    inputs = _measure_space(mechanism.inputs)
    outputs = inputs if mechanism.outputs is mechanism.inputs else _measure_space(mechanism.outputs)
    old_guarantee = mechanism.guarantee
    if old_guarantee.metric is mechanism.inputs.metric:
        old_guarantee = replace(old_guarantee, metric=inputs.metric)
    return replace(mechanism, inputs=inputs, outputs=outputs, guarantee=old_guarantee)


def _measure_space(space: FiniteSpace) -> FiniteSpace:
    if _fits(space):
        return space
    metric = space.metric if _is_storable(space.metric) else Precomputed(space.distances, unit=space.unit)
    points = space.points if metric is space.metric else np.arange(len(space), dtype=float)[:, None]
    ground = space.ground if _is_storable(space.ground) else metric if space.is_text else Lp(2)
    return FiniteSpace(points, metric, coordinates=space.coordinates, ground=ground, columns=space.columns)


def _fits(space: FiniteSpace) -> bool:
    return _is_storable(space.metric) and _is_storable(space.ground)


def _is_storable(metric: Metric) -> bool:
    try:
        ManifestEncoder().metric(metric)
    except InvalidInput:
        return False
    return True
