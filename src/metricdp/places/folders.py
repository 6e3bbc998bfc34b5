"""Where data lies: a folder that is named, one beside the checkout, or the package itself."""

from __future__ import annotations

import os
from pathlib import Path

from metricdp.errors import InvalidInput

BUNDLED_FOLDER = Path(__file__).resolve().parents[1] / "data"
CENTERS = {"porto": (41.1496, -8.6110), "rome": (41.8986, 12.4769)}  # where each city is cut by default


def data_folder() -> Path:
    """Return where larger data is: `METRICDP_DATA`, else the shared folder beside a checkout, else the bundled data."""
    named = os.environ.get("METRICDP_DATA", "")
    if named:
        if not Path(named).is_dir():
            raise InvalidInput(f"METRICDP_DATA must name a folder, got {named!r}. Create it or unset the variable.")
        return Path(named)
    project = Path(__file__).resolve().parents[3]
    beside = project.parent / "shared" / "data"
    if (project / "pyproject.toml").is_file() and beside.is_dir():
        return beside
    return BUNDLED_FOLDER
