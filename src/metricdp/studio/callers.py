"""Which user of this machine asks, as Linux tells it.

The address that opens Studio stands in the command line of the browser until the page is there, and every user of a
machine can read the command lines of all others. So the code in it is taken from programs of the same user only (and
of root, who can read everything). Systems that do not say whose a connection is take it from everybody.
"""

from __future__ import annotations

import os
import socket
import sys
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

TABLES = ("/proc/net/tcp", "/proc/net/tcp6")  # an IPv6 socket can reach an IPv4 address too
UID = 7  # the field of a line


def is_another_user(scope: Mapping[str, Any]) -> bool:
    """Tell whether a request comes from a program of another user of this machine; False where nobody says."""
    try:
        here, there = (_in_table(*scope[side]) for side in ("client", "server"))
    except (KeyError, TypeError, ValueError, OSError):
        return False
    owners = set[int]()
    for table in TABLES:
        with suppress(OSError, ValueError, IndexError):
            for line in Path(table).read_text().splitlines()[1:]:
                fields = line.split()
                if fields[1].endswith(here) and fields[2].endswith(there):
                    owners.add(int(fields[UID]))
    return bool(owners) and not owners <= {0, os.geteuid()}


def _in_table(host: str, port: int) -> str:
    """Return an address as the table ends it: an IPv4 address inside IPv6 ends in the same digits."""
    number = int.from_bytes(socket.inet_aton(host), sys.byteorder)
    return f"{number:08X}:{port:04X}"
