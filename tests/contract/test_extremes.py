"""Every builder answers or refuses in a sentence, at the smallest epsilon and the largest, for one secret or two."""

import warnings

import numpy as np
import pytest

import metricdp as mdp
from metricdp.errors import Infeasible, InvalidInput

SPACES = {
    "one": lambda: mdp.FiniteSpace([[0.0, 0.0]], mdp.Lp(2)),
    "two": lambda: mdp.FiniteSpace([[0.0], [1.0]], mdp.Lp(1)),
    "square": lambda: mdp.grid((2, 2)),
    "line": lambda: mdp.FiniteSpace(np.arange(5.0), mdp.Lp(1)),
    "far": lambda: mdp.FiniteSpace([[0.0], [1.0], [1e6]], mdp.Lp(1)),
}
BUILDERS = {
    "exponential": lambda p: mdp.exponential(p.inputs, p.epsilon),
    "half": lambda p: mdp.exponential(p.inputs, p.epsilon, budget="half"),
    "weighted": lambda p: mdp.weighted_exponential(p.inputs, p.epsilon, weights=np.geomspace(1e-6, 1, len(p.inputs))),
    "truncated": lambda p: mdp.truncated_exponential(p.inputs, p.epsilon),
    "tight": lambda p: mdp.tight_constraints(p.inputs, p.epsilon),
    "remapped": lambda p: mdp.remapped(mdp.exponential(p.inputs, p.epsilon)),
    "optimal": mdp.optimal,
    "worst": lambda p: mdp.optimal(p, objective="worst"),
    "dictionary": mdp.dictionary,
    "spanner": mdp.spanner,
    "spanner, worst": lambda p: mdp.spanner(p, objective="worst", stretch=3.0),
    "constopt": lambda p: mdp.constopt(p, nearest=min(2, len(p.inputs))),
    "decomposed": lambda p: mdp.decomposed(p, blocks=min(3, len(p.inputs))),
    "kernels": lambda p: mdp.decomposed(p, blocks=1, start="kernels"),
    "plain": lambda p: mdp.decomposed(p, blocks=len(p.inputs), stabilise=False),
    "contextual": mdp.contextual,
    "quantised": lambda p: mdp.quantised(mdp.optimal(p)),
}


@pytest.mark.parametrize("radius", [None, 1.0])
@pytest.mark.parametrize("epsilon", [1e-12, 1e-9, 1e-3, 40.0, 1000.0])
@pytest.mark.parametrize("space", SPACES)
def test_every_builder_answers_or_refuses_in_a_sentence(space, epsilon, radius):
    problem = mdp.Problem(SPACES[space](), epsilon, radius=radius)
    for name, build in BUILDERS.items():
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            try:
                found = build(problem)
            except InvalidInput:
                assert radius is not None, name  # some protect all pairs or none
                continue
            except Infeasible:
                assert name == "tight"
                continue
        assert found.certificate.epsilon <= epsilon
        assert 0.0 <= found.certificate.lower_bound <= found.certificate.loss


def test_secrets_closer_than_doubles_can_tell_apart_are_named():
    space = mdp.FiniteSpace([[0.0], [1.0], [1.0 + 1e-14]], mdp.Lp(1))
    with pytest.raises(Infeasible, match="secrets 1 and 2 may differ by a factor of 1"):
        mdp.exponential(space, 1.0)
    assert mdp.optimal(mdp.Problem(space, 1.0)).certificate.epsilon <= 1.0


def test_a_name_of_a_solver_is_answered_by_the_object_to_write():
    problem = mdp.Problem(mdp.grid((2, 2)), 1.0)
    for name, written in (("interior", "Interior"), ("gpu", "Gpu"), ("auto", "Interior")):
        with pytest.raises(InvalidInput, match=rf"mdp\.solvers\.{written}\(\)"):
            mdp.optimal(problem, solver=name)
    with pytest.raises(InvalidInput, match=r"worst loss is solved by mdp\.solvers\.Interior"):
        mdp.optimal(problem, objective="worst", solver=mdp.solvers.Highs())
