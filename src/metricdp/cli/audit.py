"""The command that judges: a mechanism file, anyone's matrix, recorded samples, or a sampler that is asked."""

from __future__ import annotations

import math
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict
from functools import partial
from typing import TYPE_CHECKING, Annotated

from cyclopts import Parameter

from metricdp.cli import terminal
from metricdp.cli.options import DEFAULT_READING, Epsilon, ReadingOptions, Verbose, option_group
from metricdp.errors import InvalidInput
from metricdp.specs import ClaimSpec, CrowdSpec, PlaceSpec, RecordedSpec, SamplerSpec

if TYPE_CHECKING:
    from metricdp.auditing import AuditReport, ConcentratedReport


@option_group
class ClaimOptions(ClaimSpec):
    """What is claimed, and how sure a refutation has to be."""

    epsilon: Epsilon | None = None


NOT_RECORDED, NOBODY, NOTHING, NO_CROWD = RecordedSpec(), SamplerSpec(), ClaimOptions(), CrowdSpec()


def audit(
    source: str | None = None,
    /,
    *,
    points: str | None = None,
    claim: Annotated[ClaimOptions, Parameter(name="*")] = NOTHING,
    recorded: Annotated[RecordedSpec, Parameter(name="*")] = NOT_RECORDED,
    foreign: Annotated[SamplerSpec, Parameter(name="*")] = NOBODY,
    crowd: Annotated[CrowdSpec, Parameter(name="*")] = NO_CROWD,
    key: str | None = None,
    again: bool = False,
    json: bool = False,
    verbose: Verbose = False,
    table: Annotated[ReadingOptions, Parameter(name="*")] = DEFAULT_READING,
) -> int:
    """Say what a mechanism really leaks: exit code 0 if its guarantee holds, 1 if it is violated, 2 if undecided.

    An example: `metricdp audit cells.mdp`

    Anyone's matrix: `metricdp audit matrix.csv --points points.csv --metric l2 --epsilon 1.0 --json`

    Recorded samples: `metricdp audit samples.csv --secret x,y --report u,v --metric l2 --epsilon 1.0`

    A command: `metricdp audit --command "python their_sampler.py" --secrets points.csv --metric l2 --epsilon 1.0`

    An address: `metricdp audit --url https://example.org/report --body '{"at": ["{lat}", "{lon}"]}' --found point
    --secrets made_up.csv --synthetic --epsilon 10/km`

    JavaScript: `metricdp audit --module sampler.mjs --secrets points.csv --epsilon 1.0`, or `metricdp audit cells.mdp
    --module metricdp.js` to have metricdp for JavaScript draw from a mechanism file.

    A crowd whose reports are shuffled: `metricdp audit cells.mdp --people 10000 --distance 200m`

    Samples can refute a guarantee and never prove it: where they find nothing the verdict is "not refuted", which is
    exit code 2, and it says which leak they would have found.

    Args:
        source: A mechanism file, a matrix (CSV, Parquet, .npy; one row per secret), or a table of recorded samples.
        points: For a matrix: a file with its secrets, one a row.
        key: A public key file: a mechanism file is refused unless this key signed it.
        again: Audit a mechanism file anew, also where the result of a long audit is stored.
        json: Print the report as JSON.
        verbose: Print the whole report.
    """
    from metricdp import messages
    from metricdp.auditing import AuditReport
    from metricdp.cli import guarantees, summaries

    if crowd != NO_CROWD:
        return _audit_crowd(source, crowd, key, json=json)
    how = table.spec(points=points)
    report, unit = _audit_source(source, how, claim, recorded, foreign, key, again=again)
    if json:
        terminal.say_json(guarantees.report_values(report, unit), sort_keys=True)
    elif report.claimed is None and isinstance(report, AuditReport):
        smallest = messages.number(report.epsilon, 12, "up")
        terminal.say(f"the smallest epsilon is {smallest}; name the promise with --epsilon to have it judged.")
    elif verbose:
        terminal.say(report)
    else:
        terminal.say(*summaries.audit_lines(report, unit))
    return {"holds": 0, "violated": 1}.get(report.verdict, 2)


