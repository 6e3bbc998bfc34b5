"""What every space can be asked."""

from __future__ import annotations

import numpy as np

from metricdp.arrays import Points


def show(value: Points) -> str:
    """Return a value as people read it."""
    items = [str(v) if isinstance(v, str) else f"{v:.9g}" for v in np.asarray(value).ravel()[:6].tolist()]
    return "(" + ", ".join(items) + (", ..." if value.size > 6 else "") + ")"
