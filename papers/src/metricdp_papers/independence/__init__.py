"""Is X independent of Y given Z? Tests for coordinates; the one for places is `mobility.conditional_independence`."""

from metricdp_papers.independence.analytic_kernel import AnalyticTest, analytic_independence, kernel_independence
from metricdp_papers.independence.classifier import ClassifierTest, classifier_independence

__all__ = ["AnalyticTest", "ClassifierTest", "analytic_independence", "classifier_independence", "kernel_independence"]
