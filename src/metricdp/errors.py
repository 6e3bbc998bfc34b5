"""Every error metricdp raises on purpose.

    MetricdpError
    ├── InvalidInput (also a ValueError)     an argument is not what was asked for
    │   ├── OutOfDomain                      a value is not one of the secrets of the space
    │   └── NotPure (also an AttributeError) a pure promise was asked of one that is only approximate
    ├── NotPrivate                           a matrix does not keep the promise it was made for
    ├── SolverFailure                        no certified mechanism could be produced
    │   └── Infeasible                       what was asked for cannot exist
    ├── CorruptFile                          a mechanism file is damaged, altered or fails its certificate
    ├── OutputProblem (also an OSError)      the output cannot be written
    ├── SamplerFailure                       a sampler of somebody else does not answer as it has to
    ├── BudgetExceeded                       a release would spend more than a person may
    ├── LedgerUnavailable                    the ledger cannot be read or written now: nothing is released
    └── MissingExtra (also an ImportError)   an optional part is not installed

Messages say what was expected, what came, and what to do.
"""

import importlib
from importlib.util import find_spec
from types import ModuleType

from metricdp.rendering import printable


class MetricdpError(Exception):
    """The base of all errors raised by metricdp; what a file wrote into its words is shown, never obeyed."""

    def __str__(self) -> str:
        return printable(super().__str__())


class InvalidInput(MetricdpError, ValueError):
    """An argument is not what was asked for."""


class OutOfDomain(InvalidInput):
    """A value is not one of the secrets of the space."""

    def __init__(self, message: str, *, rows: tuple[int, ...] = ()) -> None:
        super().__init__(message)
        self.rows = rows


class NotPure(InvalidInput, AttributeError):
    """A pure promise was asked of a mechanism that is only approximately private."""


class NotPrivate(MetricdpError):
    """A matrix does not keep the promise it was made for."""


class SolverFailure(MetricdpError):
    """No certified mechanism could be produced."""


class TimeUp(SolverFailure):
    """A part was not done before its end; what there was before it stands."""


class Infeasible(SolverFailure):
    """What was asked for cannot exist."""


class CorruptFile(MetricdpError):
    """A mechanism file is damaged, altered or fails its certificate."""


class OutputProblem(MetricdpError, OSError):
    """The output cannot be written."""


class SamplerFailure(MetricdpError):
    """A sampler of somebody else does not answer as it has to."""


class BudgetExceeded(MetricdpError):
    """A release would spend more than a person may; nothing was drawn and nothing charged.

    It says what the budget is and nothing else: `left` and `asked` in millionths per unit, and when more will be there
    (milliseconds since 1970, None where no time brings it back).
    """

    def __init__(self, message: str, *, asked: int = 0, left: int = 0, refreshes: int | None = None) -> None:
        super().__init__(message)
        self.asked, self.left, self.refreshes = asked, left, refreshes


class LedgerUnavailable(MetricdpError):
    """The ledger cannot be read or written now: nothing is released."""


class MissingExtra(MetricdpError, ImportError):
    """An optional part is not installed."""


def import_extra(module: str, extra: str) -> ModuleType:
    """Import an optional module, or say which extra brings it."""
    try:
        return importlib.import_module(module)
    except ImportError as error:
        raise _missing(module, extra) from error


def check_extra(module: str, extra: str) -> None:
    """Say which extra brings a module that is not installed, before the work that would need it."""
    if find_spec(module) is None:
        raise _missing(module, extra)


def _missing(module: str, extra: str) -> MissingExtra:
    package = module.partition(".")[0]
    return MissingExtra(f"this needs the package `{package}`: install it with `pip install 'metricdp[{extra}]'`")
