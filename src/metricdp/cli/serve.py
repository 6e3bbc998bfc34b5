"""The commands that serve: the service, the keys of those who may ask it, and Studio."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

from cyclopts import App, Parameter

from metricdp.cli import terminal
from metricdp.cli.options import HIDDEN, Epsilon, option_group, plain_record
from metricdp.errors import InvalidInput, import_extra
from metricdp.files import existing_file, is_server
from metricdp.service.limits import ServiceLimits
from metricdp.service.server import ListenOptions
from metricdp.units import parse_epsilon

if TYPE_CHECKING:
    from metricdp.service.server import MechanismSpec

serving = App(name="serve", help="Serve releases, budgets, audits and designs over HTTP.", help_format="markdown")
keyring = App(name="keys", help="Make, list and revoke the keys of those who may ask the service.")
serving.command(keyring)
KeyFile = Annotated[str, Parameter(name="--keys")]


@option_group
class LimitOptions(ServiceLimits):
    """How much the service takes on."""

    points: Annotated[int, HIDDEN] = ServiceLimits.points
    design_seconds: Annotated[float, HIDDEN] = ServiceLimits.design_seconds
    batches: Annotated[int, HIDDEN] = ServiceLimits.batches
    connections: Annotated[int, HIDDEN] = ServiceLimits.connections
    designs: Annotated[int, HIDDEN] = ServiceLimits.designs


DEFAULT_LISTEN, BOUNDS = ListenOptions(), LimitOptions()


@dataclass(frozen=True)
class OfferOptions:
    """What is served.

    Attributes:
        mechanism: A mechanism file, or name=file; may be repeated. The name is that of the file unless given.
        epsilon: Laplace noise at this epsilon, such as 10/km, under the name laplace.
        metric: The metric of the Laplace noise: haversine (haversine:mi for miles), l1, l2 or linf.
        snap: Put values on the nearest secret of a finite mechanism up to this distance, such as 200m; its slack is
            charged.
        key: A public key file: mechanism files are refused unless this key signed them.
    """

    mechanism: tuple[str, ...] = ()
    epsilon: Epsilon | None = None
    metric: str = "haversine"
    snap: str | None = None
    key: str | None = None


@dataclass(frozen=True)
class StorageOptions:
    """Where what must last is kept.

    Attributes:
        ledger: The ledger of what everybody spent: a file such as budget.db, or postgresql://user@host/database.
        policy: What a person may spend, such as "40/km per day, 200/km ever"; needed once, when the ledger begins.
        ledger_key: The key file of the ledger; beside a file it is found by itself.
        ledger_head: The head file of a ledger on a server, on this machine. It records the last entry, so that an older
            dump is refused. A ledger in a file has its own.
        keys: The file of API keys; beside a ledger file it is found as budget.db.keys.
        jobs: A folder for designs, kept over restarts; a temporary one unless given.
    """

    ledger: str
    policy: str | None = None
    ledger_key: str | None = None
    ledger_head: str | None = None
    keys: str | None = None
    jobs: str | None = None


NOTHING = OfferOptions()


@serving.default
def serve(
    *,
    storage: Annotated[StorageOptions, Parameter(name="*")],
    offered: Annotated[OfferOptions, Parameter(name="*")] = NOTHING,
    listen: Annotated[ListenOptions, Parameter(name="*")] = DEFAULT_LISTEN,
    bounds: Annotated[LimitOptions, Parameter(name="*")] = BOUNDS,
    log: Literal["info", "warning", "error"] = "info",
) -> int:
    """Serve releases over HTTP until Ctrl-C or a signal; what was charged is answered before it stops.

    An example: `metricdp serve --mechanism rome.mdp --ledger budget.db`

    Laplace noise without a file: `metricdp serve --epsilon 10/km --ledger budget.db --policy "40/km per day"`

    Several processes: `metricdp serve --mechanism rome.mdp --ledger postgresql://host/ledger --ledger-key ledger.key
    --keys service.keys --processes 4`

    Before the first start: `metricdp serve keys make my-app --scope release --keys budget.db.keys`

    Args:
        storage: Where what must last is kept.
        offered: What is served.
        listen: Where it is reached.
        bounds: How much it takes on.
        log: What is logged to the error stream, one JSON object a line; never a secret, a key or a report.
    """
    _check_extra()
    from metricdp.service import server
    from metricdp.service.app import LedgerSettings, Settings

    if listen.processes > 1 and not is_server(storage.ledger):
        raise InvalidInput(
            "a ledger in a file has one writer at a time, so more processes would only wait for each other: use "
            "PostgreSQL (--ledger postgresql://...), or remove --processes."
        )
    offers = _offers(offered)
    ledger_settings, keys = (
        LedgerSettings(storage.ledger, storage.policy, storage.ledger_key, storage.ledger_head),
        _key_file(storage.keys, storage.ledger),
    )
    settings = Settings(ledger_settings, keys, limits=plain_record(ServiceLimits, bounds), jobs=storage.jobs)
    bound_socket = listen.bound_socket()
    with bound_socket:
        served = [offer.load() for offer in offers]
        settings.ledger_settings.open().close()  # what is wrong with a file or the ledger is said here, as a sentence
        terminal.say(
            f"metricdp serves at {listen.address(bound_socket)}; Ctrl-C stops it when what was charged is answered."
        )
        for one in served:
            terminal.say(f"{one.name}: {one.guarantee_record['guarantee']['sentence']}")
        sys.stdout.flush()
        return server.serve(
            server.ApplicationFactory(settings, tuple(offers), listen.processes, level=log), listen, bound_socket
        )


def _offers(asked: OfferOptions) -> list[MechanismSpec]:
    from metricdp.service.server import MechanismSpec
    from metricdp.specs import read_metric

    if asked.key is not None and not asked.mechanism:
        raise InvalidInput("--key is for mechanism files that were signed: name one with --mechanism.")
    if asked.snap is not None and not asked.mechanism:
        raise InvalidInput(
            "--snap is for mechanisms on finitely many points: Laplace noise takes every value as it is."
        )
    snap = asked.snap or 0.0
    offers = [MechanismSpec(name, path, asked.key, snap=snap) for name, path in map(_name_and_file, asked.mechanism)]
    if asked.epsilon is not None:
        metric = read_metric(asked.metric)
        offers.append(MechanismSpec("laplace", epsilon=parse_epsilon(asked.epsilon, metric.unit), metric=metric))
    if not offers:
        raise InvalidInput("name what to serve: --mechanism rome.mdp, or --epsilon 10/km for Laplace noise.")
    return offers


def _name_and_file(text: str) -> tuple[str, str]:
    """Return a mechanism's name and its file, from `name=file` or a file alone."""
    name, _, path = text.partition("=")
    return (name, path) if path else (Path(text).stem, text)


