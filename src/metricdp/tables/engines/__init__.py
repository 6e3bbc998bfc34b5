"""The engines that run jobs over files or hold tables of their own; each is declared in its own file.

An engine from outside is declared the same way: `ENGINES.declare(Engine(...))`, see docs/extend.md.
"""

from collections.abc import Iterator

from metricdp.errors import InvalidInput
from metricdp.registry import NameRegistry
from metricdp.tables.engines import arrow, duckdb, local, ray, spark
from metricdp.tables.engines.base import Engine, JobRunner, TablePerturber

ENGINES: NameRegistry[Engine] = NameRegistry(
    "engine", [local.ENGINE, spark.ENGINE, ray.ENGINE, arrow.ENGINE, duckdb.ENGINE]
)

__all__ = ["ENGINES", "Engine", "JobRunner", "TablePerturber", "engine_of", "engines_for_files", "runner"]


def engines_for_files() -> Iterator[Engine]:
    """Yield the engines that run jobs over files."""
    return (engine for engine in ENGINES if engine.run is not None)


def runner(name: str) -> JobRunner:
    """Return how the engine of a name runs jobs over files."""
    found = [engine.run for engine in engines_for_files() if engine.name == name and engine.run is not None]
    if not found:
        names = ", ".join(engine.name for engine in engines_for_files())
        raise InvalidInput(f"no engine {name!r} runs jobs over files: use one of {names}.")
    return found[0]


def engine_of(table: object) -> Engine | None:
    """Return the engine that a table belongs to, by the package of its type; None for tables in memory."""
    package = type(table).__module__.partition(".")[0]
    return next((engine for engine in ENGINES if engine.perturb is not None and package in engine.packages), None)
