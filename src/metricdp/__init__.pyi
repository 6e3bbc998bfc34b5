"""The public names, once: `import metricdp as mdp` gives each of these, imported when it is first used."""

from typing import Any

from metricdp import errors as errors
from metricdp import mobility as mobility
from metricdp import pictures as pictures
from metricdp import solvers as solvers
from metricdp import text as text
from metricdp.artifacts import Inspection as Inspection
from metricdp.artifacts import inspect as inspect
from metricdp.artifacts import load as load
from metricdp.artifacts import save as save
from metricdp.artifacts.signing import create_keys as create_keys
from metricdp.auditing import AuditReport as AuditReport
from metricdp.auditing import ConcentratedReport as ConcentratedReport
from metricdp.auditing import accuracy_radius as accuracy_radius
from metricdp.auditing import adversary_error as adversary_error
from metricdp.auditing import audit as audit
from metricdp.auditing import audit_concentrated as audit_concentrated
from metricdp.auditing import audit_sampler as audit_sampler
from metricdp.auditing import audit_samples as audit_samples
from metricdp.auditing import concentrated as concentrated
from metricdp.auditing import continuous_violations as continuous_violations
from metricdp.auditing import delta_at as delta_at
from metricdp.auditing import epsilon_at as epsilon_at
from metricdp.auditing import expected_loss as expected_loss
from metricdp.auditing import packing_lower_bound as packing_lower_bound
from metricdp.auditing import posterior_leakage as posterior_leakage
from metricdp.auditing import quantile_loss as quantile_loss
from metricdp.auditing import violation_ratio as violation_ratio
from metricdp.auditing import worst_loss as worst_loss
from metricdp.auditing.bounds import universal_lower_bound as universal_lower_bound
from metricdp.design.comparison import Measure as Measure
from metricdp.design.comparison import compare as compare
from metricdp.design.constopt import constopt as constopt
from metricdp.design.contextual import contextual as contextual
from metricdp.design.decomposed import decomposed as decomposed
from metricdp.design.directions import von_mises_fisher as von_mises_fisher
from metricdp.design.exponential import exponential as exponential
from metricdp.design.exponential import truncated_exponential as truncated_exponential
from metricdp.design.exponential import weighted_exponential as weighted_exponential
from metricdp.design.gaussian import gaussian as gaussian
from metricdp.design.given import from_matrix as from_matrix
from metricdp.design.interpolation.box import interpolated as interpolated
from metricdp.design.laplace import laplace as laplace
from metricdp.design.laplace import madlib as madlib
from metricdp.design.optimal import dictionary as dictionary
from metricdp.design.optimal import optimal as optimal
from metricdp.design.product import product as product
from metricdp.design.quantised import quantised as quantised
from metricdp.design.remapped import remapped as remapped
from metricdp.design.spanner import spanner as spanner
from metricdp.design.tight import tight_constraints as tight_constraints
from metricdp.errors import MetricdpError as MetricdpError
from metricdp.mechanisms import Certificate as Certificate
from metricdp.mechanisms import ConcentratedGuarantee as ConcentratedGuarantee
from metricdp.mechanisms import Guarantee as Guarantee
from metricdp.mechanisms import InterpolatedMechanism as InterpolatedMechanism
from metricdp.mechanisms import KernelMechanism as KernelMechanism
from metricdp.mechanisms import LocalMechanism as LocalMechanism
from metricdp.mechanisms import MatrixMechanism as MatrixMechanism
from metricdp.mechanisms import Mechanism as Mechanism
from metricdp.mechanisms import Witness as Witness
from metricdp.mechanisms.concentrated import rho_for as rho_for
from metricdp.metrics import Angular as Angular
from metricdp.metrics import Frechet as Frechet
from metricdp.metrics import Hamming as Hamming
from metricdp.metrics import Haversine as Haversine
from metricdp.metrics import Hyperbolic as Hyperbolic
from metricdp.metrics import Levenshtein as Levenshtein
from metricdp.metrics import Lp as Lp
from metricdp.metrics import Mahalanobis as Mahalanobis
from metricdp.metrics import Metric as Metric
from metricdp.metrics import Precomputed as Precomputed
from metricdp.metrics import ShortestPath as ShortestPath
from metricdp.metrics import StreetPath as StreetPath
from metricdp.metrics import Temporal as Temporal
from metricdp.metrics import Wasserstein as Wasserstein
from metricdp.metrics import Weighted as Weighted
from metricdp.metrics import WordMovers as WordMovers
from metricdp.metrics import metric as metric
from metricdp.places import elastic as elastic
from metricdp.places import grid as grid
from metricdp.places import road_network as road_network
from metricdp.places import scaled as scaled
from metricdp.problems import NearLoss as NearLoss
from metricdp.problems import Problem as Problem
from metricdp.spaces import Augmented as Augmented
from metricdp.spaces import Box as Box
from metricdp.spaces import FiniteSpace as FiniteSpace
from metricdp.tables import perturb as perturb
from metricdp.tables import perturb_file as perturb_file
from metricdp.tables import perturb_files as perturb_files
from metricdp.tables.engines.duckdb import duckdb_function as duckdb_function
from metricdp.tables.engines.duckdb import duckdb_table as duckdb_table
from metricdp.tables.text_files import protect_text_files as protect_text_files
from metricdp.tables.texts import protect_texts as protect_texts
from metricdp.text import vocabulary as vocabulary
from metricdp.units import epsilon_for as epsilon_for

__version__: str
__all__: list[str]

def __getattr__(name: str) -> Any:
    """Builders that a plugin declares have names here too."""
