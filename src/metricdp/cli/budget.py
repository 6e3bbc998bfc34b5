"""The command about the ledger: what people may spend, have spent and have left."""

from __future__ import annotations

import math
import re
import sys
import time
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from cyclopts import App, Parameter

from metricdp.cli import terminal
from metricdp.cli.options import STANDARD, Epsilon, Output, Verbose
from metricdp.errors import InvalidInput
from metricdp.files import is_server, refuse_ledger
from metricdp.rendering import json_text, place, plural
from metricdp.units import parse_distance, parse_duration

if TYPE_CHECKING:
    from metricdp.ledger import Budget, Ledger, Policy

budget = App(
    name="budget",
    help="Keep the ledger: what people may spend, what they spent and have left.\n\n"
    "A ledger is a file such as `budget.db`, with its key beside it (`budget.db.key`), or an address such as "
    "`postgresql://user@host/database` with `--key-file`.",
    help_format="markdown",
)


@dataclass(frozen=True)
class LedgerFiles:
    """Which ledger.

    Attributes:
        key_file: The key of a ledger on a server. A ledger in a file has its own.
        head_file: The head file of a ledger on a server, on this machine. A ledger in a file has its own.
    """

    key_file: str | None = None
    head_file: str | None = None

    def open(self, place: str, policy: str | None = None, *, read_only: bool = False) -> Ledger:
        """Open it."""
        from metricdp.ledger import Ledger

        return Ledger.open(place, policy=policy, key_file=self.key_file, head_file=self.head_file, read_only=read_only)


BESIDE = LedgerFiles()
DELTA = 1e-5  # with which the concentrated rule may fail
Flat = Annotated[LedgerFiles, Parameter(name="*")]
Person = Annotated[str, Parameter(name="--person", allow_leading_hyphen=True)]  # `-` is standard input


@budget.command
def begin(path: str, /, *, policy: str, which: Flat = BESIDE) -> int:
    """Make a ledger, with what a person may spend.

    An example: `metricdp budget begin budget.db --policy '40/km per day, 200/km ever'`

    Args:
        path: A new file, or the address of a PostgreSQL database.
        policy: Limits with commas between: an amount per unit, and per hour, day, week, month, year or ever; `for
            NAME` under the total for a purpose; `slack 1 ever` where promises with slack are allowed; `5 ever in
            mahalanobis.474895b8c37ca3f2` for the account of a metric with parameters, as a refusal names it.
    """
    with which.open(path, policy) as ledger:
        terminal.say(f"The ledger {place(path)} allows every person: {ledger.policy()}.")
        terminal.note(*_unit_notes(ledger.policy()))
    if which.key_file is None:
        terminal.say(
            f"Its key is {place(path)}.key: keep a copy of it apart. Without it nobody can be found in the ledger.",
            f"Its head is {place(path)}.head: keep it beside the ledger. It records the last entry: losses show.",
        )
    return 0


def _unit_notes(policy: Policy) -> list[str]:
    """Return what to write for places on the Earth, if a limit has no unit and none has one of length."""
    from metricdp.ledger.amounts import in_words

    bare = [limit for limit in policy.limits if limit.kind == "epsilon" and not limit.unit and not limit.account]
    if not bare or any(limit.unit for limit in policy.limits):
        return []
    return [f"no unit: for lat and lon write {in_words(bare[0].amount, 'km')}."]


@budget.command
def show(
    path: str,
    /,
    *,
    person: Person | None = None,
    radius: str | None = None,
    json_: bool = False,
    verbose: Verbose = False,
    which: Flat = BESIDE,
) -> int:
    """Show what a person spent and has left, or the policy.

    An example: `metricdp budget show budget.db --person anna --radius 200m`

    Args:
        path: The ledger.
        person: Whose account; `-` reads the name from standard input, where no list of processes shows it.
        radius: Also say what the releases add up to for places that far apart, by the basic and the concentrated rule.
        json_: Print JSON.
        verbose: Print every limit of every account.
    """

    with which.open(path, read_only=True) as ledger:
        if person is None:
            allowed = str(ledger.policy())
            terminal.say(
                json_text({"policy": allowed}, indent=None) if json_ else f"Every person may spend: {allowed}."
            )
            return 0
        name = _person(person)
        found = ledger.budget(name)
        if json_:
            terminal.say_json(found.to_dict())
            return 0
        if found.closed:
            terminal.say("This person was erased: the account is closed for ever.")
        elif not found.accounts:
            terminal.say(f"Nothing was ever charged to this person. Every person may spend: {ledger.policy()}.")
        composed = {
            one.metric: [] if radius is None else _composition_lines(ledger, name, one.metric, radius)
            for one in found.accounts
        }
    if verbose:
        terminal.say(*(line for one in found.accounts for line in [*one.lines(found.time), *composed[one.metric]]))
    elif found.accounts:
        terminal.say(
            *_balance_lines(found),
            *(f"{_account_words(name)}: {' '.join(lines)}" for name, lines in composed.items() if lines),
        )
    return 0


