"""Decoding: from tables of reports back to densities, flows and counts. Post-processing: it costs no privacy."""

from metricdp.decoding.estimate import DensityEstimate as DensityEstimate
from metricdp.decoding.estimate import Mass as Mass
from metricdp.decoding.estimate import estimate_density as estimate_density
from metricdp.decoding.flows import FlowEstimate as FlowEstimate
from metricdp.decoding.flows import Transitions as Transitions
from metricdp.decoding.flows import estimate_flows as estimate_flows
