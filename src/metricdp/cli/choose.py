"""The command that chooses: it asks what decides, and answers with command lines that work, and why."""

from __future__ import annotations

import difflib
import re
import shlex
import sys
from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from typing import TYPE_CHECKING, Annotated, Any

from cyclopts import Parameter

from metricdp.cli import advice, terminal
from metricdp.cli.advice import QUESTIONS, Advice, AdviceQuestion, Answers
from metricdp.cli.options import Corners, Epsilon, Verbose
from metricdp.cli.summaries import snap_text
from metricdp.errors import InvalidInput

if TYPE_CHECKING:
    from metricdp.specs import Places


@dataclass(frozen=True)
class Situation:
    """What `choose` asks; what is not given it asks for.

    Attributes:
        secrets: anywhere, points (in a file), roads, grid (of a map), words, texts or trips.
        places: The file of points, words or vectors, the city, or the corners of the map. Corners are
            south,west,north,east; a city can be a folder; for texts it is the file of word vectors (or bundled).
        cell: With --secrets grid: how wide a cell is, such as 200m.
        nodes: With --secrets roads: take this many crossings around the centre, instead of all.
        metric: With --secrets points: the metric, where it is not that of the columns.
        epsilon: How much may leak: an epsilon such as 10/km, or a wish such as 2x@200m.
        prior: A file that says how likely every place is, or none.
        loss: distance, squared, time (on roads), or a file with a matrix.
        speed: With --loss time: km/h on streets that do not say how fast they are.
        wait: now, seconds or minutes: how long the design may take.
        rows: one or several: how many rows a person has.
        person: With --rows several: the column that says whose row it is.
        device: table, or phone.
        table: The table that is to be protected.
        output: What the mechanism file is to be called.
    """

    secrets: str | None = None
    places: Corners | None = None
    cell: str | None = None
    nodes: int | None = None
    metric: str | None = None
    epsilon: Epsilon | None = None
    prior: str | None = None
    loss: str | None = None
    speed: float | None = None
    wait: str | None = None
    rows: str | None = None
    person: str = "person"
    device: str | None = None
    table: str = "table.csv"
    output: str = "chosen.mdp"


NO_ANSWERS = Situation()


def choose(*, said: Annotated[Situation, Parameter(name="*")] = NO_ANSWERS, verbose: Verbose = False) -> int:
    """Choose a mechanism: asks what decides, or takes it by options, and answers with command lines that work, and why.

    An example: `metricdp choose --secrets points --places cells.csv --epsilon 1.0 --prior none`

    At a terminal it asks for what is not given. Elsewhere the usual answers stand, and what has none must be given.

    Args:
        verbose: Print all reasons.
    """
    known = _ask_missing(said)
    places = _places(known)
    _check(known, places)
    size = 0 if places is None else len(places.space)
    answers = Answers(str(known.secrets), str(known.prior), str(known.loss), str(known.wait), size)
    found = advice.advice_for(answers)
    reasons = _reasons(found, known, answers, places)
    terminal.say(*(reasons if verbose else [reasons[0], f"To watch: {' '.join([reasons[-1], terminal.MORE])}"]))
    terminal.say("Run:")
    for line in commands(found, known, places):
        terminal.say(f"  {line}")
    return 0


def _ask_missing(said: Situation) -> Situation:
    """Ask for what is not given, where somebody can answer; elsewhere take what is usual."""
    missing: list[str] = []
    found: dict[str, Any] = {}
    for question in QUESTIONS:
        given = getattr(said, question.name)
        if given is not None:
            found[question.name] = _check_answer(question, given)
        elif not _matters(question, replace(said, **found)):
            found[question.name] = question.usual or None
        elif sys.stdin.isatty():
            found[question.name] = _ask_until_valid(question)
        elif question.usual and question.name != "secrets":
            found[question.name] = question.usual
        else:
            missing.append(question.name)
    said = replace(said, **found)
    if missing:
        which = {"secrets": f"--secrets {'|'.join(QUESTIONS[0].answers)}", "places": "--places cells.csv"}
        wanted = ", ".join(which.get(name, f"--{name} 10/km") for name in missing)
        raise InvalidInput(
            f"there is no terminal to ask at: give {wanted}. `metricdp choose --help` lists all options."
        )
    if said.secrets == "grid" and said.cell is None:
        if not sys.stdin.isatty():
            raise InvalidInput("--secrets grid needs --cell as well, such as --cell 200m.")
        said = replace(said, cell=_ask_until_valid(AdviceQuestion("cell", "How wide is a cell, such as 200m?")))
    return said


