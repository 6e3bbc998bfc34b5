"""The panel Audit: a mechanism file is audited from its numbers. Matrices and samples go to the service."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any

import numpy as np
from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from metricdp import messages
from metricdp.artifacts import inspect
from metricdp.auditing import audit, audit_concentrated
from metricdp.mechanisms import ConcentratedGuarantee
from metricdp.metrics import points_are
from metricdp.studio.web import answer, body_of

MOST_FILE = 256 << 20
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
        return answer(await run_in_threadpool(_audit_file, await body_of(request, MOST_FILE), self._folder))


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
