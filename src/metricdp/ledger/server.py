"""How a PostgreSQL server is spoken to: a network that falls silent holds nobody up for long, on either side.

The books are written by one thread that others wait for. Packets that are not acknowledged, or keepalives that are not
answered, end a connection within `SILENCE` seconds; a transaction that was not committed by then is rolled back, and
the server, which is told the same, lets go of its locks. Whether a commit got through shows when the request is
repeated.
"""

from __future__ import annotations

import logging
from typing import Any

CONNECTING = 5  # seconds until a server that does not answer is out of reach
SILENCE = 20  # seconds without a sign of life
IDLE, INTERVAL, COUNT = 10, 5, 2  # a keepalive after so many idle seconds, then so often: 20 seconds together
ABANDONED = 120  # seconds that a transaction may wait for its client, whatever the network says
logger = logging.getLogger("metricdp.ledger")


def connect_arguments(said: Any) -> dict[str, Any]:
    """Return what connections are opened with, but for what the address of the server says itself."""
    usual = {
        "connect_timeout": CONNECTING,
        "keepalives": 1,
        "keepalives_idle": IDLE,
        "keepalives_interval": INTERVAL,
        "keepalives_count": COUNT,
        "tcp_user_timeout": SILENCE * 1000,
    }
    return {name: value for name, value in usual.items() if name not in said}


def prepare(connection: Any, patience: int) -> None:
    """Tell the server how a connection is kept, and that commits wait for the disk whatever its default is."""
    settings = {
        "synchronous_commit": "on",
        "lock_timeout": f"{patience}s",
        "default_transaction_isolation": "read committed",
        "idle_in_transaction_session_timeout": f"{ABANDONED}s",
        "tcp_keepalives_idle": IDLE,
        "tcp_keepalives_interval": INTERVAL,
        "tcp_keepalives_count": COUNT,
        "tcp_user_timeout": SILENCE * 1000,
    }
    with connection.cursor() as cursor:
        for name, value in settings.items():
            cursor.execute(f"SET {name} = '{value}'")
    connection.commit()


class _Broken(logging.Filter):
    """Takes what the driver says about connections that broke while it was tidying up.

    Whoever asked gets the error itself. What the driver adds names the server, the user and the database, is printed to
    standard error where nobody has set up logging, and helps nobody; that it happened is told to our own logger.
    """

    def filter(self, record: logging.LogRecord) -> bool:
        if isinstance(record.msg, str) and record.msg.startswith("error ignored"):
            logger.debug("the driver let go of a connection that was broken: %s", record.msg.partition("%")[0].strip())
            return False
        return True


def quieten() -> None:
    """Take the driver's words about broken connections; once is enough."""
    driver = logging.getLogger("psycopg")
    if not any(isinstance(one, _Broken) for one in driver.filters):
        driver.addFilter(_Broken())
