"""One palette for every picture: its colours differ for the colour-blind too, in light and in dark."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from metricdp.errors import import_extra
from metricdp.files import replace_file

INK = "#1f2933"
MUTED = "#67727e"
LINE = "#c9d1d9"
PAPER = "#ffffff"
TRUE = "#1368aa"  # what is secret
REPORTED = "#d9622b"  # what is released
BEST = "#0f8a6d"  # the optimised mechanism
BOUND = "#6b4fa3"  # what no mechanism with the same reports can beat
PLAIN = "#9aa9b8"  # everything to compare with
SERIES = (TRUE, REPORTED, BEST, BOUND, "#b8860b", MUTED)  # several lines in one picture
MARKERS = "osD^vP"

STYLE = {
    "font.family": "sans-serif",
    "font.size": 11.0,
    "text.color": INK,
    "axes.edgecolor": LINE,
    "axes.labelcolor": MUTED,
    "axes.titlesize": 13.0,
    "axes.titleweight": "bold",
    "axes.titlelocation": "left",
    "axes.spines.top": False,
    "axes.spines.right": False,
    "xtick.color": MUTED,
    "ytick.color": MUTED,
    "figure.facecolor": PAPER,
    "axes.facecolor": PAPER,
    "svg.hashsalt": "metricdp",
}


def figure(width: float, height: float) -> Any:
    """Return a new figure with its own canvas; nothing global is touched."""
    import_extra("matplotlib", "plots")
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    result = Figure(figsize=(width, height), dpi=130, layout="constrained")
    FigureCanvasAgg(result)
    return result


@contextmanager
def drawing(axes: Any, width: float, height: float) -> Iterator[Any]:
    """Give axes in the style of every picture: the given ones, or those of a new figure."""
    with plot_style():
        yield figure(width, height).add_subplot() if axes is None else axes


def write_picture(picture: Any, path: str | Path) -> Path:
    """Write axes, or a whole figure, to a file: PNG, SVG or PDF by its ending; a failed write leaves no half file."""
    drawn = getattr(picture, "figure", picture)
    kind = Path(path).suffix.lstrip(".").lower() or "png"
    metadata = {"svg": {"Date": None}, "pdf": {"CreationDate": None}}.get(kind)
    with plot_style(), replace_file(path) as partial:
        drawn.savefig(partial, format=kind, metadata=metadata)
    return Path(path)


def plot_style() -> Any:
    """Return a context with the style of every picture."""
    matplotlib = import_extra("matplotlib", "plots")
    return matplotlib.rc_context(STYLE)
