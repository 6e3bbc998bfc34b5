"""Decoding: from tables of reports back to densities, flows and counts. Post-processing: it costs no privacy."""

from metricdp.decoding.estimate import DensityEstimate, Mass, estimate_density
from metricdp.decoding.flows import FlowEstimate, Transitions, estimate_flows

__all__ = ["DensityEstimate", "FlowEstimate", "Mass", "Transitions", "estimate_density", "estimate_flows"]