def _matters(question: AdviceQuestion, said: Situation) -> bool:
    """Tell whether anything depends on a question, after the answers before it."""
    if question.name in ("places", "prior", "loss", "wait"):
        return said.secrets != "anywhere" and (said.secrets not in ("trips", "texts") or question.name == "places")
    if question.name in ("rows", "device"):
        return said.secrets not in ("trips", "texts")
    return True


def _ask_until_valid(question: AdviceQuestion) -> str:
    """Ask until the answer is one."""
    terminal.say("", question.ask)
    for word, meaning in question.answers.items():
        terminal.say(f"  {word:<9} {meaning}")
    usual = f" [{question.usual}]" if question.usual else ""
    while True:
        try:
            typed = input(f"{question.name}{usual}: ").strip() or question.usual
        except EOFError:
            raise InvalidInput(f"no answer to --{question.name}: {question.ask}") from None
        try:
            if typed:
                return _check_answer(question, typed)
        except InvalidInput as error:
            terminal.say(error)


def _check_answer(question: AdviceQuestion, word: str) -> str:
    if question.answers and word not in question.answers:
        near = difflib.get_close_matches(word, list(question.answers), 1, 0.5)
        hint = f" Did you mean {near[0]}?" if near else ""
        raise InvalidInput(f"--{question.name} must be one of {', '.join(question.answers)}, got {word!r}.{hint}")
    return word


def _places(said: Situation) -> Places | None:
    """Return the places as `design` is told them, read once so that their number is known."""
    for option, secrets in (("cell", "grid"), ("nodes", "roads"), ("metric", "points")):
        if getattr(said, option) is not None and said.secrets != secrets:
            raise InvalidInput(f"--{option} belongs to --secrets {secrets}, got --secrets {said.secrets}.")
    if said.secrets in ("anywhere", "trips"):
        return None
    from metricdp.specs import PlaceSpec, read_places

    option = {"grid": "grid", "roads": "roads", "texts": "vectors"}.get(str(said.secrets), "points")
    named: dict[str, Any] = {option: said.places}
    return read_places(PlaceSpec(**named, cell=said.cell, nodes=said.nodes, metric=said.metric))


def _check(said: Situation, places: Places | None) -> None:
    """Refuse now what the command lines would be refused for."""
    from metricdp.design import PrivacyLevel
    from metricdp.specs import loss_of

    unit = "km" if places is None else places.space.unit
    wish = "@" in str(said.epsilon)
    PrivacyLevel.parse(None if wish else said.epsilon, said.epsilon if wish else None, unit)
    if places is not None and said.prior != "none":
        places.table().shares(str(said.prior))
    if places is not None and said.loss != "distance":
        loss_of(said.loss, places, speed=said.speed if said.loss == "time" else None)
    if places is not None:
        terminal.note(*places.notes)


