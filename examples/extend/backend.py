"""A ledger backend of one's own: a ledger in the memory of one process, for tests of what uses one."""

import sqlite3
import threading
from contextlib import ExitStack

import sqlalchemy as sa
from sqlalchemy.dialects import sqlite

from metricdp.errors import InvalidInput
from metricdp.ledger import Ledger
from metricdp.ledger.backends import BACKENDS, Backend, Hold

OPEN, STREAMS, LOCK = {}, set(), threading.Lock()


class Memory(Backend):
    """Tables without a file. Every ledger of this process with the same name sees them; they end with the process."""

    name = "memory"
    about = "the memory of one process, gone when it ends: for tests"
    schemes = ("memory",)
    reasons = ((("locked",), "another thread held it for 30 seconds"),)

    def __init__(self, place):
        name = place.partition("://")[2]
        if not name.isidentifier():
            raise InvalidInput(f"a ledger in memory has one word for a name, such as memory://test, got {place!r}.")
        self.place = place
        self.url = sa.URL.create("sqlite+pysqlite", database=f"file:/{name}", query={"vfs": "memdb", "uri": "true"})
        self.options = {"connect_args": {"timeout": 30, "check_same_thread": False}}
        with LOCK:  # the tables go with the last connection: this one stays
            OPEN[name] = OPEN.get(name) or sqlite3.connect(f"file:/{name}?vfs=memdb", uri=True, check_same_thread=False)

    def prepare(self, connection):
        connection.isolation_level = None  # transactions begin where `begin` says so

    def begin(self, connection, *, reading):
        connection.exec_driver_sql("BEGIN" if reading else "BEGIN IMMEDIATE")  # whoever writes is alone

    def lock_rows(self, question, table, by):
        return question

    def lock_accounts(self, connection):
        pass

    def hold(self, engine, name, ledger):
        with LOCK:
            if (ledger, name) in STREAMS:
                raise InvalidInput(f"the stream {name!r} of the ledger {self.place!r} is stepped elsewhere.")
            STREAMS.add((ledger, name))
        held = ExitStack()
        held.callback(STREAMS.discard, (ledger, name))
        return Hold(held)

    def insert(self, table):
        return sqlite.insert(table)

    def numbers(self, connection, count):
        number = sa.select(sa.literal(0).label("i")).cte(recursive=True, nesting=True)
        number = number.union_all(sa.select(number.c.i + 1).where(number.c.i < count - 1))
        return sa.select(number.c.i).subquery("numbers")  # a part: a statement that begins with it counts no rows

    def join_words(self, columns):
        return sa.func.printf(sa.literal_column(f"'{' '.join(['%s'] * len(columns))}'"), *columns, type_=sa.Text)


BACKENDS.declare(Memory)

if __name__ == "__main__":
    with Ledger.open("memory://test", policy="40/km per day", key_file="test.key") as ledger:
        for request in ("first", "second", "first"):
            ledger.release("anna", request, key="app", metric="haversine/km", epsilon=10.0, draw=lambda: b"a report")
        print(ledger.budget("anna"))
        print("The ledger holds." if ledger.verify().holds else "The ledger was changed.")
