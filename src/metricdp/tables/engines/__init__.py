"""The engines that tables live on or that run jobs over files; each is declared in its own file.

An engine from outside is declared the same way: `ENGINES.declare(Engine(...))`, see docs/extend.md.
"""

from metricdp.catalogue import Catalogue
from metricdp.tables.engines import local, ray, spark
from metricdp.tables.engines.base import Engine, Run

ENGINES: Catalogue[Engine] = Catalogue("engine", [local.ENGINE, spark.ENGINE, ray.ENGINE])

__all__ = ["ENGINES", "Engine", "Run"]
