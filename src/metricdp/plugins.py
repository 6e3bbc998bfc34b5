"""Registry entries from outside the package: modules that are imported because somebody named them, and only then.

A plugin is a module that declares metrics, builders, engines or studies when it is imported. It is named as a module
(`my_company.noise`), as a file (`./noise.py`), or as an entry point of the group `metricdp` that an installed package
offers. Nothing is ever looked for or imported on its own: a mechanism file, a table or an installed package cannot make
a command run code that was not asked for. The studies of `metricdp-papers` are asked for by `metricdp reproduce`.
"""

from __future__ import annotations

import importlib
import importlib.util
import os
import sys
from collections.abc import Iterable
from pathlib import Path
from types import ModuleType

from metricdp.errors import InvalidInput

GROUP = "metricdp"
VARIABLE = "METRICDP_PLUGINS"  # what worker processes of this machine inherit, so that they know the same names


def load(name: str) -> ModuleType:
    """Import a plugin by its name, once, and let worker processes that are started later import it as well."""
    wanted = name.strip()
    if not wanted or os.pathsep in wanted:
        raise InvalidInput(f"a plugin is a module, a .py file or an entry point of the group {GROUP!r}, got {name!r}.")
    try:
        module = _file(Path(wanted)) if wanted.endswith(".py") else _module(wanted)
    except ImportError as error:
        raise InvalidInput(f"the plugin {wanted} cannot be imported: {error}") from error
    paths = str(Path(wanted).resolve()) if wanted.endswith(".py") else wanted
    known = inherited_plugins()
    if paths not in known:
        os.environ[VARIABLE] = os.pathsep.join([*known, paths])
    return module


def inherited_plugins() -> list[str]:
    """Return the plugins that were named to the process that started this one."""
    return [name for name in os.environ.get(VARIABLE, "").split(os.pathsep) if name]


def load_inherited(names: Iterable[str] | None = None) -> None:
    """Import what the process that gives this one its work had imported: for workers.

    `names` is what `inherited` says there, where work comes from another machine and not from a parent.
    """
    for name in inherited_plugins() if names is None else names:
        load(name)


def _module(name: str) -> ModuleType:
    from importlib.metadata import entry_points  # what every command would load for the few that name a plugin

    offered = [entry for entry in entry_points(group=GROUP) if entry.name == name]
    target = offered[0].module if offered else name
    try:
        return importlib.import_module(target)
    except ModuleNotFoundError as error:
        if error.name is None or not f"{target}.".startswith(f"{error.name}."):
            raise  # the plugin is there and lacks something itself
        raise InvalidInput(
            f"there is no plugin {name!r}: name an importable module, a file such as ./{name}.py, or an entry point of "
            f"the group {GROUP!r}."
        ) from error


def _file(path: Path) -> ModuleType:
    import hashlib

    place = path.resolve()
    name = f"metricdp_plugin_{place.stem}_{hashlib.sha256(str(place).encode()).hexdigest()[:12]}"
    if name in sys.modules:
        return sys.modules[name]
    if not place.is_file():
        raise InvalidInput(f"the plugin {str(path)!r} does not exist.")
    spec = importlib.util.spec_from_file_location(name, place)
    if spec is None or spec.loader is None:
        raise InvalidInput(f"the plugin {str(path)!r} is no Python file.")
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module  # dataclasses of the plugin look themselves up here
    try:
        spec.loader.exec_module(module)
    except BaseException:
        del sys.modules[name]
        raise
    return module
