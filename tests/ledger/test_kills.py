"""Killed at any moment: no report without a charge, no charge twice, no second draw for one request."""

import random

from killing import POLICY, Tally, balanced, killed, repeated
from metricdp.ledger import Ledger


def test_books_in_a_file_survive_twenty_kills(tmp_path):
    place = str(tmp_path / "budget.db")
    Ledger.open(place, policy=POLICY).close()
    tally, dice = Tally(), random.Random(17)
    for number in range(20):
        answers = killed(place, None, f"run {number}", tally, dice)
        with Ledger.open(place) as ledger:
            repeated(ledger, f"run {number}", answers, tally)
    with Ledger.open(place) as ledger:
        balanced(ledger, tally)
    assert tally.kills == 20
    assert tally.answered > 20
