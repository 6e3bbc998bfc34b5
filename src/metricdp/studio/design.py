"""The panels Design (places, jobs on the service, comparisons, files to download) and Audit.

A mechanism file is audited here, from its numbers. Matrices and samples go to the service.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from metricdp import messages
from metricdp.artifacts import dumps, inspect, loads
from metricdp.artifacts.signing import create_keys, read_public
from metricdp.auditing import audit, audit_concentrated, expected_loss
from metricdp.design import builder_named
from metricdp.design.quantised import quantised
from metricdp.errors import Infeasible, InvalidInput
from metricdp.mechanisms import ConcentratedGuarantee
from metricdp.metrics import points_are
from metricdp.places import bundled_roads
from metricdp.service.building import OFFERED
from metricdp.service.state import ServiceState
from metricdp.specs import point_space
from metricdp.studio.web import answer, body_of, number, post

LARGEST = 1e300
MOST_PLACES, MOST_COMPARED, MOST_FILE = 1_000, 400, 64 << 20
COMPARED: dict[str, dict[str, Any]] = {  # builders with their options
    "exponential": {}, "remapped": {}, "tight_constraints": {}, "optimal": {"gap": 0.02, "seconds": 30.0},
}  # fmt: skip


class DesignPanel:
    """The endpoints of the panel; `state` gives the service that designs, under the key whose id is `owner`.

    Designs are signed with `key`, or with a key of the session in `folder`.
    """

    def __init__(self, state: Callable[[], ServiceState], owner: str, folder: Path, key: str | None = None) -> None:
        self._state, self._owner = state, owner
        self._key = Path(key) if key is not None else create_keys(folder / "studio")[0]

    def routes(self) -> list[Route]:
        """Return the endpoints."""
        return [
            Route("/studio/places", self.places),
            post("/studio/design", self.design, status=202),
            post("/studio/compare", compare),
            Route("/studio/export", self.export, methods=["POST"]),
            Route("/studio/key", self.key),
        ]

    async def places(self, request: Request) -> Response:
        """Give crossings of the bundled streets, and the streets between them."""
        wanted = request.query_params.get("count", "")
        given = int(wanted) if wanted.isdecimal() and len(wanted) <= 9 else None
        count = int(number({"count": given}, "count", 2, MOST_PLACES))
        return answer(await run_in_threadpool(_crossings, count))

    def design(self, sent: dict[str, Any]) -> dict[str, Any]:
        """Begin a design as a job of the service; it is followed and fetched there."""
        asked = _check_design(sent, MOST_PLACES)
        if asked["builder"] != "optimal" and asked["loss"] == "squared":
            raise InvalidInput("only the optimal mechanism takes another loss than the distance.")
        return {"job": self._state().jobs.start(self._owner, asked).id}

    async def export(self, request: Request) -> Response:
        """Give a mechanism file back in another storage, signed where that is asked for."""
        data = await body_of(request, MOST_FILE)
        small, signed = request.query_params.get("storage") == "quantised", request.query_params.get("sign") == "1"

        def export_file() -> bytes:
            mechanism: Any = loads(data)
            made = quantised(mechanism) if small else mechanism
            return dumps(made, key=self._key if signed else None)

        content = await run_in_threadpool(export_file)
        headers = {"x-public-key": read_public(self._key.with_suffix(".pub"))} if signed else {}
        return Response(content, media_type="application/octet-stream", headers=headers)

    async def key(self, request: Request) -> Response:
        """Give the public half of the key that signs here."""
        public = self._key.with_suffix(".pub").read_bytes()
        headers = {"content-disposition": 'attachment; filename="studio.pub"'}
        return Response(public, media_type="application/x-pem-file", headers=headers)


def _crossings(count: int) -> dict[str, Any]:
    space = bundled_roads(nodes=count)
    roads: Any = space.metric
    return {
        "points": np.asarray(space.coordinates, dtype=np.float64).tolist(),
        "streets": {"edges": roads.edges.tolist(), "lengths": roads.lengths.tolist()},
    }


def _check_design(sent: dict[str, Any], most: int) -> dict[str, Any]:
    """Return a design that was asked for, or the sentence that says what is wrong with it."""
    points = sent.get("points")
    if not isinstance(points, list) or not 2 <= len(points) <= most or not all(isinstance(row, list) for row in points):
        raise InvalidInput(f"`points` must be 2 to {most:,} rows of coordinates.")
    if not all(_are_numbers(row) for row in points):
        raise InvalidInput("`points` must hold numbers only.")
    prior = sent.get("prior")
    if prior is not None and not (isinstance(prior, list) and len(prior) == len(points) and _are_numbers(prior)):
        raise InvalidInput("`prior` must hold one number for every point.")
    streets = sent.get("streets")
    if streets is not None and not (isinstance(streets, dict) and {"edges", "lengths"} <= set(streets)):
        raise InvalidInput("`streets` must have `edges` and `lengths`.")
    epsilon = number(sent, "epsilon", 1e-6, 1e6)
    metric, builder = str(sent.get("metric", "l2")), str(sent.get("builder", "optimal"))
    builder_named(builder, OFFERED)
    point_space(points, metric, streets)
    if sent.get("loss", "distance") not in ("distance", "squared"):
        raise InvalidInput("`loss` must be distance or squared.")
    gap = number(sent, "gap", 1e-4, 0.5) if sent.get("gap") is not None else None
    return {
        "points": points, "metric": metric, "streets": streets, "epsilon": epsilon, "builder": builder,
        "prior": prior, "loss": sent.get("loss", "distance"), "gap": gap,
    }  # fmt: skip


def _are_numbers(values: list[Any]) -> bool:
    """Tell whether all are numbers that a double can hold."""
    plain = all(isinstance(x, (int, float)) and not isinstance(x, bool) for x in values)
    return plain and all(-LARGEST <= x <= LARGEST for x in values)


def compare(sent: dict[str, Any]) -> dict[str, Any]:
    """Say what several mechanisms cost at one epsilon, and what none with the same reports can beat."""
    asked = _check_design(sent, MOST_COMPARED)
    names = sent.get("builders") or list(COMPARED)
    if not isinstance(names, list) or not all(isinstance(name, str) and name in COMPARED for name in names):
        raise InvalidInput(f"`builders` must be some of {', '.join(COMPARED)}.")
    space = point_space(asked["points"], asked["metric"], asked["streets"])
    prior = None if asked["prior"] is None else np.array(asked["prior"], dtype=np.float64)
    losses: dict[str, float | None] = {}
    bound = None
    for name in names:
        try:
            made: Any = builder_named(name).build(space, asked["epsilon"], prior=prior, **COMPARED[name])
        except Infeasible:
            losses[name] = None  # tight constraints exist for some spaces only
            continue
        losses[name] = expected_loss(made, prior=prior)
        if name == "optimal":
            bound = made.certificate.lower_bound
    return {"losses": losses, "lower_bound": bound}


MOST_AUDITED = 256 << 20  # bytes of a mechanism file
MOST_SHOWN = 5_000  # places on the map


class AuditPanel:
    """The endpoints of the panel; a file lies in a folder of the session during its audit."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def routes(self) -> list[Route]:
        """Return the endpoints."""
        return [Route("/studio/audit", self.audit, methods=["POST"])]

    async def audit(self, request: Request) -> Response:
        """Audit a mechanism file, whatever it says about itself."""
        return answer(await run_in_threadpool(_audit_file, await body_of(request, MOST_AUDITED), self._folder))


def _audit_file(data: bytes, parent: Path) -> dict[str, Any]:
    with tempfile.TemporaryDirectory(dir=parent) as folder:
        path = Path(folder) / "mechanism.mdp"
        path.write_bytes(data)
        found: Any = inspect(path, verify=False).mechanism
    if isinstance(found.guarantee, ConcentratedGuarantee):
        sentences = [messages.guarantee_text(found.guarantee), messages.short_sentence(found.guarantee)]
        return audit_concentrated(found).to_dict(found.guarantee.unit) | {"sentences": sentences}
    report = audit(found).to_dict(found.guarantee.unit)
    return report | {"places": _places(found.inputs), "report_places": _places(found.outputs)}


def _places(space: Any) -> list[list[float]] | None:
    """Return where secrets or reports are, if that can be shown on a map."""
    if space.size is None or space.size > MOST_SHOWN or not points_are(space.ground, "degrees"):
        return None
    places: list[list[float]] = np.asarray(space.coordinates, dtype=np.float64).tolist()
    return places
