"""Decoding: from tables of reports back to densities, flows and counts. Post-processing: it costs no privacy."""

from metricdp.estimation.estimate import DensityEstimate as DensityEstimate
from metricdp.estimation.estimate import EstimateRequest as EstimateRequest
from metricdp.estimation.estimate import Mass as Mass
from metricdp.estimation.estimate import decode_counts as decode_counts
from metricdp.estimation.estimate import estimate_density as estimate_density
from metricdp.estimation.flows import FlowEstimate as FlowEstimate
from metricdp.estimation.flows import Transitions as Transitions
from metricdp.estimation.flows import estimate_flows as estimate_flows
from metricdp.estimation.report_models import report_models_of as report_models_of
