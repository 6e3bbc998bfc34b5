"""How careful a table is handled: what leaves with it, what was looked at, and what somebody insists on."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from metricdp.errors import InvalidInput
from metricdp.tables.trim import NOTHING, Trim


@dataclass(frozen=True)
class Care:
    """What somebody says about the columns besides those of the secret.

    Attributes:
        trim: Columns that are dropped or coarsened.
        keep: Columns that somebody has looked at: they stay and are not named again.
        strict: Refuse a table with columns that give the secret away, instead of naming them.
        yes_really: The secrets are right although they look exchanged, constant or far away.
    """

    trim: Trim = NOTHING
    keep: tuple[str, ...] = ()
    strict: bool = False
    yes_really: bool = False

    @classmethod
    def of(
        cls,
        *,
        drop: Sequence[str] | str = (),
        coarsen: Mapping[str, Any] | None = None,
        keep: Sequence[str] | str = (),
        strict: bool = False,
        yes_really: bool = False,
    ) -> Care:
        """Read what was asked for."""
        kept = (keep,) if isinstance(keep, str) else tuple(keep)
        trim = Trim.of(drop, coarsen)
        both = [name for name in kept if name in trim.drop]
        if both:
            raise InvalidInput(f"{both[0]!r} is both dropped and kept: ask for one of the two.")
        return cls(trim, kept, strict, yes_really)

    def text(self) -> str:
        """Return what was asked for as text, for a job's file; nothing where nothing was."""
        if self == CAREFREE:
            return ""
        steps = {name: step.written for name, step in self.trim.coarsen}
        return json.dumps([list(self.trim.drop), steps, list(self.keep), self.strict, self.yes_really])


CAREFREE = Care()


def care_from(text: str) -> Care:
    """Return what `Care.text` wrote."""
    if not text:
        return CAREFREE
    drop, coarsen, keep, strict, yes_really = json.loads(text)
    return Care.of(drop=drop, coarsen=coarsen, keep=keep, strict=strict, yes_really=yes_really)
