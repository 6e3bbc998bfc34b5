"""Draw what a promise costs in every place of a city: docs/images/cities.png.

    python benchmarks/cities_picture.py --record                 # all of Rome: minutes on two cores
    python benchmarks/cities_picture.py --nodes 1000 -o map.png  # the centre

Every crossing has the colour of its own expected loss under one mechanism for the whole city. The histogram counts
crossings; the lines are the average and the bound below which no mechanism gets it.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from record import arguments, recorder

import metricdp as mdp
from metricdp.plots.palette import BOUND, INK, PAPER, STYLE, write_picture

WINDOW = 2.2  # kilometres
SHARES = (0.1, 0.5, 0.9)
WHAT = "Rome, loss by place, epsilon 10/km"


def losses(mechanism: mdp.mechanisms.LocalMechanism, window: float) -> NDArray[np.float64]:
    """Return the expected road distance in metres between truth and report, of every crossing, at most."""
    near = mechanism.inputs.near(window)
    assert np.array_equal(near.codes, mechanism.columns)
    background = mechanism.background.astype(np.float64)
    paid = np.add.reduceat(mechanism.values * near.distances, near.starts[:-1])
    far = mdp.Problem(mechanism.inputs, mechanism.guarantee.epsilon).most_beyond(background)
    return np.asarray(1000.0 * (paid + far) / mechanism.totals)


def draw(places: NDArray[np.float64], metres: NDArray[np.float64], certificate: mdp.Certificate, target: Path) -> None:
    """Draw the map and the histogram, on one scale of colours."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    low, high = np.quantile(metres, [0.01, 0.99])
    with pyplot.rc_context(STYLE):
        figure, (chart, count) = pyplot.subplots(1, 2, figsize=(8.4, 5.4), width_ratios=(3.1, 1), layout="constrained")
        order = np.argsort(metres)
        size = min(14.0, 40_000 / len(places))
        colours = {"c": metres[order], "s": size, "cmap": "viridis_r", "vmin": low, "vmax": high, "linewidths": 0}
        chart.scatter(places[order, 1], places[order, 0], **colours)
        chart.set_aspect(1.0 / np.cos(np.radians(places[:, 0].mean())))
        chart.set_axis_off()
        chart.set_title(f"What the promise costs at each of {len(places):,} crossings")
        heights, edges = np.histogram(metres, 60)
        middles = (edges[:-1] + edges[1:]) / 2
        shades = pyplot.get_cmap("viridis_r")((middles - low) / (high - low))
        count.barh(middles, heights, height=edges[1] - edges[0], color=shades)
        room, paper = 2.8 * heights.max(), {"facecolor": PAPER, "edgecolor": "none", "alpha": 0.8, "pad": 1.0}
        for value, colour, words, side in (
            (1000 * certificate.loss, INK, "average", "bottom"),
            (1000 * certificate.lower_bound, BOUND, "no average\nbelow", "top"),
        ):
            count.axhline(value, color=colour, linewidth=1.6)
            words = f"{words} {value:.1f} m"
            count.text(room, value, words, color=colour, ha="right", va=side, fontsize=10, bbox=paper, zorder=0)
        count.set_xlim(0, room)
        count.set_ylabel("expected loss of a crossing, metres along the roads")
        count.set_xlabel("crossings")
        write_picture(figure, target)


def main() -> None:
    """Design the mechanism, draw it, and record what the caption says."""
    parser = arguments(__doc__)
    parser.add_argument("--nodes", type=int)
    parser.add_argument("--gap", type=float, default=0.06)
    parser.add_argument("--seconds", type=float, default=400.0)
    parser.add_argument("-o", "--output", type=Path, default=Path("docs/images/cities.png"))
    chosen = parser.parse_args()
    city = mdp.road_network("rome", nodes=chosen.nodes)
    made = mdp.optimal(mdp.Problem(city, 10.0), gap=chosen.gap, seconds=chosen.seconds, window=WINDOW)
    assert isinstance(made, mdp.mechanisms.LocalMechanism)
    metres = losses(made, WINDOW)
    draw(np.asarray(city.coordinates, dtype=np.float64), metres, made.certificate, chosen.output)
    certificate, shares = made.certificate, {f"{share:.0%}": float(np.quantile(metres, share)) for share in SHARES}
    spread = ", ".join(f"{share} of crossings below {value:.0f} m" for share, value in shares.items())
    which = "all" if chosen.nodes is None else "the"
    where = "" if chosen.nodes is None else " around the centre"
    words = f"{which} {len(city):,} crossings{where}: at most {1000 * certificate.loss:.1f} m on average, "
    words += f"none that reports crossings below {1000 * certificate.lower_bound:.1f} m; {spread}"
    recorder(chosen.record)("cities", WHAT, measured=words, picture=True, crossings=len(city), shares=shares)
    print(words)


if __name__ == "__main__":
    main()
