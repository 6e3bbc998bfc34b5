"""All that fit, at several epsilons and by several losses, each figure beside the bound that belongs to it."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from metricdp import messages
from metricdp.arrays import as_positive, as_probabilities
from metricdp.auditing.loss import packing_lower_bound
from metricdp.design.builders import BUILDERS, Builder
from metricdp.design.comparison.measures import Measure
from metricdp.design.comparison.trials import ComparisonSpec, OwnMechanism, Trial, select_builders
from metricdp.errors import Infeasible, InvalidInput, MetricdpError
from metricdp.files import check_target
from metricdp.metrics import graph_of
from metricdp.rendering import escape
from metricdp.spaces import FiniteSpace

PACKED = 400  # places up to which the bound by packings is computed
ComparisonProgress = Callable[[float, str], None]
DISTANCE = Measure()
VERSION = 1
Key = tuple[str, float, str, str]


@dataclass(frozen=True, eq=False)
class ComparisonResult:
    """What was compared: figures, why mechanisms are missing, and the bounds of every loss and epsilon."""

    trials: tuple[Trial, ...]
    missing: dict[str, str]  # a builder, or a builder at an epsilon, and why it is not there
    measures: tuple[Measure, ...]
    bounds: dict[tuple[str, str, float], float]
    unit: str
    size: int
    continued: int = 0  # figures that an earlier run had left

    def bound(self, trial: Trial) -> float | None:
        """Return the loss below which none with this guarantee and these reports goes; None where nothing is known."""
        found = self.bounds.get((trial.measure, trial.objective, trial.epsilon), 0.0)
        return min(found, trial.high) if found > 0 else None

    def excess_share(self, trial: Trial) -> float | None:
        """Return by which share of the bound a loss lies above it."""
        bound = self.bound(trial)
        return None if bound is None else max(0.0, trial.loss / bound - 1.0)

    def of(self, measure: Measure) -> list[Trial]:
        """Return the figures of one loss, by epsilon, the best first."""
        mine = [one for one in self.trials if (one.measure, one.objective) == (measure.name, measure.objective)]
        return sorted(mine, key=lambda one: (one.epsilon, one.loss))

    def rows(self) -> list[dict[str, Any]]:
        """Return plain values, one row per mechanism, epsilon and loss."""
        return [
            {
                "builder": one.builder,
                "epsilon": one.epsilon,
                "unit": self.unit,
                "measure": one.measure,
                "objective": one.objective,
                "loss": one.loss,
                "low": one.low,
                "high": one.high,
                "draws": one.draws,
                "lower_bound": self.bound(one),
                "gap": None if (least := self.bound(one)) is None or one.loss <= 0 else max(0.0, 1 - least / one.loss),
                "above_bound": self.excess_share(one),
                "certified_epsilon": one.certified,
                "noise_epsilon": one.noise_epsilon,
                "seconds": one.seconds,
                "note": one.note,
            }
            for measure in self.measures
            for one in self.of(measure)
        ]

    def _repr_html_(self) -> str:
        parts = []
        for measure in self.measures:
            body = "".join(
                f'<tr><td style="text-align:left">{escape(one.builder)}</td><td>{one.epsilon:g}</td>'
                f"<td>{escape(loss_text(one, measure))}</td><td>{escape(excess_text(self.excess_share(one)))}</td></tr>"
                for one in self.of(measure)
            )
            head = "<tr><th>builder</th><th>epsilon</th><th>loss</th><th>above the bound for these reports</th></tr>"
            parts.append(
                f'<table><caption style="text-align:left"><b>{escape(measure.words)}</b></caption>'
                f"<thead>{head}</thead><tbody>{body}</tbody></table>"
            )
        return "".join(parts)


def loss_text(trial: Trial, measure: Measure) -> str:
    """Return a loss as people read it, with half of its interval where it was measured."""
    if trial.draws == 0:
        return messages.distance(trial.loss, measure.unit)
    return f"{messages.distance(trial.loss, measure.unit)} ± {messages.distance(_half(trial), measure.unit, 'up')}"


def excess_text(share: float | None) -> str:
    """Return how far above the bound a loss lies."""
    return "" if share is None else f"{messages.number(100 * share, 3, 'up')} %"


def _half(trial: Trial) -> float:
    return max(trial.high - trial.loss, trial.loss - trial.low)


def compare(
    space: FiniteSpace,
    epsilons: Sequence[float] | float,
    *,
    builders: Sequence[str | Builder | OwnMechanism] | None = None,
    measures: Sequence[Measure] | Measure | None = None,
    prior: ArrayLike | None = None,
    gap: float = 1e-3,
    seconds: float | None = 60.0,
    draws: int = 20_000,
    checkpoint: str | os.PathLike[str] | None = None,
    progress: ComparisonProgress | None = None,
) -> ComparisonResult:
    """Compare mechanisms on the same places at the same guarantee, by one loss or several.

    All builders that fit the places are compared unless some are named; why others are missing is said. Every one keeps
    epsilon times the distance of the space, with no slack: noise on coordinates is set so that it does. Losses of
    tables are computed; those of samplers are measured on draws and come with an interval. A bound stands beside a loss
    only where it was proven for the same objective, loss, prior and a guarantee that is no stronger.

    Args:
        space: The places, or words, with their metric.
        epsilons: How much may leak per distance, one or several.
        builders: Names of builders; all that fit unless given. A mechanism of your own on these places may stand among
            them, and so may a function that takes a `Problem` and returns a mechanism.
        measures: What is compared: `Measure(name, objective, loss, unit)`; the expected distance unless given.
        prior: How likely every place is; all alike unless given. It must be public.
        gap: How far the loss of a search may be from its optimum, as a share.
        seconds: When a search stops, each; None lets it go on until the gap is reached.
        draws: On how many draws a sampler is measured.
        checkpoint: A file in which figures are kept as they are found: the same call goes on from there. It is removed
            when all is done. Only figures of builders that have a name are taken from it.
        progress: Told the finished share and what is being built.
    """
    several = np.ravel(np.asarray(epsilons, dtype=object))  # one number or a list of them
    levels = sorted({as_positive(value, "epsilon") for value in several})
    if not levels:
        raise InvalidInput("name at least one epsilon, such as 0.5, 1 and 2.")
    weights = None if prior is None else as_probabilities(prior, len(space))
    question = ComparisonSpec(space, weights, gap, seconds, draws)
    single = replace(DISTANCE, unit=space.unit) if measures is None else measures
    asked = (single,) if isinstance(single, Measure) else tuple(single)
    if len({(one.name, one.objective) for one in asked}) < len(asked) or not asked:
        raise InvalidInput("`measures` must be one or several losses of different names or objectives.")
    fit, missing = select_builders(question, builders)
    if not fit:
        raise InvalidInput(f"no builder fits: {'; '.join(f'{name}: {why}' for name, why in missing.items())}.")
    journal = Journal(checkpoint, digest_of(question, asked))
    work: dict[Key, tuple[Builder, Measure]] = {
        (builder.name, level, one.name, one.objective): (builder, one)
        for one in asked
        for level in levels
        for builder in fit
    }
    for key, (builder, _) in work.items():
        if builder not in tuple(BUILDERS):  # it may have changed since then
            journal.entries.pop(key, None)
    continued = len(work.keys() & journal.entries.keys())
    found: list[Trial] = []
    for number, (key, (builder, measure)) in enumerate(work.items()):
        name, level = builder.name, key[1]
        if progress is not None:
            progress(number / len(work), f"{name} at epsilon {level:g}, {measure.name}")
        if key not in journal.entries:
            try:
                journal.keep(key, question.trial(builder, level, measure))
            except MetricdpError as error:
                journal.keep(key, str(error))
        entry = journal.entries[key]
        if isinstance(entry, Trial):
            found.append(entry)
        else:
            missing[f"{name} at epsilon {level:g}" + (f", {measure.name}" if len(asked) > 1 else "")] = entry
    if not found:
        raise Infeasible("; ".join(f"{name}: {why}" for name, why in missing.items()))
    bounds = _bounds(question, found, asked, levels)
    journal.close()
    return ComparisonResult(tuple(found), missing, asked, bounds, space.unit, len(space), continued)


def _bounds(
    question: ComparisonSpec, trials: Sequence[Trial], measures: Sequence[Measure], levels: Sequence[float]
) -> dict[tuple[str, str, float], float]:
    """Return the best bound of every loss and epsilon; what bounds a weaker guarantee bounds the stronger ones too."""
    own: dict[tuple[str, str, float], float] = {}
    for measure in measures:
        name = measure.name, measure.objective
        for level in levels:
            proven = [t.bound for t in trials if (t.measure, t.objective, t.epsilon) == (*name, level)]
            best = max((bound for bound in proven if bound is not None), default=0.0)
            packs = measure.objective == "worst" and measure.loss is None and len(question.space) <= PACKED
            own[(*name, level)] = max(best, packing_lower_bound(question.space, level)) if packs else best
    return {
        (name, objective, level): max(own[name, objective, other] for other in levels if other >= level)
        for name, objective, level in own
    }


def digest_of(question: ComparisonSpec, measures: Sequence[Measure]) -> str:
    """Return what names a question: the same places, distances, prior, losses and limits give the same figures."""
    space = question.space
    digest = hashlib.sha256(f"{VERSION} {type(space.metric).__name__} {space.unit} {question.gap!r}".encode())
    digest.update(f"{question.seconds!r} {question.draws}".encode())
    for measure in measures:
        digest.update(f"{measure.name} {measure.objective} {measure.about}".encode())
        if isinstance(measure.loss, np.ndarray):
            digest.update(np.ascontiguousarray(measure.loss).tobytes())
    digest.update("\0".join(map(str, space.coordinates.ravel().tolist())).encode())
    some = np.arange(min(len(space), 64))
    digest.update(np.ascontiguousarray(space.metric(space.points[some], space.points[::-1][some])).tobytes())
    graph = graph_of(space.metric)
    digest.update(b"" if graph is None else graph.fingerprint.encode())
    digest.update(b"" if question.prior is None else np.ascontiguousarray(question.prior).tobytes())
    return digest.hexdigest()


class Journal:
    """A file with one line a finished mechanism; a line that a kill cut off is ignored."""

    def __init__(self, path: str | os.PathLike[str] | None, digest: str) -> None:
        self.path = None if path is None else check_target(path)
        self._digest = digest
        self.entries: dict[Key, Trial | str] = {}  # figures, or why there are none
        self.stale = False  # what was there belongs to another question
        if self.path is not None and self.path.exists():
            self._read(self.path)

    def keep(self, key: Key, found: Trial | str) -> None:
        """Note what was found, or why there is nothing, and put it on the disk at once."""
        self.entries[key] = found
        if self.path is None:
            return
        fresh = self.stale or not self.path.exists()
        entry: dict[str, Any] = {"key": list(key)}
        entry |= {"reason": found} if isinstance(found, str) else {"trial": asdict(found)}
        with self.path.open("w" if fresh else "a", encoding="utf-8") as file:
            if fresh:
                file.write(json.dumps({"format": "metricdp.compare", "digest": self._digest}) + "\n")
            file.write(json.dumps(entry) + "\n")
            file.flush()
            os.fsync(file.fileno())
        self.stale = False

    def close(self) -> None:
        """Remove the file: all is done."""
        if self.path is not None:
            self.path.unlink(missing_ok=True)

    def _read(self, path: Path) -> None:
        lines = path.read_text(encoding="utf-8", errors="replace").splitlines()
        whole = [entry for line in lines if isinstance(entry := _parse_line(line), dict)]
        self.stale = not whole or whole[0].get("digest") != self._digest
        for entry in [] if self.stale else whole[1:]:
            try:
                builder, epsilon, measure, objective = entry["key"]
                known = Trial(**entry["trial"]) if "trial" in entry else str(entry["reason"])
                self.entries[str(builder), float(epsilon), str(measure), str(objective)] = known
            except (KeyError, TypeError, ValueError):
                continue  # built again
        if not self.stale and lines and _parse_line(lines[-1]) is None:  # cut off: the rest is written afresh
            kept = [json.dumps(entry) for entry in whole]
            path.write_text("\n".join(kept) + "\n", encoding="utf-8")


def _parse_line(line: str) -> Any:
    try:
        return json.loads(line)
    except ValueError:
        return None