def _check_extra() -> None:
    for module in ("fastapi", "uvicorn", "prometheus_client"):
        import_extra(module, "service")


def _key_file(named: str | None, ledger: str) -> str:
    if named is None and is_server(ledger):
        raise InvalidInput("name the file of API keys with --keys: `metricdp serve keys make` writes one.")
    chosen = named or f"{ledger}.keys"
    if not Path(chosen).is_file():
        raise InvalidInput(
            f"there is no file of API keys {chosen!r}, so nobody could ask anything. Make a first key: "
            f"metricdp serve keys make my-app --scope release --keys {chosen}"
        )
    return chosen


@keyring.command
def make(
    name: str,
    /,
    *,
    keys: KeyFile,
    scope: tuple[str, ...] = ("release",),
    days: float | None = None,
    replaces: str | None = None,
) -> int:
    """Make a key and print its token, once: only its hash is kept.

    An example: `metricdp serve keys make my-app --scope release --scope read --keys budget.db.keys`

    Args:
        name: Whose key it is; for people.
        keys: The file of keys; made where there is none.
        scope: release (draw reports), read (budgets, mechanisms, audits, metrics) or admin (designs); may be repeated.
        days: After how many days it ends by itself.
        replaces: The id of a key of the same client that this one replaces: requests that were answered under the old
            key are answered under the new one and not charged again. Revoke the old one when nobody uses it any more.
    """
    from metricdp.service.keys import make_key

    token = make_key(keys, name, scope, days=days, replaces=replaces)
    terminal.say(token)
    terminal.say("This is the token. It is not kept here and cannot be shown again; send it as", stream=sys.stderr)
    terminal.say("  Authorization: Bearer TOKEN", stream=sys.stderr)
    return 0


@keyring.command(name="list")
def show(*, keys: KeyFile) -> int:
    """List the keys of a file: who has them, what they may do, whether they still open anything.

    An example: `metricdp serve keys list --keys budget.db.keys`

    Args:
        keys: The file of keys.
    """
    from metricdp.service.keys import read_keys

    rows = [
        {
            "id": key.id, "name": key.name, "scopes": ",".join(key.scopes), "made": key.made,
            "ends": key.expires or "never", "revoked": key.revoked or "no",
        }
        for key in read_keys(keys)
    ]  # fmt: skip
    terminal.say(*terminal.table_lines(["id", "name", "scopes", "made", "ends", "revoked"], rows))
    return 0


@keyring.command
def revoke(which: str, /, *, keys: KeyFile) -> int:
    """Revoke a key; a running service refuses it within a second.

    An example: `metricdp serve keys revoke 3f9ac01d22be --keys budget.db.keys`

    Args:
        which: The id, as `metricdp serve keys list` shows it: the first part of the token.
        keys: The file of keys.
    """
    from metricdp.service.keys import revoke_key

    key = revoke_key(keys, which)
    terminal.say(f"{key.id} ({key.name}) is revoked since {key.revoked}.")
    return 0


def studio(
    *,
    port: int = 0,
    ledger: str | None = None,
    policy: str | None = None,
    key: str | None = None,
    mechanism: tuple[str, ...] = (),
    browser: Annotated[bool, Parameter(negative="--no-browser")] = True,
) -> int:
    """Open Studio in the browser: feel, protect, design, audit and budget, on this machine and nowhere else.

    An example: `metricdp studio`

    With a ledger and a key of your own: `metricdp studio --ledger budget.db --key me.key`

    Args:
        port: The port on this machine; a free one unless given.
        ledger: The ledger of the room Budget, such as budget.db; some that vanish with Studio unless given.
        policy: What a person may spend, where the ledger begins, such as "40/km per day, 200/km ever".
        key: The private key that signs what you design (`metricdp keys me`); one of this session unless given.
        mechanism: A mechanism file that the room Budget releases with, or name=file; may be repeated.
        browser: Open the browser; `--no-browser` only prints the address.
    """
    _check_extra()
    from metricdp.service.server import MechanismSpec
    from metricdp.studio.server import POLICY, StudioOptions, run

    if not 0 <= port <= 65_535:
        raise InvalidInput(f"--port must lie between 0 and 65535, got {port}.")
    if key is not None:
        existing_file(key, "key file")
    served = tuple(MechanismSpec(name, path).load() for name, path in map(_name_and_file, mechanism))
    opening = StudioOptions(port, ledger, policy or POLICY, key, served)
    return run(opening, browser=browser)
