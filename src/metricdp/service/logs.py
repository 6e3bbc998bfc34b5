"""What is logged: which endpoint, what came of it, how long it took, whose key by its public id. Nothing that was sent.

Errors are logged by their class and the lines of code they passed; their messages, which may quote values, are not.
"""

from __future__ import annotations

import json
import logging
import re
import sys
import time
import traceback
from types import TracebackType

logger = logging.getLogger("metricdp.service")
FRAMES = 6
SENTENCES = "metricdp"  # logger of sentences about tables: they name columns, and belong in no log
_PLACE = re.compile(r"%[-#0 +]*[\d.*]*[a-zA-Z]|%\(\w+\)[a-zA-Z]|\{[^}]*\}")


class JsonFormatter(logging.Formatter):
    """One JSON object a line: time, level, what happened."""

    def format(self, record: logging.LogRecord) -> str:
        moment = time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(record.created))
        entry = {"time": f"{moment}.{int(record.msecs):03d}Z", "level": record.levelname.lower()}
        # Records of other packages may quote what was sent in their arguments: only their plain text is logged.
        ours = record.name.startswith("metricdp.")
        entry["event"] = record.getMessage() if ours else _plain(record)
        entry.update(getattr(record, "values", {}))
        if record.exc_info and record.exc_info[0] is not None:
            entry["error"] = where(record.exc_info[0], record.exc_info[2])
        return json.dumps(entry, ensure_ascii=True, default=str)


def _plain(record: logging.LogRecord) -> str:
    """Return the plain text of a record, or whose record it is where nothing but places for arguments is in it."""
    text = str(record.msg)[:200]
    return text if re.search(r"\w", _PLACE.sub("", text)) else f"a record of {record.name}, whose text is not logged"


def where(kind: type[BaseException], trace: TracebackType | None) -> str:
    """Return an error as its class and the last places it passed, without its message."""
    frames = traceback.extract_tb(trace)[-FRAMES:]
    places = " < ".join(f"{frame.filename.rpartition('/')[2]}:{frame.lineno}" for frame in reversed(frames))
    return f"{kind.__name__} at {places}" if places else kind.__name__


def set_up(level: str = "info") -> None:
    """Send every log of this process to the error stream, one JSON object a line."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(JsonFormatter())
    handler.addFilter(lambda record: record.name != SENTENCES)
    root = logging.getLogger()
    for old in list(root.handlers):
        root.removeHandler(old)
    root.addHandler(handler)
    root.setLevel(logging.WARNING)
    logger.setLevel(level.upper())
    logging.getLogger("uvicorn").setLevel(logging.WARNING)


def log_request(route: str, status: int, seconds: float, key: str, error: str = "") -> None:
    """Log one request: the endpoint by its own name, never the path that was sent."""
    if not logger.isEnabledFor(logging.INFO):
        return
    values = {"route": route, "status": status, "ms": round(1000 * seconds, 1), "key": key}
    logger.info("answered", extra={"values": values | ({"refused": error} if error else {})})