def _balance_lines(found: Budget) -> list[str]:
    """Return what was spent, what is left by the nearest limit of every account, and what to watch."""
    spent = "; ".join(f"{one.spent_text} ({_account_words(one.metric)})" for one in found.accounts)
    nearest = [limit for one in found.accounts if (limit := one.nearest) is not None]
    empty = [f"nothing is left of {limit.limit}." for limit in nearest if not limit.left]
    old = [f"{one.metric} was charged by an earlier version." for one in found.accounts if one.is_replaced]
    left = "; ".join(f"{limit.left_text} of {limit.limit}{limit.refreshes_text}" for limit in nearest)
    watch = " ".join([*empty, *old]) or "nothing."
    return [f"Spent: {spent}.", f"Left: {left or 'no limit counts this'}.", f"To watch: {watch} {terminal.MORE}"]


@budget.command
def plan(
    policy: str,
    /,
    *,
    epsilon: Epsilon | None = None,
    rho: str | None = None,
    every: str = "10min",
    purpose: str | None = None,
    which: Flat = BESIDE,
) -> int:
    """Say what a day of releases costs a person, and when it is refused.

    An example: `metricdp budget plan '40/km per day, 200/km ever' --epsilon 2/km --every 10min`

    Args:
        policy: What a person may spend; or a ledger, whose policy is taken.
        epsilon: What one release promises, such as 2/km.
        rho: Instead of it, the rho of a concentrated promise, such as 0.05/km2.
        every: The pace: one release every 30s, 10min, 2h or 1d.
        purpose: A purpose of the policy.
    """
    from metricdp.ledger import Policy
    from metricdp.ledger.planning import plan_level

    if is_server(policy) or Path(policy).is_file():
        with which.open(policy, read_only=True) as ledger:
            chosen = ledger.policy()
    else:
        chosen = Policy.parse(policy)
    found = plan_level(chosen, epsilon=epsilon, rho=rho, every=parse_duration(every), purpose=purpose)
    terminal.say(*found.lines())
    return 0


@budget.command
def policy(path: str, /, new: str, *, which: Flat = BESIDE) -> int:
    """Change what people may spend from now on. What they spent stays counted, and the chain records the change.

    An example: `metricdp budget policy budget.db '20/km per day, 200/km ever'`
    """
    with which.open(path) as ledger:
        before = ledger.policy()
        ledger.change_policy(new)
        terminal.say(f"Every person may now spend: {ledger.policy()}. Before: {before}.")
    return 0


@budget.command
def export(
    path: str, /, *, output: Output, person: Person | None = None, which: Flat = BESIDE, overwrite: bool = False
) -> int:
    """Write the entries of a person, or the ledger without reports, as JSON lines.

    An example: `metricdp budget export budget.db --person anna -o anna.jsonl`

    Args:
        path: The ledger.
        output: The file to write, readable by you alone; - for standard output.
        person: Whose charges, with the stored reports; `-` reads the name from standard input. Without it everybody's,
            as keyed hashes and without reports.
        overwrite: Replace a file that is there.
    """
    is_file = output != STANDARD
    if is_file:
        refuse_ledger(output)
    with which.open(path, read_only=True) as ledger:
        name = None if person is None else _person(person)
        count = ledger.export_file(output if is_file else sys.stdout, name, overwrite=overwrite)
    if is_file:
        terminal.say(f"{plural(count, 'line')} written to {output}, for your eyes only.")
    return 0


@budget.command
def erase(path: str, /, *, person: Person, which: Flat = BESIDE) -> int:
    """Erase a person: entries are removed, and every further release is refused.

    An example: `metricdp budget erase budget.db --person anna`

    Args:
        path: The ledger.
        person: Who; `-` reads the name from standard input.
    """
    with which.open(path) as ledger:
        done = ledger.erase(_person(person))
    terminal.say(
        "Erased: reports, amounts, times and request ids are gone. The account is closed for ever, since erasing must "
        "not give a budget back. Backups and exports made before still hold them."
        if done
        else "This person was erased before: there is nothing left to erase."
    )
    return 0


@budget.command
def rotate(path: str, /, *, drop_reports: str | None = None, which: Flat = BESIDE) -> int:
    """Close the periods that are over, and drop old reports.

    An example: `metricdp budget rotate budget.db --drop-reports 30d`

    Args:
        path: The ledger.
        drop_reports: Drop stored reports older than this, such as 30d; their request ids are refused from then on.
    """
    before = None if drop_reports is None else time.time() - parse_duration(drop_reports)
    with which.open(path) as ledger:
        accounts, reports = ledger.rotate(reports_before=before)
    terminal.say(f"Periods that were over were closed in {plural(accounts, 'account')}; reports dropped: {reports:,}.")
    return 0


