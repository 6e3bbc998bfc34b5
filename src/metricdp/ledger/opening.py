"""Opening books: made where there are none, checked where there are, brought up to this version."""

from __future__ import annotations

import os
import secrets
from contextlib import suppress
from pathlib import Path

import sqlalchemy as sa

from metricdp.errors import InvalidInput, OutputProblem
from metricdp.ledger.chain import START, Entry, append, locked
from metricdp.ledger.keys import Key, create_key, read_key
from metricdp.ledger.migrations import migrated
from metricdp.ledger.policy import EXAMPLE, Policy
from metricdp.ledger.schema import BOOKS, LANES, METADATA, VERSION
from metricdp.ledger.store import Store

LOCK = 0x6D6470626F6F6B73  # "mdpbooks": who makes the tables on a server


def opened(store: Store, key_file: Path, policy: Policy | None, clock: int) -> Key:
    """Return the key of books that are there, or make them with a policy."""
    if _is_there(store):
        key = read_key(key_file)
    elif policy is None:
        raise InvalidInput(
            f"there are no books at {store.place!r}: to begin them, say what a person may spend, such as "
            f"policy={EXAMPLE!r} (metricdp budget begin {store.place} --policy {EXAMPLE!r})."
        )
    elif store.path is not None and key_file.exists() and not store.path.exists():
        raise InvalidInput(
            f"{str(key_file)!r} is the key of books that are gone: beginning anew would give everybody their budget "
            "back. Restore the books from a backup; or, if that is meant, remove the key file first."
        )
    else:
        with suppress(OutputProblem):  # somebody else begins the same books
            create_key(key_file)
        key = read_key(key_file)
        if store.path is not None:
            os.close(os.open(store.path, os.O_WRONLY | os.O_CREAT, 0o600))
    store.run(lambda connection: _checked(connection, store, key, policy, clock))
    return key


def _is_there(store: Store) -> bool:
    if store.path is not None and not store.path.exists():
        return False
    with store.reading() as connection:
        tables = sa.inspect(connection).get_table_names()
    if tables and BOOKS.name not in tables and store.path is not None:
        raise InvalidInput(f"{store.place!r} is another database, not books: choose a new name for them.")
    return BOOKS.name in tables


def _checked(connection: sa.Connection, store: Store, key: Key, policy: Policy | None, clock: int) -> None:
    if connection.dialect.name == "postgresql":
        connection.execute(sa.select(sa.func.pg_advisory_xact_lock(LOCK)))
    if not sa.inspect(connection).has_table(BOOKS.name):
        _made(connection, store, key, policy, clock)
    columns = (BOOKS.c.version, BOOKS.c.name, BOOKS.c.policy, BOOKS.c.key_check)  # in all versions
    found = connection.execute(sa.select(*columns)).one()
    if found.version > VERSION:
        raise InvalidInput(
            f"the books {store.place!r} are of version {found.version} and this metricdp knows versions up to "
            f"{VERSION}: use a newer one."
        )
    if bytes(found.key_check) != key.seal(b"check", found.name.encode()):
        raise InvalidInput(f"the key file does not belong to the books {store.place!r}: name the one they began with.")
    if policy is not None and Policy.parse(found.policy) != policy:
        raise InvalidInput(
            f"the books {store.place!r} have the policy {found.policy!r}: leave the policy away, or change it with "
            "`metricdp budget policy`, which the chain records."
        )
    migrated(connection, found.version)


def _made(connection: sa.Connection, store: Store, key: Key, policy: Policy | None, clock: int) -> None:
    if policy is None:
        raise InvalidInput(f"there are no books at {store.place!r}: say what a person may spend, such as {EXAMPLE!r}.")
    METADATA.create_all(connection)
    name, text = secrets.token_hex(16), str(policy)
    connection.execute(
        BOOKS.insert(),
        {
            "id": 1, "version": VERSION, "name": name, "policy": text, "created": clock,
            "key_check": key.seal(b"check", name.encode()),
        },
    )  # fmt: skip
    empty = {"blocks": 0, "entries": 0, "accounts": 0, "time": clock, "head": START}
    connection.execute(LANES.insert(), [{"lane": lane} | empty for lane in range(store.lanes)])
    append(connection, key, [Entry("policy", time=clock, note=text)], locked(connection, 0), (clock, 0))
