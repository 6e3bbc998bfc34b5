"""What people spent: budgets that hold over time, and releases that are charged exactly once."""

from metricdp.errors import MissingExtra

try:
    from metricdp.ledger.amounts import MICRO as MICRO
    from metricdp.ledger.amounts import Account as Account
    from metricdp.ledger.amounts import account_for as account_for
    from metricdp.ledger.amounts import accounts_for as accounts_for
    from metricdp.ledger.amounts import in_words as in_words
    from metricdp.ledger.backends import BACKENDS as BACKENDS
    from metricdp.ledger.backends import Backend as Backend
    from metricdp.ledger.backends import Hold as Hold
    from metricdp.ledger.budgets import Balance as Balance
    from metricdp.ledger.budgets import Budget as Budget
    from metricdp.ledger.budgets import Standing as Standing
    from metricdp.ledger.checking import Verdict as Verdict
    from metricdp.ledger.ledger import Ledger as Ledger
    from metricdp.ledger.periods import PERIODS as PERIODS
    from metricdp.ledger.policy import Limit as Limit
    from metricdp.ledger.policy import Policy as Policy
    from metricdp.ledger.records import BatchReceipt as BatchReceipt
    from metricdp.ledger.records import ReceiptPart as ReceiptPart
    from metricdp.ledger.records import Release as Release
    from metricdp.ledger.records import Steady as Steady
    from metricdp.ledger.settling import Receipt as Receipt
except ModuleNotFoundError as error:
    if error.name != "sqlalchemy":
        raise
    raise MissingExtra(
        "this needs the package `sqlalchemy`: install it with `pip install 'metricdp[ledger]'`"
    ) from error
