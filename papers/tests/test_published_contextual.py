"""C-mDP as published: blankets that are read off the secret break the promise, and the auditor says so."""

from __future__ import annotations

import itertools

import numpy as np

import metricdp as mdp
from metricdp_papers.contextual.per_group import one_program_per_group

LINE = mdp.FiniteSpace(np.arange(4.0)[:, None], mdp.Lp(2))
CUBE = np.array(list(itertools.product(range(4), repeat=3)))  # (x, one step back, two steps back)
FAST = np.abs(CUBE[:, 0] - CUBE[:, 1]) >= 2  # read off the secret: a fast one looks two steps back


def toy():
    """64 secrets: a walk on four places that prefers short steps; the loss is about where it heads next."""
    prior = np.exp(-np.abs(CUBE[:, 0] - CUBE[:, 1]) - np.abs(CUBE[:, 1] - CUBE[:, 2]))
    heading = 2.0 * CUBE[:, 0] - CUBE[:, 1]
    space = mdp.spaces.Augmented(LINE, CUBE, [0.5, 0.25]).space
    loss = np.abs(heading[:, None] - np.arange(4.0))
    return mdp.Problem(space, 1.0, outputs=LINE, loss=loss, prior=prior / prior.sum())


def test_blankets_read_off_the_secret_break_the_promise_and_the_auditor_says_so():
    broken = one_program_per_group(toy(), groups=FAST.astype(int), blankets={0: CUBE[:, :2], 1: CUBE})
    assert broken.guarantee.basis == "none"
    report = mdp.audit(broken, epsilon=1.0)
    assert report.verdict == "violated"
    assert report.epsilon == broken.certificate.epsilon > 5.0
    # the witness is a pair of different groups
    assert FAST[report.witness.secret] != FAST[report.witness.other]
    share, worst = mdp.violation_ratio(broken, 1.0)
    assert share > 0.2
    assert worst > 5.0
