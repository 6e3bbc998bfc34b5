"""Opening a ledger: it is made where there is none, else checked and brought up to this version.

Every earlier version is brought to this one, step by step, inside one transaction:

    1   the first
    2   a ledger knows that it is a copy: a backup releases nothing until somebody has accepted what it lacks
    3   accounts name metrics with their parameters, all l_p are one account, and sums are charged part by part. What
        was spent under earlier names stays in its rows and counts against the accounts that follow them; this step
        notes which such names there are. Earlier versions would charge them again: they refuse this one.

A step adds; it changes no entry, so that the chain goes on. `tests/data/ledger-v1.db` and so on are ledgers of each
version, which every later one has to open.
"""

from __future__ import annotations

import logging
import secrets
from contextlib import suppress
from pathlib import Path

import sqlalchemy as sa

from metricdp.errors import InvalidInput, OutputProblem
from metricdp.ledger.amounts import may_be_replaced
from metricdp.ledger.chain import HEAD, START, LedgerEntry, append, ends_of, find_loss, lock_lane
from metricdp.ledger.head import RECOVER, End, Head, HeadFile
from metricdp.ledger.keys import LedgerKey, create_key, read_key
from metricdp.ledger.policy import EXAMPLE, Policy
from metricdp.ledger.schema import ACCOUNTS, BOOKS, ENTRIES, LANES, METADATA, VERSION
from metricdp.ledger.settling import state_of
from metricdp.ledger.store import Store

logger = logging.getLogger("metricdp.ledger")


def open_key(store: Store, policy: Policy | None, clock: int, *, read_only: bool = False) -> LedgerKey:
    """Return the key of a ledger that is there, or make it with a policy; one that lost entries is refused.

    Opened for reading only, a ledger that lost entries is warned of, and nothing is written.
    """
    if _is_there(store):
        key = read_key(store.key_file)
    elif policy is None or read_only:
        raise InvalidInput(
            f"there is no ledger at {store.place!r}: to begin one, say what a person may spend, such as "
            f"policy={EXAMPLE!r} (metricdp budget begin {store.place} --policy {EXAMPLE!r})."
        )
    else:
        key = _begin(store, policy, clock)
    if not read_only or not _is_current(store, key, policy):
        store.run(lambda connection: _check_version(connection, store, key, policy, clock))
    store.read_only = read_only
    if store.head_file is not None:
        _meet_head(store, HeadFile(store.head_file, key), key, clock)
    return key


def recover(store: Store, policy: Policy | None, clock: int) -> str:
    """Accept that a ledger lost entries: go on with what is there, or begin anew. Return what was lost."""
    key_file, head_file = store.key_file, store.head_file
    if head_file is None:
        raise InvalidInput("nothing says how far a ledger on a server had come: name its head file with --head-file.")
    if _is_there(store):
        key = read_key(key_file)
        store.run(lambda connection: _check_version(connection, store, key, policy, clock))
        loss = _loss(store, HeadFile(head_file, key), key)
        if loss is None:
            raise InvalidInput(f"the ledger {store.place!r} lacks nothing that its head file knows of.")
    else:
        if policy is None:
            raise InvalidInput(
                f"there is no ledger at {store.place!r}, so it begins anew: say what a person may spend, such as "
                f"--policy {EXAMPLE!r}."
            )
        if not (key_file.exists() or head_file.exists()):
            raise InvalidInput(f"there was no ledger at {store.place!r}: begin one with `metricdp budget begin`.")
        key, name = read_key(key_file) if key_file.exists() else create_key(key_file), secrets.token_hex(16)
        HeadFile(head_file, key).create(Head(name))
        store.run(lambda connection: _check_version(connection, store, key, policy, clock, name))
        loss = "the database was empty or gone, and everything in it is lost"

    def accept(connection: sa.Connection) -> tuple[str, dict[int, End]]:
        end = lock_lane(connection, 0)
        now = max(clock, connection.execute(sa.select(sa.func.max(LANES.c.time))).scalar_one())
        append(connection, key, [LedgerEntry("recover", time=now, note=loss)], end, (now, end.accounts))
        return connection.execute(sa.select(BOOKS.c.name)).scalar_one(), ends_of(connection)

    name, ends = store.run(accept)
    HeadFile(head_file, key).create(Head(name, ends))
    return loss


