"""Context-aware mechanisms on trips: six methods side by side, blankets, what a trace costs."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

from metricdp.experiments.contextual.blankets import study_blankets
from metricdp.experiments.contextual.cities import City, known_cities, real_city, simulated_city
from metricdp.experiments.contextual.dependence import dependence_lines, study_dependence
from metricdp.experiments.contextual.methods import (
    EPSILONS,
    METHODS,
    Row,
    Setting,
    compare,
    full_program,
    setting_of,
)
from metricdp.experiments.contextual.promises import as_published, promises, sizes_for
from metricdp.experiments.contextual.tables import Outcome, write

__all__ = [
    "METHODS",
    "Outcome",
    "Row",
    "Setting",
    "as_published",
    "compare",
    "full_program",
    "main",
    "promises",
    "run",
    "setting_of",
    "sizes_for",
]


def run(
    *,
    short: bool = True,
    cities: Sequence[str] | None = None,
    epsilons: Sequence[float] | None = None,
    places: Sequence[int] | None = None,
    folder: Path | None = None,
    say: Callable[[str], None] = print,
) -> Outcome:
    """Run the study and say one line a method: name, loss, [lower, upper], audited epsilon.

    The short version takes the first city at hand (or the bundled one with simulated trips) at one epsilon with few
    places; the long one takes all cities and six epsilons. With a folder, tables are written there as they grow.
    """
    at_hand = known_cities() if cities is None else list(cities)
    names = (at_hand[:1] if short else at_hand) or ["simulated"]
    counts = (12,) if places is None else tuple(places)
    chosen = ((0.5,) if short else EPSILONS) if epsilons is None else tuple(epsilons)
    outcome = Outcome()
    for name in names:
        for number, count in enumerate(counts):
            city = simulated_city(places=count) if name == "simulated" else real_city(name, places=count)
            label = city.name if len(counts) == 1 else f"{city.name}, {count} places"
            _study(outcome, city, label, chosen, short=short, folder=folder, say=say, first=number == 0)
    if folder is not None:
        from metricdp.experiments.contextual.figures import draw

        for path in draw(folder):
            say(str(path))
    return outcome


def _study(
    outcome: Outcome,
    city: City,
    label: str,
    epsilons: Sequence[float],
    *,
    short: bool,
    folder: Path | None,
    say: Callable[[str], None],
    first: bool,
) -> None:
    """Study one city; what does not depend on the number of places much is studied at the first number only."""
    say(str(city))
    if city.simulated:
        say("The trips are SIMULATED on a real road network; nobody drove them.")
    if first:
        slices = [replace(part, city=label) for part in study_dependence(city, draws=1 if short else 3)]
        outcome.slices.extend(slices)
        for line in dependence_lines(slices):
            say(line)
        if folder is not None:
            write(outcome, folder)
    study = study_blankets(city, quick=short, rounds=(1 if short else 5) if first else 0)
    outcome.studies[label] = study
    for line in study.lines():
        say(line)
    if folder is not None:
        write(outcome, folder)
    if not epsilons:
        return
    setting = setting_of(city)
    predicted, discovered = sizes_for(study, setting)
    for epsilon in epsilons:
        say(f"epsilon {epsilon:g} per km; context weights {', '.join(f'{w:g}' for w in setting.augmented.weights)}")
        full = full_program(setting, epsilon, seconds=60.0 if short else 300.0)
        outcome.programs.append(full)
        for row in compare(setting, epsilon, predicted=predicted, discovered=discovered, full=full):
            outcome.rows.append(row)
            say(str(row))
        say(str(full))
        if folder is not None:
            write(outcome, folder)
    outcome.promises.append(promises(setting, epsilons[-1], predicted))
    for line in outcome.promises[-1].lines():
        say(line)
    if folder is not None:
        write(outcome, folder)


def main(*arguments: str) -> None:
    """Run from the command line; `--help` lists the options."""
    parser = argparse.ArgumentParser(prog="metricdp reproduce contextual", description=__doc__)
    parser.add_argument("--long", action="store_true", help="all cities at hand and six epsilons; takes an hour")
    parser.add_argument("--cities", help="names separated by commas, or 'simulated'")
    parser.add_argument("--epsilons", help="numbers per kilometre, separated by commas; 'none' for the blankets alone")
    parser.add_argument("--places", help="how many places a city has; several numbers separated by commas")
    parser.add_argument("--folder", type=Path, help="where tables and pictures go")
    parser.add_argument("--redraw", action="store_true", help="only draw the tables that are in the folder")
    chosen = parser.parse_args(arguments)
    if chosen.redraw:
        from metricdp.experiments.contextual.figures import draw

        for path in draw(chosen.folder or Path()):
            print(path)
        return
    listed = [] if chosen.epsilons == "none" else (chosen.epsilons or "").split(",")
    run(
        short=not chosen.long,
        cities=chosen.cities.split(",") if chosen.cities else None,
        epsilons=[float(part) for part in listed] if chosen.epsilons else None,
        places=[int(part) for part in chosen.places.split(",")] if chosen.places else None,
        folder=chosen.folder,
    )
