"""`/v1/release`, `/v1/budget` and `/v1/mechanisms`."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any, TypeVar, cast

from fastapi import APIRouter, Request
from pydantic import BaseModel
from starlette.responses import Response

from metricdp.errors import BudgetExceeded, InvalidInput, LedgerUnavailable, MetricdpError
from metricdp.ledger import Receipt, Release
from metricdp.ledger.amounts import charge_of, in_words
from metricdp.service.commits import PendingDraw, ledger_refusal
from metricdp.service.models import (
    BudgetAnswer,
    BudgetRequest,
    MechanismAnswer,
    Refusal,
    ReleaseAnswer,
    ReleaseRequest,
)
from metricdp.service.refusals import Refused, data_refusal
from metricdp.service.served_mechanisms import ServedMechanism
from metricdp.service.state import ServiceState, key_of, state_of
from metricdp.service.workers import SMALL

router = APIRouter()
T = TypeVar("T")
DENIED: dict[int | str, dict[str, Any]] = {
    401: {"model": Refusal, "description": "No valid key."},
    403: {"model": Refusal, "description": "The key lacks the scope."},
    413: {"model": Refusal, "description": "Too large."},
    415: {"model": Refusal, "description": "A media type that is not known here."},
    422: {"model": Refusal, "description": "Not as described, or no secret of the mechanism."},
    429: {"model": Refusal, "description": "Too much at once; Retry-After says when to ask again."},
    503: {"model": Refusal, "description": "The ledger is out of reach; asking again with the same id is safe."},
}
CHARGED: dict[int | str, dict[str, Any]] = {
    **DENIED,
    404: {"model": Refusal, "description": "No such mechanism."},
    409: {"model": Refusal, "description": "The budget does not suffice; nothing was drawn or charged."},
}


@router.post(
    "/v1/release", operation_id="release", summary="Release one secret", tags=["release"],
    response_model=ReleaseAnswer, responses=CHARGED,
)  # fmt: skip
async def release(body: ReleaseRequest, request: Request) -> Response:
    """Draw a report, charge the person, commit both, answer. The same request id again gives the stored report."""
    state = state_of(request)
    served = state.registry.find(body.mechanism)
    row = served.row(body.secret)
    served.check(served.arrays([row]))
    asked = Release(
        body.person, body.request, PendingDraw(served, row), key_of(request), served.guarantee.metric,
        served.guarantee.epsilon, served.guarantee.slack, body.purpose, dimension=served.dimension,
    )  # fmt: skip
    try:
        receipt = await state.commits.release(asked)
    except MetricdpError as error:
        state.counters.releases.labels(served.name, "refused").inc()
        raise ledger_error_refusal(error) from None
    drew = state.registry.of_report(receipt.report)
    state.counters.releases.labels(served.name, "repeated" if receipt.repeated else "drawn").inc()
    return Response(answer(drew, receipt), media_type="application/json")


def answer(served: ServedMechanism, receipt: Receipt) -> bytes:
    """Return the answer to one release as JSON; what is the same for all of a mechanism is written once."""
    (row,) = served.decode_reports(receipt.report)
    own = {
        "report": dict(zip(served.reports, row, strict=True)),
        "repeated": receipt.repeated,
        "cost": amount(receipt.charged, receipt.slack, receipt.unit),
        "left": amount(receipt.left, receipt.slack_left, receipt.unit),
        "accounts": [
            account_values(one.account, one.unit, (one.charged, receipt.slack), (one.left, receipt.slack_left))
            for one in receipt.parts
        ],
    }
    return json.dumps(own, ensure_ascii=False, separators=(",", ":"))[:-1].encode() + served.common


def amount(epsilon: int, slack: int, unit: str) -> dict[str, Any]:
    """Return an amount of the ledger, exactly and in words."""
    return {"micro_epsilon": epsilon, "micro_slack": slack, "unit": unit, "words": in_words(epsilon, unit)}


def account_values(name: str, unit: str, cost: tuple[int, int], left: tuple[int, int]) -> dict[str, Any]:
    """Return what was charged and is left in one account, epsilon and slack."""
    return {"account": name, "cost": amount(*cost, unit), "left": amount(*left, unit)}


def moment(milliseconds: int | None) -> str | None:
    """Return a time of the ledger as ISO 8601 in UTC."""
    return None if milliseconds is None else datetime.fromtimestamp(milliseconds / 1000, UTC).isoformat()


def ledger_error_refusal(error: Exception) -> Exception:
    """Return what is answered where the ledger gave nothing."""
    if isinstance(error, BudgetExceeded):
        return Refused(409, "budget", str(error), micro_left=error.left, refreshes=moment(error.refreshes))
    if isinstance(error, LedgerUnavailable):
        return ledger_refusal()
    if isinstance(error, InvalidInput):
        return data_refusal(error)
    if isinstance(error, MetricdpError):
        return Refused(
            409, "gone", "this request was answered and its report is no longer stored: use a new request id."
        )
    return error


@router.post(
    "/v1/budget", operation_id="budget", summary="What is left to a person", tags=["read"],
    response_model=BudgetAnswer, responses=CHARGED,
)  # fmt: skip
async def budget(body: BudgetRequest, request: Request) -> Response:
    """Tell what is left to a person under the policy, and how many releases of a mechanism that is."""
    state = state_of(request)
    served = state.registry.find(body.mechanism)
    found = await in_thread(state, lambda: _left(state, served, body.person, body.purpose))
    return Response(json.dumps(found, separators=(",", ":")), media_type="application/json")


def _left(state: ServiceState, served: ServedMechanism, person: str, purpose: str | None) -> dict[str, Any]:
    guarantee = served.guarantee
    try:
        budget = state.ledger.budget(person, metric=guarantee.metric, dimension=served.dimension)
    except MetricdpError as error:
        raise ledger_error_refusal(error) from None
    due = charge_of(guarantee.slack, "slack")
    parts, fits, limits = [], [], []
    for account, standing in zip(served.accounts, budget.accounts, strict=True):
        balances = [one for one in standing.balances if one.limit.purpose in ("", purpose)]
        left, slack = (
            0 if budget.closed else min((one.left for one in balances if one.limit.kind == kind), default=0)
            for kind in ("epsilon", "slack")
        )
        cost = account.charge(guarantee.epsilon)
        fits += [some // each for some, each in ((left, cost), (slack, due)) if each]
        parts.append(account_values(account.name, account.unit, (cost, due), (left, slack)))
        limits += balances
    return {
        "mechanism": served.name,
        "account": parts[0]["account"],
        "left": parts[0]["left"],
        "cost": parts[0]["cost"],
        "accounts": parts,
        "releases": min(fits, default=0),
        "limits": [
            {
                "limit": str(one.limit),
                "micro_left": 0 if budget.closed else one.left,
                "refreshes": moment(one.refreshes),
            }
            for one in limits
        ],
    }


async def in_thread(state: ServiceState, work: Any) -> Any:
    """Return what work gives in a thread: the database may be slow."""
    return await asyncio.get_running_loop().run_in_executor(state.threads, work)


async def parse_body(state: ServiceState, work: Callable[[bytes, int], T], body: bytes, most: int) -> T:
    """Return what work reads in a body: a large one in a process of its own, so that releases go on."""
    if len(body) <= SMALL:
        return cast(T, await in_thread(state, lambda: work(body, most)))
    return cast(T, await state.reading.run(work, body, most, seconds=0.9 * state.limits.seconds))


def check_media_type(request: Request) -> None:
    """Refuse what does not say that it is JSON."""
    if request.headers.get("content-type", "").partition(";")[0].strip().lower() != "application/json":
        raise Refused(415, "media_type", "send application/json.")


def body_of(*models: type[BaseModel]) -> dict[str, Any]:
    """Return how the OpenAPI file names a body that an endpoint reads by itself; `app` adds the models to it."""
    named = [{"$ref": f"#/components/schemas/{model.__name__}"} for model in models]
    schema = named[0] if len(named) == 1 else {"oneOf": named, "discriminator": {"propertyName": "kind"}}
    return {"requestBody": {"required": True, "content": {"application/json": {"schema": schema}}}}


@router.get(
    "/v1/mechanisms", operation_id="mechanisms", summary="What is served", tags=["read"],
    response_model=list[MechanismAnswer], responses=DENIED,
)  # fmt: skip
async def mechanisms(request: Request) -> Response:
    """List the mechanisms with their guarantees and certificates."""
    found = [served.description for served in state_of(request).registry]
    return Response(json.dumps(found, ensure_ascii=False, separators=(",", ":")), media_type="application/json")
