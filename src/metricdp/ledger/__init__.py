"""What people spent: budgets that hold over time, and releases that are charged exactly once."""

from metricdp.errors import MissingExtra

try:
    from metricdp.ledger.budgets import Balance, Budget, Standing
    from metricdp.ledger.checking import Verdict
    from metricdp.ledger.ledger import Ledger
    from metricdp.ledger.policy import Limit, Policy
    from metricdp.ledger.records import BatchReceipt, Release, Steady
    from metricdp.ledger.settling import Receipt
except ModuleNotFoundError as error:
    if error.name != "sqlalchemy":
        raise
    raise MissingExtra(
        "this needs the package `sqlalchemy`: install it with `pip install 'metricdp[ledger]'`"
    ) from error

__all__ = [
    "Balance",
    "BatchReceipt",
    "Budget",
    "Ledger",
    "Limit",
    "Policy",
    "Receipt",
    "Release",
    "Standing",
    "Steady",
    "Verdict",
]
