"""Is X independent of Y given Z? Tests for coordinates; the one for places is `mobility.conditional_independence`."""

from metricdp_papers.independence.analytic_kernel import AnalyticTest as AnalyticTest
from metricdp_papers.independence.analytic_kernel import analytic_independence as analytic_independence
from metricdp_papers.independence.analytic_kernel import kernel_independence as kernel_independence
from metricdp_papers.independence.classifier import ClassifierTest as ClassifierTest
from metricdp_papers.independence.classifier import classifier_independence as classifier_independence
