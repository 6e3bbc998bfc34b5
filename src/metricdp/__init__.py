"""Metric differential privacy: design mechanisms, prove their guarantee, apply them, see what they cost.

The public names stand in `__init__.pyi`. Type checkers read them there, and so does this module; it imports each when
it
is first used. Builders and metrics of plugins are found by the names that they declare.
"""

import importlib
from functools import reduce
from importlib.util import find_spec
from typing import Any

from lazy_loader import attach_stub

from metricdp.deprecation import warn_renamed

__version__ = "0.1.0"
MOVED = {  # names that stood here until 0.1.0, by the package that has them; they work for one version
    "artifacts": "Inspection create_keys",
    "auditing": "ConcentratedReport audit_concentrated continuous_violations delta_at quantile_loss "
    "shuffled_delta shuffled_epsilon",
    "design": "Measure",
    "estimation": "DensityEstimate FlowEstimate",
    "mechanisms": "ConcentratedGuarantee InterpolatedMechanism KernelMechanism LocalMechanism MatrixMechanism Witness "
    "rho_for",
    "metrics": "Bags PolicyGraph StreetPath",
    "places": "LocationTree ProtectionSets location_tree protection_sets region_scale scaled",
    "problems": "NearLoss",
    "spaces": "Augmented",
    "tables": "duckdb_function",
}
HOMES = {name: package for package, names in MOVED.items() for name in names.split()}
RENAMED = {"concentrated": "auditing.concentrated_guarantee", "pictures": "plots", "policies": "policy_graphs"}
# functions that warn when they are called
OLD_FUNCTIONS = ("duckdb_table", "perturb_file", "perturb_files", "protect_text_files", "protect_texts")
_public, _, __all__ = attach_stub(__name__, __file__)


def _registries() -> tuple[Any, Any]:
    packages = ("metricdp.design.builders", "metricdp.metrics")
    builders, metrics = (importlib.import_module(package) for package in packages)
    return builders.BUILDERS, metrics.METRICS


def __getattr__(name: str) -> Any:
    if name in __all__:
        return _public(name)
    if name in RENAMED:
        warn_renamed(f"mdp.{name}", f"mdp.{RENAMED[name]}")
        first, *rest = RENAMED[name].split(".")
        return reduce(getattr, rest, _public(first))
    if name in HOMES:
        warn_renamed(f"mdp.{name}", f"mdp.{HOMES[name]}.{name}")
        return getattr(_public(HOMES[name]), name)
    if name in OLD_FUNCTIONS:
        return getattr(_public("tables"), name)
    # `from metricdp import messages`: the import itself loads a package
    if not name.startswith("_") and find_spec(f"{__name__}.{name}") is None:
        builders, metrics = _registries()
        if name in builders.names:
            return builders.named(name).function
        if name in metrics.names:
            return metrics.named(name).thing
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    declared = {name for registry in _registries() for name in registry.names}
    return sorted({*__all__, *(declared - HOMES.keys())})
