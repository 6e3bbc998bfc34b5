"""The public names, once: `import metricdp as mdp` gives each of these, imported when it is first used."""

import typing

from . import artifacts as artifacts
from . import auditing as auditing
from . import design as design
from . import errors as errors
from . import estimation as estimation
from . import mechanisms as mechanisms
from . import metrics as metrics
from . import mobility as mobility
from . import places as places
from . import plots as plots
from . import problems as problems
from . import solvers as solvers
from . import spaces as spaces
from . import specs as specs
from . import tables as tables
from . import text as text
from .artifacts import inspect as inspect
from .artifacts import load as load
from .artifacts import save as save
from .auditing import AuditReport as AuditReport
from .auditing import accuracy_radius as accuracy_radius
from .auditing import adversary_error as adversary_error
from .auditing import audit as audit
from .auditing import audit_sampler as audit_sampler
from .auditing import audit_samples as audit_samples
from .auditing import epsilon_at as epsilon_at
from .auditing import expected_loss as expected_loss
from .auditing import packing_lower_bound as packing_lower_bound
from .auditing import posterior_leakage as posterior_leakage
from .auditing import universal_lower_bound as universal_lower_bound
from .auditing import violation_ratio as violation_ratio
from .auditing import worst_loss as worst_loss
from .design.comparison import compare as compare
from .design.constopt import constopt as constopt
from .design.contextual import contextual as contextual
from .design.decomposed import decomposed as decomposed
from .design.exponential import exponential as exponential
from .design.exponential import masked as masked
from .design.exponential import tight_constraints as tight_constraints
from .design.exponential import truncated_exponential as truncated_exponential
from .design.exponential import weighted_exponential as weighted_exponential
from .design.gaussian import gaussian as gaussian
from .design.given import from_matrix as from_matrix
from .design.hierarchical import hierarchical as hierarchical
from .design.interpolation.box import interpolated as interpolated
from .design.laplace import laplace as laplace
from .design.laplace import madlib as madlib
from .design.laplace import von_mises_fisher as von_mises_fisher
from .design.optimal import dictionary as dictionary
from .design.optimal import optimal as optimal
from .design.post_processing import remapped as remapped
from .design.product import product as product
from .design.quantised import quantised as quantised
from .design.spanner import spanner as spanner
from .errors import MetricdpError as MetricdpError
from .estimation import estimate_density as estimate_density
from .estimation import estimate_flows as estimate_flows
from .mechanisms import Certificate as Certificate
from .mechanisms import Guarantee as Guarantee
from .mechanisms import Mechanism as Mechanism
from .metrics import Angular as Angular
from .metrics import Frechet as Frechet
from .metrics import Hamming as Hamming
from .metrics import Haversine as Haversine
from .metrics import Hyperbolic as Hyperbolic
from .metrics import Levenshtein as Levenshtein
from .metrics import Lp as Lp
from .metrics import Mahalanobis as Mahalanobis
from .metrics import Metric as Metric
from .metrics import Precomputed as Precomputed
from .metrics import ShortestPath as ShortestPath
from .metrics import Temporal as Temporal
from .metrics import Wasserstein as Wasserstein
from .metrics import Weighted as Weighted
from .metrics import WordMovers as WordMovers
from .metrics import metric as metric
from .places import elastic as elastic
from .places import grid as grid
from .places import policy as policy
from .places import policy_graphs as policy_graphs
from .places import road_network as road_network
from .problems import Problem as Problem
from .spaces import Box as Box
from .spaces import FiniteSpace as FiniteSpace
from .tables import Disclosure as Disclosure
from .tables import Job as Job
from .tables import People as People
from .tables import Reading as Reading
from .tables import Summary as Summary
from .tables import perturb as perturb
from .text import vocabulary as vocabulary
from .units import epsilon_for as epsilon_for

__version__: str
__all__: list[str]

def __getattr__(name: str) -> typing.Any:
    """Builders that a plugin declares have names here too."""