def _begin(store: Store, policy: Policy, clock: int) -> LedgerKey:
    """Make a ledger where there is none, and return its key."""
    key_file, head_file = store.key_file, store.head_file
    if not store.backend.needs_head:
        if head_file is not None and head_file.exists() and not _is_there(store):  # by now
            raise _missing_error(head_file, "head file")
        with suppress(OutputProblem):  # somebody else begins the same ledger
            create_key(key_file)
        return read_key(key_file)
    assert head_file is not None  # the backend says where
    with store.backend.alone():
        if _is_there(store):  # by now
            return read_key(key_file)
        name = secrets.token_hex(16)
        if key_file.exists():  # its beginning was cut off, or it is gone
            key, head = read_key(key_file), None
            with suppress(InvalidInput):
                head = HeadFile(head_file, key).read()
            if head is None or head.lanes:
                raise _missing_error(key_file, "key")
            name = head.ledger
        elif head_file.exists():
            raise _missing_error(head_file, "head file")
        else:
            key = create_key(key_file)
            try:
                HeadFile(head_file, key).create(Head(name))
            except BaseException:  # a key alone is one of a ledger that is gone
                key_file.unlink(missing_ok=True)
                raise
        store.backend.create()
        store.run(lambda connection: _check_version(connection, store, key, policy, clock, name))
        return key


def _missing_error(place: Path, what: str) -> InvalidInput:
    return InvalidInput(
        f"{str(place)!r} is the {what} of a ledger that is gone or empty: beginning anew would give everybody their "
        "budget back. Restore the ledger from a backup. If it is lost, or was never in use, `metricdp budget "
        f"recover --accept-loss --policy {EXAMPLE!r}` begins anew, and the chain records it."
    )


def _meet_head(store: Store, file: HeadFile, key: LedgerKey, clock: int) -> None:
    """Compare a ledger with its head file and move the file forward; make one where there never was one."""
    loss = _loss(store, file, key)
    if loss is not None:
        sentence = (
            f"the ledger {store.place!r} is behind its head file {str(file.path)!r}: {loss}. Charges are missing, "
            "and going on would give budgets back. Put the right database back, with its `-wal` file. If it is lost, "
            f"{RECOVER}."
        )
        if not store.read_only:
            raise InvalidInput(sentence)
        store.loss = sentence
        logger.warning("%s", sentence)
    elif not store.read_only:
        needed = store.backend.needs_head
        with store.reading() as connection:
            name, ends = connection.execute(sa.select(BOOKS.c.name)).scalar_one(), ends_of(connection)
            known = _has_head(connection)
        if file.read() is None:
            with suppress(OutputProblem):  # somebody else makes it
                file.create(Head(name, ends), new=True)
            without = "The ledger is refused without it." if needed else "It is compared where it is named."
            logger.warning(
                "The ledger %r had no head file: %r is kept from now on. %s", store.place, str(file.path), without
            )
        store.head = file
        file.reach(ends)
        if needed and not known:
            store.run(lambda connection: _note_head(connection, key, clock))


def _loss(store: Store, file: HeadFile, key: LedgerKey) -> str | None:
    """Return what a ledger lacks, None where it lacks nothing that is known."""
    try:
        head = file.read()  # before the ledger: it may go on meanwhile
    except InvalidInput as error:
        return str(error).rstrip(".")
    with store.reading() as connection:
        if head is not None:
            return find_loss(connection, key, head)
        if _has_head(connection):
            return "the head file is missing, so nobody can tell how far it had come"
    return None


