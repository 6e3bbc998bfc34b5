"""The kinds of mechanism a file can hold.

To add a kind, write two functions and one line in `KINDS`:

    encode(mechanism, encoder, layout) -> body   plain values, spaces by `encoder.space`, arrays by `encoder.tensor`;
                                             probabilities by `encode_matrix`, in the storage that was asked for
    decode(body, parts) -> mechanism         from `parts.decoder`, `parts.guarantee` and `parts.certificate`

Whether what was loaded keeps its promise is for `auditing.judge`, where the kind is registered. A field that is added
to a kind needs a default in `decode`, so that older files keep loading; a changed meaning needs a new format version.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from metricdp.artifacts.codecs import Decoder, Encoder, Entry
from metricdp.artifacts.records import certificate_entry, certificate_from, promise_entry, promise_from
from metricdp.artifacts.storage import Layout, decode_matrix, encode_matrix, layout_of
from metricdp.errors import CorruptFile, InvalidInput
from metricdp.mechanisms import (
    Certificate,
    Guarantee,
    InterpolatedMechanism,
    Lattice,
    MatrixMechanism,
    Mechanism,
    NearestMechanism,
    ProductMechanism,
    SphericalLaplace,
    Stakes,
    StreetMechanism,
    VectorLaplace,
)
from metricdp.mechanisms.nearest import nearest_loss
from metricdp.spaces import Box, FiniteSpace, Streets, Unbounded


@dataclass(frozen=True)
class Parts:
    """What every kind is rebuilt from."""

    decoder: Decoder
    guarantee: Guarantee
    certificate: Certificate
    worst: tuple[int, ...]  # the codes of the witness

    @classmethod
    def of(cls, guarantee: Entry, certificate: Entry, decoder: Decoder) -> Parts:
        """Read promise and certificate from their entries."""
        promise = promise_from(guarantee, decoder)
        return cls(decoder, promise, *certificate_from(certificate, promise))


@dataclass(frozen=True)
class Kind:
    """How one kind of mechanism is stored and rebuilt."""

    mechanism: type
    encode: Callable[[Any, Encoder, Layout], Entry]
    decode: Callable[[Entry, Parts], Any]


def kind_of(mechanism: Mechanism) -> str:
    """Return the name of the kind a mechanism belongs to."""
    for name, kind in KINDS.items():
        if type(mechanism) is kind.mechanism:
            return name
    known = ", ".join(kind.mechanism.__name__ for kind in KINDS.values())
    raise InvalidInput(f"a mechanism file cannot hold a {type(mechanism).__name__}; it can hold {known}.")


def _finite(decoder: Decoder, number: int) -> FiniteSpace:
    space = decoder.space(number)
    if not isinstance(space, FiniteSpace):
        raise CorruptFile("it needs a finite space where it holds another")
    return space


def _encode_matrix(mechanism: MatrixMechanism, encoder: Encoder, layout: Layout) -> Entry:
    return {
        "inputs": encoder.space(mechanism.inputs, "inputs"),
        "outputs": encoder.space(mechanism.outputs, "outputs"),
        "matrix": encode_matrix(mechanism.matrix, encoder, layout),
    }


def _decode_matrix(body: Entry, parts: Parts) -> MatrixMechanism:
    inputs, outputs = _finite(parts.decoder, body["inputs"]), _finite(parts.decoder, body["outputs"])
    matrix = decode_matrix(body["matrix"], parts.decoder)
    unsaid = Stakes(known=False)
    made = MatrixMechanism(inputs, outputs, matrix, parts.guarantee, parts.certificate, unsaid)
    if not parts.worst:
        return made
    return replace(made, certificate=replace(parts.certificate, witness=made.witness(*parts.worst)))


def _encode_noise(mechanism: VectorLaplace | SphericalLaplace, encoder: Encoder, layout: Layout) -> Entry:
    return {
        "inputs": encoder.space(mechanism.inputs, "inputs"),
        "epsilon": mechanism.epsilon,
        "pitch": mechanism.lattice.pitch,
    }


def _decode_vector(body: Entry, parts: Parts) -> VectorLaplace:
    return VectorLaplace(*_noise(body, parts))


def _decode_spherical(body: Entry, parts: Parts) -> SphericalLaplace:
    return SphericalLaplace(*_noise(body, parts))


def _noise(body: Entry, parts: Parts) -> tuple[Unbounded, float, Lattice, Guarantee, Certificate]:
    space = parts.decoder.space(body["inputs"])
    if not isinstance(space, Unbounded):
        raise CorruptFile("it needs an unbounded space where it holds another")
    return space, _positive(body["epsilon"]), Lattice(_positive(body["pitch"])), parts.guarantee, parts.certificate


def _encode_nearest(mechanism: NearestMechanism, encoder: Encoder, layout: Layout) -> Entry:
    return {
        "inputs": encoder.space(mechanism.inputs, "inputs"),
        "outputs": encoder.space(mechanism.outputs, "outputs"),
        "epsilon": mechanism.epsilon,
    }


def _decode_nearest(body: Entry, parts: Parts) -> NearestMechanism:
    inputs, outputs = _finite(parts.decoder, body["inputs"]), _finite(parts.decoder, body["outputs"])
    rate = _positive(body["epsilon"])
    # The first files stated the mean length of the noise, which bounds nothing: the bound is computed again.
    certificate = replace(parts.certificate, loss=nearest_loss(inputs, rate), lower_bound=0.0, at_most=True)
    return NearestMechanism(inputs, outputs, rate, parts.guarantee, certificate)


def _encode_interpolated(mechanism: InterpolatedMechanism, encoder: Encoder, layout: Layout) -> Entry:
    return {
        "inputs": encoder.space(mechanism.inputs, "inputs"),
        "outputs": encoder.space(mechanism.outputs, "outputs"),
        "matrix": encode_matrix(mechanism.matrix, encoder, layout),
        "axes": [encoder.tensor(axis, f"axis{number}") for number, axis in enumerate(mechanism.axes)],
        "ratios": [encoder.tensor(ratio, f"ratio{number}") for number, ratio in enumerate(mechanism.ratios)],
        "rule": mechanism.rule,
    }


def _decode_interpolated(body: Entry, parts: Parts) -> InterpolatedMechanism:
    space = parts.decoder.space(body["inputs"])
    if not isinstance(space, Box):
        raise CorruptFile("it needs a box where it holds another space")
    outputs = _finite(parts.decoder, body["outputs"])
    axes, ratios = (tuple(parts.decoder.tensor(name) for name in body[key]) for key in ("axes", "ratios"))
    matrix, rule = decode_matrix(body["matrix"], parts.decoder), body["rule"]
    return InterpolatedMechanism(space, outputs, axes, matrix, ratios, rule, parts.guarantee, parts.certificate)


def _encode_streets(mechanism: StreetMechanism, encoder: Encoder, layout: Layout) -> Entry:
    return {
        "inputs": encoder.space(mechanism.inputs, "inputs"),
        "outputs": encoder.space(mechanism.outputs, "outputs"),
        "matrix": encode_matrix(mechanism.matrix, encoder, layout),
        "counts": encoder.tensor(mechanism.counts, "counts"),
        "ratios": encoder.tensor(mechanism.ratios, "ratios"),
    }


def _decode_streets(body: Entry, parts: Parts) -> StreetMechanism:
    space = parts.decoder.space(body["inputs"])
    if not isinstance(space, Streets):
        raise CorruptFile("it needs streets where it holds another space")
    outputs = _finite(parts.decoder, body["outputs"])
    counts, ratios = (parts.decoder.tensor(body[key]) for key in ("counts", "ratios"))
    matrix = decode_matrix(body["matrix"], parts.decoder)
    promise = parts.guarantee
    if promise.metric == space.metric:
        promise = replace(promise, metric=space.metric)  # one object, as in a mechanism that was just built
    return StreetMechanism(space, outputs, counts, matrix, ratios, promise, parts.certificate)


def _encode_product(mechanism: ProductMechanism, encoder: Encoder, layout: Layout) -> Entry:
    parts = []
    for part in mechanism.parts:
        name = kind_of(part)
        body = KINDS[name].encode(part, encoder, layout_of(part, None))
        promise, certificate = promise_entry(part.guarantee, encoder), certificate_entry(part.certificate)
        parts.append({"kind": name, "body": body, "guarantee": promise, "certificate": certificate})
    return {"parts": parts}


def _decode_product(body: Entry, parts: Parts) -> ProductMechanism:
    made = []
    for entry in body["parts"]:
        if entry["kind"] == "product" or entry["kind"] not in KINDS:
            raise CorruptFile(f"a part of it is of the kind {entry['kind']!r}")
        own = Parts.of(entry["guarantee"], entry["certificate"], parts.decoder)
        made.append(KINDS[entry["kind"]].decode(entry["body"], own))
    certificate = parts.certificate
    if any(part.certificate.at_most for part in made):
        loss = float(np.sum([part.guarantee.epsilon * part.certificate.loss for part in made]))
        certificate = replace(certificate, loss=loss, at_most=True)
    return ProductMechanism(tuple(made), parts.guarantee, certificate)


def _positive(value: Any) -> float:
    if not isinstance(value, int | float) or isinstance(value, bool) or not 0 < value < np.inf:
        raise CorruptFile(f"a rate or a pitch is {value!r}")
    return float(value)


KINDS: dict[str, Kind] = {
    "matrix": Kind(MatrixMechanism, _encode_matrix, _decode_matrix),
    "vector-laplace": Kind(VectorLaplace, _encode_noise, _decode_vector),
    "spherical-laplace": Kind(SphericalLaplace, _encode_noise, _decode_spherical),
    "interpolated": Kind(InterpolatedMechanism, _encode_interpolated, _decode_interpolated),
    "streets": Kind(StreetMechanism, _encode_streets, _decode_streets),
    "product": Kind(ProductMechanism, _encode_product, _decode_product),
    "nearest": Kind(NearestMechanism, _encode_nearest, _decode_nearest),
}
