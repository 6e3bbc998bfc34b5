"""Structured linear programs: how they are stated, solved, repaired and bounded. Knows nothing of privacy.

A solver is a frozen record of options with one method, `solve(program)`; `mdp.optimal(problem, solver=...)` takes any
of these or one of your own. `auto` is the choice that is made where none is given. The parts of a Benders
decomposition are loaded when they are first used.
"""

from lazy_loader import attach_stub

__getattr__, __dir__, __all__ = attach_stub(__name__, __file__)
