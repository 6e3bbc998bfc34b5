"""The command that compares builders: one guarantee, several losses, each with the bounds that belong to it."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from cyclopts import Parameter

from metricdp.cli import terminal
from metricdp.cli.options import NOWHERE, Epsilon, PlaceOptions
from metricdp.errors import InvalidInput

if TYPE_CHECKING:
    from metricdp.design import ComparisonResult, Measure
    from metricdp.specs import Places

Outputs = Annotated[tuple[str, ...], Parameter(name=["--output", "-o"])]
ENDINGS = (".html", ".png", ".svg", ".pdf", ".csv", ".json")
PICTURES = (".png", ".svg", ".pdf")
OBJECTIVES = ("expected", "worst")
LONGEST_REASON = 160


def compare(
    *,
    where: Annotated[PlaceOptions, Parameter(name="*")] = NOWHERE,
    epsilon: Epsilon,
    output: Outputs,
    builders: str | None = None,
    loss: str = "distance",
    objective: str = "expected",
    speed: float | None = None,
    prior: str | None = None,
    gap: float = 1e-3,
    seconds: float = 60.0,
    draws: int = 20_000,
    overwrite: bool = False,
) -> int:
    """Compare mechanisms on the same places with the same guarantee: losses, bounds for these reports, and time.

    An example:
    `metricdp compare --points cells.csv --epsilon 0.5,1,2 -o compare.html -o compare.png`

    All that fit the places are compared; why others are not is said. Losses of tables are computed, those of noise are
    measured on draws and have an interval. Figures are kept as they are found: the same command again goes on from
    there.

    Args:
        where: Points of a file, roads, or cells of a map.
        epsilon: The values to compare, with commas between: 0.5,1,2 or 1/km,5/km.
        output: Where results go: .html, .png, .svg, .pdf, .csv or .json. May be repeated. A CSV file is put beside the
            first, where no file has its name.
        builders: Names with commas between (`metricdp list builders` lists them); all that fit unless given.
        loss: What a report costs: distance, squared, ground, time, or a matrix file. time needs --roads; several losses
            have commas between.
        objective: expected (on average over the places), worst (of any place), or both with a comma between.
        speed: With --loss time: km/h on streets that do not say how fast they are.
        prior: A table that says how likely every place is, as for `metricdp design`.
        gap: How far the loss of a search may be from the proven optimum, as a share.
        seconds: When a search stops, each.
        draws: On how many draws noise is measured.
        overwrite: Replace results that are there.
    """
    import metricdp
    from metricdp.errors import check_extra
    from metricdp.metrics import protected_distance
    from metricdp.plots import write_comparison
    from metricdp.specs import read_places
    from metricdp.units import parse_epsilon

    targets = _targets(output, where.source_name, overwrite=overwrite)
    if any(Path(target).suffix.lower() in PICTURES for target in targets):
        check_extra("matplotlib", "plots")
    places = read_places(where.spec())
    space = places.space
    levels = [parse_epsilon(part, space.unit) for part in epsilon.split(",") if part.strip()]
    measures = _measures(loss, objective, places, speed)
    likely = None if prior is None else places.table().shares(prior)
    terminal.note(*places.notes)
    names = None if builders is None else [name.strip() for name in builders.split(",") if name.strip()]
    for option, value in (("gap", gap), ("seconds", seconds), ("draws", draws)):
        if not value > 0:
            raise InvalidInput(f"--{option} must be a number above 0, got {value:g}.")
    journal = f"{targets[0]}.unfinished"
    try:
        with terminal.steps_bar("Comparing") as progress:
            found = metricdp.compare(
                space, levels, builders=names, measures=measures, prior=likely, gap=gap, seconds=seconds, draws=draws,
                checkpoint=journal, progress=progress,
            )  # fmt: skip
    except KeyboardInterrupt:
        kept = _kept_count(journal)
        raise KeyboardInterrupt(
            f"interrupted: {kept} figures are done and kept in {journal}; the same command again goes on from there"
            if kept
            else "interrupted: nothing was done yet"
        ) from None
    title = f"Mechanisms on {places.words}"
    notes = _position_notes(places, max(levels))
    for target in targets:
        write_comparison(found, target, title=title, notes=notes)
    apart = protected_distance(space.metric, space.points) is not None
    terminal.say(*_lines(found, places.words, apart=apart, notes=notes))
    for name, why in found.missing.items():
        terminal.say(f"Left out: {name}: {_shorten(why)}", stream=sys.stderr)
    terminal.say(f"Written: {', '.join(targets)}.")
    return 0


def _targets(output: Sequence[str], source: str | None, *, overwrite: bool) -> list[str]:
    from metricdp.files import check_target

    targets = list(dict.fromkeys(output))
    if bad := [name for name in targets if Path(name).suffix.lower() not in ENDINGS]:
        raise InvalidInput(f"{bad[0]!r} must be named .html, .png, .svg, .pdf, .csv or .json.")
    for target in targets:
        check_target(target, source=source, overwrite=overwrite)
    beside = Path(targets[0]).with_suffix(".csv")
    if str(beside) in targets:
        return targets
    is_source = source is not None and beside.exists() and Path(source).exists() and beside.samefile(source)
    if is_source or (beside.exists() and not overwrite):
        terminal.say(
            f"{beside} is there and stays as it is: name a CSV file with -o to have the numbers too.", stream=sys.stderr
        )
        return targets
    check_target(beside, source=source, overwrite=overwrite)
    return [*targets, str(beside)]


def _measures(losses: str, objectives: str, places: Places, speed: float | None) -> list[Measure]:
    from metricdp import messages
    from metricdp.design import Measure
    from metricdp.specs import loss_of

    kinds = [name.strip() for name in objectives.split(",") if name.strip()]
    if not kinds or any(kind not in OBJECTIVES for kind in kinds):
        raise InvalidInput(f"--objective must be expected, worst, or both with a comma between, got {objectives!r}.")
    names = list(dict.fromkeys(name.strip() for name in losses.split(",") if name.strip()))
    if not names:
        raise InvalidInput(
            "--loss must be distance, squared, ground, time or a file with a matrix; several with commas."
        )
    if speed is not None and "time" not in names:
        raise InvalidInput("--speed says how fast streets are driven and belongs to --loss time.")
    found = []
    for name in names:
        cost = loss_of(name, places, speed=speed if name == "time" else None)
        shown = Path(name).stem if name not in ("distance", "squared", "time") else name
        for kind in dict.fromkeys(kinds):
            objective: messages.Objective = "worst" if kind == "worst" else "expected"
            found.append(Measure(shown, objective, cost.loss, cost.unit, cost.about))
    return found


def _position_notes(places: Places, epsilon: float) -> list[str]:
    """Return what the cells of a map add to the promise of positions, at the largest epsilon."""
    from metricdp import messages
    from metricdp.metrics import exponent_of

    if not places.cell:
        return []
    space = places.space
    slack = epsilon * space.charge(places.cell)
    exponent = exponent_of(space.metric) or 2.0
    return messages.compared_positions(epsilon, space.unit, places.cell, slack, exponent=exponent)


def _lines(found: ComparisonResult, words: str, *, apart: bool, notes: Sequence[str] = ()) -> list[str]:
    from metricdp import messages
    from metricdp.design import excess_text, loss_text

    lines = [f"{words}; every mechanism keeps epsilon times the distance, with no slack."]
    if apart:
        lines.append("That is between places of one part of the policy: reports may reveal the part.")
    lines += notes
    if found.continued:
        lines.append(f"Continued: {found.continued} figures were there from an earlier run.")
    for measure in found.measures:
        lines += ["", f"{measure.words[0].upper()}{measure.words[1:]}."]
        rows = [
            {
                "builder": one.builder,
                "epsilon": f"{one.epsilon:g}",
                "loss": loss_text(one, measure),
                "none with these reports below": "" if (least := found.bound(one)) is None else messages.distance(
                    least, measure.unit, "down"
                ),
                "above that": excess_text(found.excess_share(one)),
                "seconds": f"{one.seconds:.2g}",
            }
            for one in found.of(measure)
        ]  # fmt: skip
        lines += terminal.table_lines(list(rows[0]), rows)
    if any(one.draws for one in found.trials):
        lines.append("± is half of an interval that holds the loss with 95 %: it was measured on draws.")
    return [*lines, ""]


def _kept_count(journal: str) -> int:
    try:
        return max(0, len(Path(journal).read_text(encoding="utf-8").splitlines()) - 1)
    except OSError:
        return 0


def _shorten(why: str) -> str:
    return why if len(why) <= LONGEST_REASON else f"{why[:LONGEST_REASON].rsplit(' ', 1)[0]} ..."
