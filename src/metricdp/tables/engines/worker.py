"""A worker process of the local engine: partition numbers come in, one JSON object a line goes out."""

from __future__ import annotations

import json
import sys
from dataclasses import asdict
from typing import Any

from metricdp.plugins import load_inherited
from metricdp.tables.jobs.errors import pack_error
from metricdp.tables.jobs.folder import run_partition


def say(value: dict[str, Any]) -> None:
    """Write one line; a driver that is gone ends the worker."""
    print(json.dumps(value), flush=True)


def main(folder: str) -> None:
    """Protect partitions until the input ends."""
    for line in sys.stdin:
        number = int(line)
        try:
            record = run_partition(folder, number, lambda rows: say({"rows": rows}))
        except Exception as error:  # whatever it is, its text may quote the data
            say({"failed": pack_error(error)})
        else:
            say({"done": number, "record": asdict(record)})


if __name__ == "__main__":
    try:
        load_inherited()
        main(sys.argv[1])
    except (KeyboardInterrupt, BrokenPipeError):
        sys.exit(130)
