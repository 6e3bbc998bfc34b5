"""`metricdp reproduce leaks`: the board as a study of three tables."""

from __future__ import annotations

from collections.abc import Iterator

from metricdp_papers.common import Piece, Study, StudyTable
from metricdp_papers.common.rows import Row
from metricdp_papers.leaks.board import BoardEntry, audit_entry
from metricdp_papers.leaks.entries import DEFECTS, PACKAGES, ours

SHORT = 0.2  # of the draws, where the whole board is not asked for


def entries() -> dict[str, tuple[BoardEntry, ...]]:
    """Return what stands in every table."""
    return {"1": PACKAGES, "2": DEFECTS, "3": ours()}


def judge(number: str, key: str, scale: float) -> list[Row]:
    """Judge one entry."""
    found = next(entry for entry in entries()[number] if entry.key == key)
    return audit_entry(found, scale)


def pieces(full: bool) -> Iterator[Piece]:
    """List the work: what needs no package first."""
    for number in ("2", "3", "1"):
        for entry in entries()[number]:
            scale = 1.0 if full else SHORT
            yield Piece(f"{entry.key},draws={scale:g}", number, judge, (number, entry.key, scale))


STUDY = Study(
    name="leaks",
    about="the leak board: samplers of others and our own, audited by the same auditor",
    tables=(
        StudyTable("1", "Packages as they install", "What each claims, in its own words or by its formula.",
                   "Each package runs in an environment of its own, through `metricdp audit --command`; matrices are "
                   "audited exactly. What cannot be installed is listed as not run, with the reason."),
        StudyTable("2", "Published defects in a few lines", "What was read in the source or measured elsewhere.",
                   "Re-implementations of one property each, not the programs themselves."),
        StudyTable("3", "Mechanisms that keep their guarantee", "Nothing is to be found here.",
                   "Samples cannot prove a guarantee: the verdict is \"not refuted\" at this number of draws."),
    ),
    pieces=pieces,
    notes=(
        "`leaks_at_least` is the epsilon that is shown to leak, in the unit of the claim: from draws a lower bound at "
        "99 % confidence, from matrices exact. `draws` is how many reports it took; asking stops at the refutation.",
        "\"would not keep it\" stands where nothing is claimed. The sampler is then tested against a guarantee that "
        "nobody gave.",
        "A row is about one version of one mechanism at one setting. It says nothing about the rest of a package.",
    ),
)  # fmt: skip
