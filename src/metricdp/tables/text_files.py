"""Many files of texts, one after the other, into a new folder that appears when all of it is ready."""

from __future__ import annotations

import os
import shutil
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

from metricdp.errors import InvalidInput, OutputProblem
from metricdp.files import beside, holding, private_folder
from metricdp.randomness import Randomness
from metricdp.tables.formats import AS_IT_IS, Reading, located
from metricdp.tables.jobs.folder import checked_target
from metricdp.tables.jobs.plan import sources_of
from metricdp.tables.texts import Progress, TextSummary, TextTally, protect_texts
from metricdp.text import TextMechanism

WORK = "metricdp-texts"


def protect_text_files(
    sources: str | os.PathLike[str] | Sequence[str | os.PathLike[str]],
    target: str | os.PathLike[str],
    mechanism: TextMechanism,
    *,
    columns: Sequence[str] | str | None = None,
    drop: Sequence[str] | str = (),
    coarsen: Mapping[str, Any] | None = None,
    keep: Sequence[str] | str = (),
    strict: bool = False,
    rng: Randomness = None,
    progress: Progress | None = None,
    reading: Reading = AS_IT_IS,
) -> TextSummary:
    """Protect the texts of many files into a new folder and return what was done.

    Files are protected one after the other on this machine, each as `protect_texts` does, in a hidden folder beside the
    target that only its owner can look into; the target appears when all of them are ready. After an error or an
    interruption nothing of it is left.

    Args:
        sources: A pattern such as "reviews/*.csv", a folder, or a list of files.
        target: A new folder.
        mechanism: What is done to every text.
        columns, drop, coarsen, keep, strict, rng: As in `protect_texts`.
        progress: Called with the finished share, from 0 to 1.
        reading: As in `protect_texts`; every file is written as it was read.
    """
    started = time.perf_counter()
    if reading.target_format is not None:
        raise InvalidInput("many files are written each as it was read: leave the format of the output away.")
    paths = sources_of(sources)
    if bases := [path for path in paths if located(path, reading.source_format).format.tables]:
        raise InvalidInput(f"{str(bases[0])!r} is a database: protect its tables one by one, as {bases[0]}::table.")
    root = Path(os.path.commonpath([path.parent for path in paths]))
    place = checked_target(target)
    done: list[TextSummary] = []
    with holding(place):
        if place.exists():
            raise OutputProblem(f"cannot write {str(target)!r}: it is there already. Name a new folder.")
        folder = private_folder(beside(place, WORK))
        try:
            for number, path in enumerate(paths):
                made = folder / path.relative_to(root)
                made.parent.mkdir(parents=True, exist_ok=True)
                one = protect_texts(
                    path, made, mechanism, columns=columns, drop=drop, coarsen=coarsen, keep=keep, strict=strict,
                    rng=rng, progress=_share(progress, number, len(paths)), reading=reading,
                )  # fmt: skip
                done.append(one)
            folder.chmod(0o777 & ~_umask())
            folder.rename(place)
        except BaseException:
            shutil.rmtree(folder, ignore_errors=True)
            raise
    named = str(sources) if isinstance(sources, str | os.PathLike) else f"{len(paths)} files"
    seconds = time.perf_counter() - started
    tally = TextTally(
        sum(one.tally.rows for one in done),
        sum(one.tally.empty for one in done),
        sum(one.tally.masked for one in done),
        sum(one.tally.looked for one in done),
        tuple(dict.fromkeys(finding for one in done for finding in one.tally.findings)),
        tuple(dict.fromkeys(name for one in done for name in one.tally.dropped)),
    )
    notes = (
        f"{len(paths):,} files, each in its own format.",
        *dict.fromkeys(note for one in done for note in one.notes),
    )
    return replace(done[0], source=named, target=str(target), tally=tally, seconds=seconds, notes=notes)


def _share(progress: Progress | None, number: int, count: int) -> Progress | None:
    if progress is None:
        return None
    return partial(_tell, progress, number, count)


def _tell(progress: Callable[[float], None], number: int, count: int, share: float) -> None:
    progress((number + share) / count)


def _umask() -> int:
    """Return what permissions new files lack."""
    found = os.umask(0)
    os.umask(found)
    return found
