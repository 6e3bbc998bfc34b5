"""A study of one's own: what privacy costs on grids that grow, beside what none with the same reports can beat."""

import sys
from collections.abc import Iterator
from pathlib import Path

import metricdp as mdp
from metricdp_papers import STUDIES, Piece, Study, StudyRequest, StudyTable, reproduce


def losses(side: int, epsilon: float) -> list[dict[str, object]]:
    """One piece: the loss of the exponential mechanism on a grid, and the optimum's lower bound."""
    problem = mdp.Problem(mdp.grid((side, side)), epsilon)
    plain, best = mdp.exponential(problem.inputs, epsilon), mdp.optimal(problem).certificate
    about = {"side": side, "epsilon": epsilon, "measure": "loss"}
    return [
        {**about, "method": "exponential", "corrected": plain.certificate.loss, "bound": best.lower_bound},
        {**about, "method": "optimal", "corrected": best.loss, "bound": best.lower_bound},
    ]


def pieces(full: bool) -> Iterator[Piece]:
    for side in range(2, 11 if full else 4):
        yield Piece(f"side={side}", "1", losses, (side, 1.0))


STUDY = Study("grids", "what privacy costs on grids that grow", (StudyTable("1", "Loss on growing grids"),), pieces)
STUDIES.declare(STUDY)

if __name__ == "__main__":
    reproduce(STUDY, StudyRequest(folder=Path(sys.argv[1] if len(sys.argv) > 1 else "grids")))
