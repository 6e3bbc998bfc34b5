"""Where the command begins: Ctrl-C is answered from the first line on, while everything else is still imported."""

from __future__ import annotations

import os
import signal
import sys


def main() -> int:
    """Run the command and return its exit code; interrupted before it is there, end with one line."""
    listening = signal.getsignal(signal.SIGINT) is signal.default_int_handler  # not where Ctrl-C is ignored: nohup
    if listening:
        signal.signal(signal.SIGINT, _end)
    from metricdp.cli import main as command

    if listening:
        signal.signal(signal.SIGINT, signal.default_int_handler)  # from here on `command` answers
    return command()


def _end(*_: object) -> None:
    """End at once: an exception could surface in the middle of any import, which may take it for its own."""
    os.write(2, b"interrupted: nothing was written\n")
    os._exit(130)


if __name__ == "__main__":
    sys.exit(main())