def _has_head(connection: sa.Connection) -> bool:
    """Tell whether the chain says that there is a head file."""
    asked = sa.select(ENTRIES.c.number).where(
        ENTRIES.c.lane == 0, ENTRIES.c.kind == "policy", ENTRIES.c.purpose == HEAD
    )
    return connection.execute(asked.limit(1)).first() is not None


def _note_head(connection: sa.Connection, key: LedgerKey, clock: int) -> None:
    """Record in the chain that there is a head file from now on."""
    end, state = lock_lane(connection, 0), state_of(connection, clock)
    note = LedgerEntry("policy", time=state.now, purpose=HEAD, note=str(state.policy))
    append(connection, key, [note], end, (state.now, end.accounts))


def _is_there(store: Store) -> bool:
    if not store.backend.exists():
        return False
    with store.reading() as connection:
        tables = sa.inspect(connection).get_table_names()
    if BOOKS.name not in tables:
        store.backend.check_tables(tables)
        return False
    return True


def _is_current(store: Store, key: LedgerKey, policy: Policy | None) -> bool:
    """Tell whether a ledger is of this version; a key that is not its own is refused."""
    with store.reading() as connection:
        return _version(connection, store, key, policy) == VERSION


def _check_version(
    connection: sa.Connection, store: Store, key: LedgerKey, policy: Policy | None, clock: int, name: str | None = None
) -> None:
    store.backend.lock_schema(connection)
    if not sa.inspect(connection).has_table(BOOKS.name):
        _create(connection, store, key, policy, clock, name or secrets.token_hex(16))
    version = _version(connection, store, key, policy)
    if version < 2:
        connection.exec_driver_sql("ALTER TABLE books ADD COLUMN copied BIGINT")
    if version < 3:
        connection.exec_driver_sql("ALTER TABLE books ADD COLUMN replaced TEXT")
        names = connection.execute(sa.select(ACCOUNTS.c.metric).distinct().order_by(ACCOUNTS.c.metric)).scalars()
        replaced = "\n".join(name for name in names if may_be_replaced(name))
        connection.execute(BOOKS.update().values(replaced=replaced, version=VERSION))


def _version(connection: sa.Connection, store: Store, key: LedgerKey, policy: Policy | None) -> int:
    """Return the version of a ledger, or refuse it."""
    columns = (BOOKS.c.version, BOOKS.c.name, BOOKS.c.policy, BOOKS.c.key_check)  # in all versions
    found = connection.execute(sa.select(*columns)).one()
    if found.version > VERSION:
        raise InvalidInput(
            f"the ledger {store.place!r} is of version {found.version} and this metricdp knows versions up to "
            f"{VERSION}: use a newer one."
        )
    if bytes(found.key_check) != key.seal(b"check", found.name.encode()):
        raise InvalidInput(f"the key file does not belong to the ledger {store.place!r}: name the one it began with.")
    if policy is not None and Policy.parse(found.policy) != policy:
        raise InvalidInput(
            f"the ledger {store.place!r} has the policy {found.policy!r}: give no policy, or change it with "
            "`metricdp budget policy`, which the chain records."
        )
    return int(found.version)


def _create(
    connection: sa.Connection, store: Store, key: LedgerKey, policy: Policy | None, clock: int, name: str
) -> None:
    if policy is None:
        raise InvalidInput(f"there is no ledger at {store.place!r}: say what a person may spend, such as {EXAMPLE!r}.")
    METADATA.create_all(connection)
    text = str(policy)
    connection.execute(
        BOOKS.insert(),
        {
            "id": 1, "version": VERSION, "name": name, "policy": text, "created": clock, "replaced": "",
            "key_check": key.seal(b"check", name.encode()),
        },
    )  # fmt: skip
    empty = {"blocks": 0, "entries": 0, "accounts": 0, "time": clock, "head": START}
    connection.execute(LANES.insert(), [{"lane": lane} | empty for lane in range(store.backend.lanes)])
    first = LedgerEntry("policy", time=clock, purpose=HEAD if store.backend.needs_head else "", note=text)
    append(connection, key, [first], lock_lane(connection, 0), (clock, 0))
