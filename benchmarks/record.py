"""Figures with a history: one JSON line for every measurement, with the machine it was made on.

    record("tables", "10 million rows, Parquet to Parquet", asked="2 million rows/s", measured="3.4 million rows/s")

appends to `benchmarks/results/tables.jsonl`; `python benchmarks/figures.py` writes the tables of `docs/figures.md`
from the newest line of every `what`. Further values go along by name.
"""

from __future__ import annotations

import datetime
import json
import os
import platform
from pathlib import Path
from typing import Any

import metricdp

RESULTS = Path(__file__).parent / "results"


def machine() -> dict[str, Any]:
    """Return what a figure depends on: cores, memory, how busy they were, versions."""
    pages, size = os.sysconf("SC_PHYS_PAGES"), os.sysconf("SC_PAGE_SIZE")
    return {
        "cores": os.cpu_count(),
        "memory_gib": round(pages * size / 2**30, 1),
        "load": round(os.getloadavg()[0], 2),
        "system": f"{platform.system()} {platform.machine()}",
        "python": platform.python_version(),
    }


def record(group: str, what: str, *, measured: str, asked: str = "", **values: Any) -> None:
    """Append one measurement: in words for the page, and as plain values for whoever computes with it."""
    RESULTS.mkdir(exist_ok=True)
    line = {
        "what": what,
        "asked": asked,
        "measured": measured,
        "values": values,
        "date": datetime.date.today().isoformat(),
        "version": metricdp.__version__,
        "machine": machine(),
    }
    with (RESULTS / f"{group}.jsonl").open("a", encoding="utf-8") as file:
        file.write(json.dumps(line, ensure_ascii=False, allow_nan=False) + "\n")
