"""A study of one's own: what privacy costs on grids that grow."""

import metricdp as mdp
from metricdp.experiments import STUDIES, Study


def grids(sides: str = "4") -> None:
    """Print the loss of the exponential mechanism on grids of growing sides."""
    for side in range(2, int(sides) + 1):
        mechanism = mdp.exponential(mdp.grid((side, side)), 1.0)
        print(f"{side} x {side}: {mechanism.certificate.loss:.4f}")


STUDIES.declare(Study("grids", grids, "what privacy costs on grids that grow"))

if __name__ == "__main__":
    grids("3")