@budget.command
def verify(path: str, /, *, head: list[str] | None = None, which: Flat = BESIDE) -> int:
    """Check that every total equals its entries and the chain is unbroken; exit code 1 if not.

    An example: `metricdp budget verify budget.db`

    Args:
        path: The ledger.
        head: An end of the chain that an earlier check printed; the ledger must still hold it. May be repeated.
    """
    with which.open(path, read_only=True) as ledger:
        verdict = ledger.verify(pins=head or ())
    for fault in verdict.faults:
        terminal.say(f"fault: {fault}")
    if verdict.faults:
        return 1
    terminal.say(
        f"The ledger holds (entries: {verdict.entries:,}, accounts: {verdict.accounts:,}, erased: {verdict.closed:,}): "
        "every total equals its entries and the chain is unbroken."
    )
    for note in verdict.notes:
        terminal.say(note)
    terminal.say("Its end, to be noted elsewhere and handed to a later check with --head:")
    terminal.say(*(f"  {head}" for head in verdict.heads))
    return 0


@budget.command
def backup(path: str, /, *, output: Output, which: Flat = BESIDE) -> int:
    """Copy a ledger in a file, with its key, while it is in use.

    An example: `metricdp budget backup budget.db -o monday.db`

    Args:
        path: The ledger.
        output: The copy; its key and its head file go beside it.
    """
    with which.open(path) as ledger:
        ledger.backup(output)
    terminal.say(f"Copied to {output}, with {output}.key and {output}.head. What is spent from now on is not in it.")
    return 0


@budget.command
def restore(path: str, /, *, which: Flat = BESIDE) -> int:
    """Make a backup the ledger in use, where the original is lost.

    An example: `metricdp budget restore monday.db`

    Args:
        path: The backup. What people spent since it was made is not in it, and they may spend it again; lower the
            policy for that time where this matters (`metricdp budget policy`).
    """
    from metricdp.ledger.periods import SECOND, time_text

    with which.open(path) as ledger:
        made = ledger.restore()
    if made is None:
        raise InvalidInput(f"{place(path)} is no backup: it is in use already.")
    terminal.say(f"In use from now on. What was spent since {time_text(int(made * SECOND))} is not in it.")
    return 0


@budget.command
def recover(
    path: str,
    /,
    *,
    accept_loss: bool = False,
    policy: str | None = None,
    which: Flat = BESIDE,
) -> int:
    """Continue with a ledger that lost entries and cannot be restored.

    An example: `metricdp budget recover budget.db --accept-loss`

    Args:
        path: A ledger that is refused because it is behind its head file, or empty beside its key.
        accept_loss: Say that you know it: charges are missing, and people may spend again what they charged.
        policy: What people may spend, where the ledger is empty or gone and begins anew.
    """
    from metricdp.ledger import Ledger

    if not accept_loss:
        raise InvalidInput(
            "charges that were lost are given back to everybody: put the right database back with its `-wal` file, or "
            "a backup. If that is impossible, say so with --accept-loss."
        )
    loss = Ledger.recover(path, policy=policy, key_file=which.key_file, head_file=which.head_file)
    terminal.say(f"In use from now on, without what was lost: {loss}. The chain records it.")
    terminal.say("Lower the policy for the time that is missing where this matters (`metricdp budget policy`).")
    return 0


def _person(name: str) -> str:
    """Return the name of a person, from standard input where that is asked for."""
    found = sys.stdin.readline().strip() if name == "-" else name
    if not found:
        raise InvalidInput("say whose account: --person NAME, or --person - with the name on standard input.")
    return found


def _composition_lines(ledger: Ledger, person: str, metric: str, radius: str) -> list[str]:
    """Say what the releases add up to for places a radius apart, by two rules; of an account in rho by its own."""
    from metricdp.ledger.amounts import CONCENTRATED, NO_UNIT
    from metricdp.ledger.budgets import compose_charges, epsilon_of_rho

    radius = re.sub(r"(?<=\d)(?=[a-z])", " ", radius.strip(), count=1)  # 200 m
    unit = metric.partition("/")[2]
    if metric.startswith(CONCENTRATED):
        unit = unit[:-1].replace(NO_UNIT, "")
    apart = parse_distance(radius, unit, option="radius")
    if metric.startswith(CONCENTRATED):
        spent = ledger.budget(person, metric=metric).accounts[0].spent
        if not spent:
            return ["Nothing was charged to it."]
        worth = epsilon_of_rho(spent, unit, radius=apart, delta=DELTA)
        return [
            f"All releases together, places {radius} apart each time: any set of reports is at most {_factor(worth)} "
            f"times likelier from one than from the other, plus delta {DELTA:g}. Concentrated: approximate, not pure."
        ]
    total = compose_charges(ledger.history(person), metric, radius=apart, delta=DELTA)
    first = (
        f"{plural(total.releases, 'release')}, places {radius} apart each time: at most a factor of "
        f"{_factor(total.basic)} (the basic rule, which the ledger charges by)"
    )
    if total.concentrated >= total.basic:  # it is weaker, and holds with less certainty
        return [f"{first}."]
    return [
        f"{first},",
        f"and with probability 1 - {DELTA:g} at most {_factor(total.concentrated)} (the concentrated rule).",
    ]


def _account_words(metric: str) -> str:
    """Return the name of an account in words: great-circle distance, per km."""
    name, _, unit = metric.partition("/")
    return f"great-circle distance, per {unit}" if name == "haversine" and unit else metric


def _factor(log: float) -> str:
    return f"{math.exp(log):.4g}" if log < 700 else f"e^{log:.4g}"
