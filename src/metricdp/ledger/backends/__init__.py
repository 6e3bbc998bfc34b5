"""The databases that keep ledgers: one file each, and what they have to say of themselves.

A backend from outside is declared the same way: `BACKENDS.declare(...)`, see docs/extend.md.
"""

import os

from metricdp.files import is_server
from metricdp.ledger.backends.base import DAMAGE as DAMAGE
from metricdp.ledger.backends.base import Backend as Backend
from metricdp.ledger.backends.base import Hold as Hold
from metricdp.ledger.backends.base import WholeNumber as WholeNumber
from metricdp.ledger.backends.base import backend_of as backend_of
from metricdp.ledger.backends.base import connect as connect
from metricdp.ledger.backends.base import is_full as is_full
from metricdp.ledger.backends.postgres import Postgres
from metricdp.ledger.backends.sqlite import Sqlite
from metricdp.registry import NameRegistry

BACKENDS: NameRegistry[type[Backend]] = NameRegistry("ledger backend", [Sqlite, Postgres])


def backend_at(place: str | os.PathLike[str]) -> Backend:
    """Return the backend of a place: a file, or an address whose scheme one of them declares."""
    text = os.fspath(place)
    if not is_server(text):
        return Sqlite(text)
    scheme = text.partition("://")[0].partition("+")[0]
    chosen = next((one for one in BACKENDS if scheme in one.schemes), Postgres)  # which refuses what it does not know
    return chosen(text)
