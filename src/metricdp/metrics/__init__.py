"""Metrics: how far two secrets are apart, and so how hard they must be to tell apart."""

# In the order in which lists name them.
# isort: off
from metricdp.metrics.vectors import Lp as Lp
from metricdp.metrics.vectors import Mahalanobis as Mahalanobis
from metricdp.metrics.geography import DEGREES as DEGREES
from metricdp.metrics.geography import EARTH_RADIUS_KM as EARTH_RADIUS_KM
from metricdp.metrics.geography import KM_PER_DEGREE as KM_PER_DEGREE
from metricdp.metrics.geography import Haversine as Haversine
from metricdp.metrics.geography import ShortestPath as ShortestPath
from metricdp.metrics.geography import graph_of as graph_of
from metricdp.metrics.geography import look_exchanged as look_exchanged
from metricdp.metrics.geography import roads_of as roads_of
from metricdp.metrics.geography import unit_vectors as unit_vectors
from metricdp.metrics.streets import StreetPath as StreetPath
from metricdp.metrics.policy import PolicyGraph as PolicyGraph
from metricdp.metrics.policy import covered as covered
from metricdp.metrics.policy import policy_of as policy_of
from metricdp.metrics.discrete import Hamming as Hamming
from metricdp.metrics.discrete import Levenshtein as Levenshtein
from metricdp.metrics.discrete import Precomputed as Precomputed
from metricdp.metrics.curved import Angular as Angular
from metricdp.metrics.curved import Hyperbolic as Hyperbolic
from metricdp.metrics.composed import Temporal as Temporal
from metricdp.metrics.composed import Weighted as Weighted
from metricdp.metrics.transport import Frechet as Frechet
from metricdp.metrics.transport import Wasserstein as Wasserstein
from metricdp.metrics.transport import WordMovers as WordMovers
from metricdp.metrics.bags import Bags as Bags

# isort: on
from metricdp.metrics.accounts import Term as Term
from metricdp.metrics.accounts import account_metric as account_metric
from metricdp.metrics.accounts import counted as counted
from metricdp.metrics.accounts import has_fingerprint as has_fingerprint
from metricdp.metrics.accounts import is_replaced as is_replaced
from metricdp.metrics.accounts import is_unknown as is_unknown
from metricdp.metrics.accounts import p_of as p_of
from metricdp.metrics.accounts import terms_of as terms_of
from metricdp.metrics.base import Metric as Metric
from metricdp.metrics.base import is_proven as is_proven
from metricdp.metrics.base import measurable as measurable
from metricdp.metrics.base import pairwise as pairwise
from metricdp.metrics.base import precision_note as precision_note
from metricdp.metrics.kind import EUCLID as EUCLID
from metricdp.metrics.kind import METRICS as METRICS
from metricdp.metrics.kind import Earth as Earth
from metricdp.metrics.kind import MetricKind as MetricKind
from metricdp.metrics.kind import Norm as Norm
from metricdp.metrics.kind import Tree as Tree
from metricdp.metrics.kind import along_of as along_of
from metricdp.metrics.kind import earth_of as earth_of
from metricdp.metrics.kind import exponent_of as exponent_of
from metricdp.metrics.kind import measuring as measuring
from metricdp.metrics.kind import norm_of as norm_of
from metricdp.metrics.kind import points_are as points_are
from metricdp.metrics.kind import said_of as said_of
from metricdp.metrics.kind import sum_of as sum_of
from metricdp.metrics.kind import tree_of as tree_of
from metricdp.metrics.kind import width_of as width_of
from metricdp.metrics.neighbours import Rows as Rows
from metricdp.metrics.neighbours import on_all_cores as on_all_cores
from metricdp.metrics.neighbours import within as within
from metricdp.metrics.own import FunctionMetric as FunctionMetric
from metricdp.metrics.own import metric as metric
