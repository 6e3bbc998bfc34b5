"""Shares of a batch: which accounts were charged for how many rows, as the entry of the batch keeps them."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from metricdp.arrays import Integers

SHARE = np.dtype([("account", ">i8"), ("rows", ">i8"), ("amount", ">i8"), ("slack", ">i8")])  # of one row


@dataclass(frozen=True)
class Shares:
    """The numbers of accounts, in their order, the rows of each, and the epsilon and slack these cost together."""

    accounts: Integers
    rows: Integers
    amounts: Integers
    slacks: Integers

    def of(self, accounts: Integers) -> Shares:
        """Return the shares of some accounts only."""
        mine = np.isin(self.accounts, accounts)
        return Shares(self.accounts[mine], self.rows[mine], self.amounts[mine], self.slacks[mine])


def share_bytes(accounts: Integers, rows: Integers, amounts: Integers, slacks: Integers) -> bytes:
    """Return shares as an entry keeps them; `amounts` and `slacks` are those of one row."""
    shares = np.empty(len(accounts), dtype=SHARE)
    order = np.argsort(accounts)
    for name, values in (("account", accounts), ("rows", rows), ("amount", amounts), ("slack", slacks)):
        shares[name] = values[order]
    return shares.tobytes()


def shares_of(data: bytes) -> Shares:
    """Read the shares of an entry."""
    found = np.frombuffer(data, dtype=SHARE)
    accounts, rows, amounts, slacks = (found[name].astype(np.int64) for name in SHARE.names or ())
    return Shares(accounts, rows, rows * amounts, rows * slacks)
