"""The command that opens Studio."""

from __future__ import annotations

from metricdp.errors import InvalidInput, import_extra
from metricdp.files import existing_file


def studio(
    *,
    port: int = 0,
    ledger: str | None = None,
    policy: str | None = None,
    key: str | None = None,
    mechanism: tuple[str, ...] = (),
    browser: bool = True,
) -> int:
    """Open Studio in the browser: feel, protect, design, audit and budget, on this machine and nowhere else.

    An example: `metricdp studio`

    With books and a key of your own: `metricdp studio --ledger budget.db --key me.key`

    Args:
        port: The port on this machine; a free one unless given.
        ledger: The books of the room Budget, such as budget.db; some that vanish with Studio unless given.
        policy: What a person may spend, where the books begin, such as "40/km per day, 200/km ever".
        key: The private key that signs what you design (`metricdp keys me`); one of this session unless given.
        mechanism: A mechanism file that the room Budget releases with, or name=file; may be repeated.
        browser: Open the browser; `--no-browser` only prints the address.
    """
    for module in ("fastapi", "uvicorn", "prometheus_client"):
        import_extra(module, "service")
    from metricdp.service.running import Offer
    from metricdp.studio.running import POLICY, Opening, run

    if not 0 <= port <= 65_535:
        raise InvalidInput(f"--port must lie between 0 and 65535, got {port}.")
    if key is not None:
        existing_file(key, "key file")
    offers = [name.partition("=") for name in mechanism]
    named = [(one[0], one[2]) if one[2] else (_stem(one[0]), one[0]) for one in offers]
    served = tuple(Offer(name, path=path).served() for name, path in named)
    opening = Opening(port, ledger, policy or POLICY, key, served)
    return run(opening, browser=browser)


def _stem(path: str) -> str:
    from pathlib import Path

    return Path(path).stem
