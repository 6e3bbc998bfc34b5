"""The old name of `metricdp.estimation`, for one version."""

from metricdp.deprecation import renamed_module

__getattr__ = renamed_module(__name__, "metricdp.estimation")