def _reasons(found: Advice, said: Situation, answers: Answers, places: Places | None) -> list[str]:
    """Return why, one sentence a line."""
    taken = "metricdp trajectories" if found.name == "trips" else found.builder
    why = re.sub(r":? \[[^]]*\]\([^)]*\)", "", found.why)
    on = "" if places is None else f" on {places.words}"
    lines = [f"Take {taken}{on}: {why}."]
    if found.name == "texts":
        return [
            *lines,
            "Topic, style, length and rare combinations of words can still identify people: words alone are protected.",
            "What epsilons do to public sentences: metricdp text --vectors FILE --choose.",
            "Words outside the vocabulary are masked here; --unknown drop, spelling or refuse are the other ways.",
        ]
    if found.name == "laplace":
        lines.append("Secrets can be anywhere, so noise is added to every position; no list of places is needed.")
    if places is not None:
        lines.append("The places are finitely many, so the audit is a proof over all pairs and reports are places too.")
    if said.secrets in ("points", "roads") and said.device == "table":
        lines.append("Values that are not exactly a place need --snap, such as --snap 200m; what that costs is stated.")
    if places is not None and answers.prior == "none":
        lines.append("Without a prior all places count as equally likely in the loss; the promise never depends on it.")
    elif places is not None:
        lines.append("The prior lowers the loss. It must be public, and never come from the rows you protect.")
    if found.name in ("exponential", "remapped", "dictionary"):
        lines.append(
            "With minutes to wait (--wait minutes), optimal has the least loss with these reports, with a proof."
        )
    if said.rows == "several" and found.name == "laplace":
        lines.append("Rows of one person add up: the budget of one row is spread over all rows of a person.")
    elif said.rows == "several":
        lines.append("Rows of one person add up, and a mechanism file has one epsilon: one row of every person stays.")
    elif found.name != "trips":
        lines.append("The promise is for one report. Every further report about the same person adds to it.")
    if said.device == "phone" and found.name != "trips":
        lines.append(
            "A phone that draws its own report sends no secret: it gets the mechanism file, docs/how-to/phone.md."
        )
    return lines


def commands(found: Advice, said: Situation, found_at: Places | None) -> list[str]:
    """Return the command lines, one after the other, that do it."""
    level = ["--protect" if "@" in str(said.epsilon) else "--epsilon", str(said.epsilon)]
    several = said.rows == "several"
    if found.name == "trips":
        return [_line(["trajectories", said.table, "--places", str(said.places), *level, "-o", "protected.csv"])]
    if found.name == "texts":
        made = ["design", "--vectors", str(said.places), *level, "--builder", found.builder, "-o", said.output]
        use = ["text", said.table, "--mechanism", said.output, "--unknown", "mask", "-o", "protected.csv"]
        return [_line(made), _line(use)]
    if found.name == "laplace":
        if said.device == "table":
            spread = ["--id", said.person, "--budget", _budget(said), "--allocation", "even"] if several else []
            return [_line(["perturb", said.table, *level, *spread, "-o", "protected.csv"])]
        return [_line(["design", "--builder", "laplace", *level, "-o", said.output]), _line(["inspect", said.output])]
    places = [part for name, value in _place_options(found_at).items() for part in (f"--{name}", value)]
    design = ["design", *places, *level, "--builder", found.builder]
    design += [] if said.prior == "none" else ["--prior", str(said.prior)]
    design += [] if said.loss == "distance" else ["--loss", str(said.loss)]
    design += ["--speed", f"{said.speed:g}"] if said.loss == "time" and said.speed is not None else []
    if found.name == "city" or (
        found.name == "optimal" and found_at is not None and len(found_at.space) > advice.MOST_FINE
    ):
        design += ["--gap", "0.05", "--seconds", "900"]
    lines = [_line([*design, "-o", said.output])]
    if said.device == "phone":
        return [*lines, _line(["export", said.output, "-o", "phone.mdp"]), _line(["inspect", "phone.mdp"])]
    snap = ["--snap", snap_text(found_at)] if found_at is not None and found_at.cell else []
    person = ["--id", said.person, "--max-rows", "1"] if several else []
    return [*lines, _line(["perturb", said.table, "--mechanism", said.output, *snap, *person, "-o", "protected.csv"])]


def _place_options(places: Places | None) -> Mapping[str, str]:
    if places is None or places.spec is None:
        return {}
    values = {one.name: getattr(places.spec, one.name) for one in fields(places.spec)}
    return {name: str(value) for name, value in values.items() if isinstance(value, str | int) and value is not False}


def _budget(said: Situation) -> str:
    """Return a budget a person: that of one row, so that all of them together leak as much as one would."""
    text = str(said.epsilon)
    if "@" not in text:
        return text
    from metricdp.design import PrivacyLevel

    return f"{PrivacyLevel.parse(None, text, 'km').epsilon():.6g}/km"


def _line(words: list[str]) -> str:
    return shlex.join(["metricdp", *words])
