"""The kinds of mechanism, one file each. Each declares itself when it is imported, and all that lie here are."""

from importlib import import_module
from pkgutil import iter_modules

for _found in iter_modules(__path__, f"{__name__}."):
    import_module(_found.name)