def _audit_source(
    source: str | None,
    how: PlaceSpec,
    claim: ClaimSpec,
    recorded: RecordedSpec,
    foreign: SamplerSpec,
    key: str | None,
    *,
    again: bool,
) -> tuple[AuditReport | ConcentratedReport, str]:
    """Audit what was named: a mechanism file, a matrix, recorded samples, or a sampler."""
    from metricdp.specs import audit_matrix_file, audit_mechanism_file, audit_recorded, read_sampler_audit
    from metricdp.tables.formats import is_table
    from metricdp.tables.matrices import is_matrix_file

    points, table = how.points, source is not None and (is_matrix_file(source) or is_table(source))
    named = recorded.secret is not None or recorded.report is not None
    if foreign.way:
        _refuse(points is not None, f"--points is for matrices: with {foreign.way} the secrets are named by --secrets.")
        _refuse(named, f"--secret and --report name columns of recorded samples; {foreign.way} needs --secrets FILE.")
        _refuse(
            table, f"{source!r} and {foreign.way} are two things to judge: name the secrets with --secrets {source}."
        )
        asked = read_sampler_audit(foreign, claim, how, source=source, key=key)
        with _audit_progress(asked.epsilon, asked.unit) as asking:
            return asked.run(progress=asking, announce=partial(terminal.say, stream=sys.stderr)), asked.unit
    if source is None:
        raise InvalidInput(
            "say what to judge: a mechanism file, a matrix, a table of samples, or a sampler with --command, --url or "
            "--module. `metricdp audit --help` has an example of each."
        )
    _refuse(table and key is not None, "a matrix or a table bears no signature: remove --key.")
    if foreign.secrets is not None:
        raise InvalidInput(
            "--secrets is for samplers that are asked (--command, --url, --module): the secrets of a matrix are named "
            "by --points, the columns of recorded samples by --secret and --report."
        )
    if table and named:
        report, unit, notes = audit_recorded(source, recorded, claim, how)
        terminal.note(*notes)
        return report, unit
    _refuse(named, f"--secret and --report are for tables of samples (`metricdp list formats`), not for {source!r}.")
    for name in ("slack", "confidence", "draws"):
        changed = getattr(claim, name) != getattr(NOTHING, name)
        _refuse(changed, f"--{name} is for samples: a matrix and a mechanism file are judged exactly.")
    _refuse(
        points is not None and not table,
        f"--points is for a matrix, and {source!r} is none: it brings its own secrets.",
    )
    with terminal.progress_bar("Auditing") as progress:
        if table:
            report, unit, notes = audit_matrix_file(source, how, claim, progress=progress)
            terminal.note(*notes)
            return report, unit
        return audit_mechanism_file(source, claim.epsilon, key=key, again=again, progress=progress)


def _refuse(wrong: bool, sentence: str) -> None:
    if wrong:
        raise InvalidInput(sentence)


@contextmanager
def _audit_progress(claimed: float, unit: str) -> Iterator[Callable[[float, float], None] | None]:
    """Show on a terminal's error stream how far an audit is and what is known of epsilon."""
    from metricdp import messages

    per = f" per {unit}" if unit else ""
    with terminal.steps_bar("Asking", "nothing known yet") as bar:
        if bar is None:
            yield None
            return

        def show(share: float, bound: float) -> None:
            known = "infinite" if math.isinf(bound) else messages.number(bound, 3, "down")
            bar(share, f"epsilon at least {known}{per}, claimed {claimed:.6g}")

        yield show


def _audit_crowd(source: str | None, crowd: CrowdSpec, key: str | None, *, json: bool) -> int:
    """Say what shuffling the reports of a crowd adds to a mechanism; it is approximate, never a pure guarantee."""
    from metricdp import messages
    from metricdp.specs import audit_crowd

    found = audit_crowd(source, crowd, key=key)
    if json:
        terminal.say_json(asdict(found), sort_keys=True)
        return 0
    far, wide = (messages.distance(one, found.unit, "up") for one in (found.distance, found.diameter))
    shuffled, plain = (messages.number(one, 4, "up") for one in (found.epsilon, found.without_shuffling))
    terminal.say(
        f"APPROXIMATE, never a pure guarantee: shuffled reports of {found.people:,} people, each through {source}.",
        f"Moving one person by at most {far} changes the probability of anything that the crowd shows by a factor of "
        f"at most exp({shuffled}), except with probability {found.delta:g}. Without a shuffler the factor is "
        f"exp({plain}), for certain.",
        f"It holds where all secrets lie within {wide} of each other, everybody reports once, and the shuffler removes "
        "names and order. Somebody who sees a report before the shuffler has only the guarantee of the file.",
    )
    return 0
