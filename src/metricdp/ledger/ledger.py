"""The ledger: what every person spent, and the only way to a release that is charged exactly once."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, closing
from dataclasses import replace
from pathlib import Path
from types import TracebackType
from typing import Any, TextIO, TypeVar

import sqlalchemy as sa

from metricdp.files import replace_file
from metricdp.ledger.amounts import Account, account_named, accounts_for, accounts_of, charge_of, is_replaced_name
from metricdp.ledger.backends import Hold
from metricdp.ledger.batch_accounts import LedgerBatch, batch_of
from metricdp.ledger.batches import BatchOutcome, count_granted, find_batch_answer, settle_batch
from metricdp.ledger.budgets import Budget, ChargeRecord, budget_of, charges_of, export_rows
from metricdp.ledger.chain import ends_of
from metricdp.ledger.checking import Verdict, check_ledger, limit_verdict
from metricdp.ledger.keys import LedgerKey, name_bytes
from metricdp.ledger.maintenance import backup, change_policy, erase_person, restore, rotate
from metricdp.ledger.opening import open_key, recover
from metricdp.ledger.periods import begin
from metricdp.ledger.policy import Policy
from metricdp.ledger.queue import GroupCommit
from metricdp.ledger.records import BatchPeople, BatchReceipt, Cost, Person, ReceiptPart, Release, Steady
from metricdp.ledger.schema import BOOKS
from metricdp.ledger.settling import Charge, Outcome, Receipt, settle, state_of
from metricdp.ledger.store import Store
from metricdp.metrics import Metric
from metricdp.rendering import json_text

Clock = Callable[[], float]  # seconds since 1970
T = TypeVar("T")


class Ledger:
    """The ledger of what people spent, in a file or on a PostgreSQL server.

    Safe to use from many threads, processes and, on a server, machines at once; a process that was forked opens it
    for itself. An example:

        with Ledger.open("budget.db", policy="40/km per day, 200/km ever") as ledger:
            receipt = ledger.release("anna", "request-1", key="app", metric=guarantee.metric,
                                     epsilon=guarantee.epsilon, slack=guarantee.slack, draw=draw)

    """

    def __init__(self, store: Store, key: LedgerKey, clock: Clock) -> None:
        self._store, self._key, self._clock = store, key, clock
        self._lane = os.getpid() % store.backend.lanes
        self._pile: GroupCommit[Charge, Outcome] = GroupCommit(self._settle)
        self._holds: dict[str, tuple[object, Hold]] = {}
        self._turns: dict[str, threading.Lock] = {}

    @classmethod
    def open(
        cls,
        place: str | os.PathLike[str],
        *,
        policy: Policy | str | None = None,
        key_file: str | os.PathLike[str] | None = None,
        head_file: str | os.PathLike[str] | None = None,
        read_only: bool = False,
        clock: Clock = time.time,
    ) -> Ledger:
        """Open a ledger, or begin one where there is none and a policy is given.

        Args:
            place: A file such as "budget.db", or an address such as "postgresql://user@host/database".
            policy: What a person may spend, such as "40/km per day, 200/km ever". A ledger that exists keeps its own: a
                different one is refused.
            key_file: The key of the ledger. Beside a file it is `budget.db.key`, made with the ledger; for a server it
                has to be named, and all who use the server need the same one.
            head_file: A small file that says how far the ledger had come, written before every answer. A ledger
                behind it is refused (`Ledger.recover`). Beside a file it is `budget.db.head`, made with the ledger or
                at the first opening. For a server it is the named file, on this machine; without one nobody
                notices that an old dump was restored.
            read_only: Change nothing but the version of an earlier ledger; one behind its head file gives a warning.
            clock: Seconds since 1970, for tests.
        """
        chosen = Policy.parse(policy) if isinstance(policy, str) else policy
        with ExitStack() as failed:
            store = failed.enter_context(closing(Store(place, key_file, head_file)))
            key = open_key(store, chosen, _milliseconds(clock), read_only=read_only)
            failed.pop_all()
        return cls(store, key, clock)

    @staticmethod
    def recover(
        place: str | os.PathLike[str],
        *,
        policy: Policy | str | None = None,
        key_file: str | os.PathLike[str] | None = None,
        head_file: str | os.PathLike[str] | None = None,
        clock: Clock = time.time,
    ) -> str:
        """Accept that a ledger lost entries, and return what was lost; the chain records it.

        People may spend again what the lost entries charged. A ledger that is empty or gone begins anew, with a policy.
        """
        chosen = Policy.parse(policy) if isinstance(policy, str) else policy
        with closing(Store(place, key_file, head_file)) as store:
            return recover(store, chosen, _milliseconds(clock))

    def release(
        self,
        person: Person,
        request: str | Steady,
        *,
        key: str,
        metric: Metric | str,
        epsilon: float | None = None,
        rho: float | None = None,
        slack: float = 0.0,
        dimension: int | None = None,
        purpose: str | None = None,
        draw: Callable[[], bytes],
    ) -> Receipt:
        """Charge a person and give out a report, exactly once.

        A request id that was answered before, for the same key and person, gets the stored report, whatever secret
        `draw` holds this time: nothing is drawn and nothing charged. Otherwise the charge must fit all limits, or
        `BudgetExceeded` is raised before anything is drawn; then `draw` is called, and its report is committed together
        with the charge before this returns. Where `draw` raises, nothing was charged and its error comes through.
        `LedgerUnavailable` says that the ledger could not be written: ask again with the same request id.

        Args:
            person: Whose secret it is: a name or number, stored as a keyed hash only.
            request: An id that the caller chooses and repeats where it got no answer, or `Steady(period)`.
            key: Who asks, such as the name of an API key: request ids of different keys are different.
            metric: The metric of the guarantee, or the name of its account such as "haversine/km". A sum of metrics
                (`Weighted`, the metric of a product) is charged part by part, each in its own account. A metric with
                parameters has an account that the policy has to name. Roads in units of length share one account.
            epsilon: The epsilon per unit of that metric, rounded up to the next millionth (per kilometre for lengths).
            rho: Instead of epsilon: the rho of a concentrated guarantee (Gaussian noise), per squared unit. It has
                an account of its own, `rho-haversine/km2`, in which rho adds up; limits are `rho 0.5/km2 per day`.
                The two accounts are separate: what a person gave away is what both say together.
            slack: The slack of the guarantee, in nats.
            dimension: The number of coordinates of a secret. l1 and all l_p below 2 need it: they are charged in the
                account of l2, where l1 costs sqrt(dimension) times epsilon.
            purpose: One of the purposes of the policy, where it names any.
            draw: Gives the report, at most a mebibyte. It is called once at most, inside the transaction: fresh noise,
                no other work, and no call of this ledger.
        """
        asked = Release(person, request, draw, key, metric, epsilon, slack, purpose, rho, dimension)
        outcome = self._pile.do(self._charge(asked))
        if isinstance(outcome, Exception):
            raise outcome
        return outcome

    def release_many(self, releases: Sequence[Release]) -> list[Receipt | Exception]:
        """Settle many releases in one transaction, in their order, each on its own.

        What went wrong with one is returned in its place: `BudgetExceeded`, `InvalidInput`, or what its `draw`
        raised. A ledger that cannot be written raises an error for all of them: then none was charged.
        """
        charges: list[Charge | Exception] = []
        for one in releases:
            try:
                charges.append(self._charge(one))
            except Exception as error:
                charges.append(error)
        settled = iter(self._settle([one for one in charges if isinstance(one, Charge)]))
        return [next(settled) if isinstance(one, Charge) else one for one in charges]

    def release_batch(
        self,
        rows: Mapping[Person, int],
        request: str,
        *,
        key: str,
        metric: Metric | str,
        epsilon: Cost | None = None,
        rho: Cost | None = None,
        slack: Cost = 0.0,
        dimension: int | None = None,
        purpose: str | None = None,
        partial: bool = False,
        draw: Callable[[Mapping[Person, int]], bytes],
    ) -> BatchReceipt:
        """Charge many people for the rows of a table, each once, and give out one report for all, exactly once.

        A person is charged `rows[person]` times epsilon and slack. All or nothing: where one of them has not enough
        left, `BudgetExceeded` is raised and nobody is charged. With `partial` everybody gets as many rows as the budget
        allows, and the receipt says how many. A request id that was answered before, for the same key, gets the stored
        report and grants, even if it names other people this time.

        Args:
            rows: How many rows there are of every person.
            request: An id that the caller chooses and repeats where it got no answer.
            key: Who asks, as in `release`.
            metric: As in `release`.
            epsilon: The epsilon of one row, the same for all or by person.
            rho: Instead of epsilon, the rho of a concentrated guarantee, as in `release`.
            slack: The slack of one row, the same for all or by person.
            dimension: As in `release`.
            purpose: As in `release`.
            partial: Grant what fits instead of all or nothing.
            draw: Gets the rows that were granted to every person and gives the report of them all, at most 64
                mebibytes; empty where reports are stored elsewhere, as the file of a job is.
        """
        people = BatchPeople.of(self._key, rows)
        batch = batch_of(people, metric, epsilon, rho, slack, dimension=dimension, purpose=purpose, partial=partial)
        tag = self._batch_request(key, request)
        batch = replace(batch, request=tag, draw=lambda granted: draw(people.granted(granted)))
        return _batch_receipt(self._run(settle_batch, batch, lane=self._lane), batch)

    def answered(
        self,
        rows: Mapping[Person, int],
        request: str,
        *,
        key: str,
        metric: Metric | str,
        concentrated: bool = False,
        dimension: int | None = None,
        purpose: str | None = None,
    ) -> BatchReceipt | None:
        """Return what `release_batch` answered to a request before, None where it is new; nobody is charged."""
        people = BatchPeople.of(self._key, rows)
        epsilon, rho = (None, 1.0) if concentrated else (1.0, None)
        batch = batch_of(people, metric, epsilon, rho, 0.0, dimension=dimension, purpose=purpose, partial=True)
        batch = replace(batch, request=self._batch_request(key, request))
        with self._store.reading() as connection:
            done = find_batch_answer(connection, self._key, batch, clock=_milliseconds(self._clock))
            ends = ends_of(connection)
        self._store.note(ends)
        return None if done is None else _batch_receipt(done, batch)

    def granted(
        self,
        rows: Mapping[Person, int],
        *,
        metric: Metric | str,
        epsilon: Cost | None = None,
        rho: Cost | None = None,
        slack: Cost = 0.0,
        dimension: int | None = None,
        purpose: str | None = None,
        partial: bool = False,
    ) -> Mapping[Person, int]:
        """Return how many rows of everybody `release_batch` would grant now, or raise as it would; nobody is charged.

        The answer is of this moment: only a charge makes sure of it.
        """
        people = BatchPeople.of(self._key, rows)
        batch = batch_of(people, metric, epsilon, rho, slack, dimension=dimension, purpose=purpose, partial=partial)
        return people.granted(self._read(count_granted, batch, clock=_milliseconds(self._clock)))

    def budget(self, person: Person, *, metric: Metric | str | None = None, dimension: int | None = None) -> Budget:
        """Return what a person has spent and has left: in every account there is, or in those of one metric."""
        named: tuple[Account, ...] | None = None
        if isinstance(metric, str) and is_replaced_name(metric.strip().lower()):
            named = (account_named(metric.strip().lower()),)
        elif metric is not None:
            named = accounts_for(metric, dimension=dimension)
        return self._read(budget_of, self._key.person(person), named, clock=_milliseconds(self._clock))

    def history(self, person: Person) -> list[ChargeRecord]:
        """Return every charge of a person, with the stored report where it is theirs alone."""
        return self._read(charges_of, self._key.person(person))

    def export(self) -> Iterator[dict[str, Any]]:
        """Yield the whole ledger as plain values, row by row, without reports; people stay keyed hashes."""
        with self._store.reading() as connection:
            yield from export_rows(connection)

    def export_file(
        self, target: str | os.PathLike[str] | TextIO, person: Person | None = None, *, overwrite: bool = False
    ) -> int:
        """Write the charges of a person, or the ledger without reports, as JSON lines; return how many there are.

        A file can be read by its owner only.
        """
        if not isinstance(target, str | os.PathLike):
            rows = self.export() if person is None else (one.to_dict() for one in self.history(person))
            return sum(1 for row in rows if target.write(f"{json_text(row, indent=None)}\n"))
        with replace_file(target, overwrite=overwrite) as partial, partial.open("w", encoding="utf-8") as file:
            count = self.export_file(file, person)
        Path(target).chmod(0o600)
        return count

    def policy(self) -> Policy:
        """Return what a person may spend."""
        return self._read(state_of, 0).policy

    def change_policy(self, policy: Policy | str) -> None:
        """Set what people may spend from now on; the chain records it. What was spent stays counted."""
        chosen = Policy.parse(policy) if isinstance(policy, str) else policy
        self._run(change_policy, chosen)

    def erase(self, person: Person) -> bool:
        """Erase a person and close their accounts for ever; return False where that was done before.

        Reports, amounts, times and request ids go. A tombstone stays, covered by the chain, that refuses every further
        release: erasing must not give a budget back.
        """
        done: bool = self._run(erase_person, self._key.person(person), lane=self._lane)
        self._store.forget_log()
        return done

    def rotate(self, *, reports_before: float | None = None) -> tuple[int, int]:
        """Close the periods that are over and drop reports drawn before a time, in seconds since 1970.

        Returns how many accounts had periods that were over, and how many reports were dropped. The request id of a
        dropped report is refused from then on.
        """
        before = None if reports_before is None else int(reports_before * 1000)
        done: tuple[int, int] = self._run(rotate, lane=self._lane, before=before)
        self._store.forget_log()
        return done

    def verify(self, *, pins: Sequence[str] = ()) -> Verdict:
        """Check the ledger: every total equals its entries, and the chain over them is unbroken.

        `pins` are heads of an earlier verdict that were noted elsewhere: the ledger must still hold what it held then.
        """
        found = self._read(check_ledger, self._key, pins)
        return limit_verdict(found, self._store.loss, self._store.head_file)

    def backup(self, target: str | os.PathLike[str]) -> Path:
        """Copy a ledger in a file, with key and head, while it is in use; a copy releases nothing before `restore`."""
        return backup(self._store, self._key, target, clock=_milliseconds(self._clock))

    def restore(self) -> float | None:
        """Make a backup the ledger in use; return when it was made, in seconds since 1970, None where it is no backup.

        What people spent between the backup and now is not in it: they may spend it again. The chain records it.
        """
        made = self._run(restore, lane=self._lane)
        return None if made is None else made / 1000

    def _charge(self, one: Release) -> Charge:
        accounts = accounts_of(one.metric, one.epsilon, one.rho, one.dimension)
        return Charge(
            person=self._key.person(one.person),
            request=self._request(one, accounts),
            purpose=one.purpose or "",
            dues=tuple((account, account.charge(one.rho or one.epsilon or 0.0)) for account in accounts),
            slack=charge_of(one.slack, "slack"),
            draw=one.draw,
        )

    def _request(self, one: Release, accounts: tuple[Account, ...]) -> Callable[[int], bytes]:
        """Return the tag of a request at a time: that of a steady report holds for a period."""
        request, scope, person = one.request, name_bytes(one.key, "key"), name_bytes(one.person, "person")
        if isinstance(request, Steady):
            names = " ".join(account.name for account in accounts).encode()
            parts = (b"steady", scope, person, names, (one.purpose or "").encode(), request.name.encode())
            period = request.period
            return lambda now: self._key.request(*parts, period.encode(), str(begin(period, now)).encode())
        tag = self._key.request(b"request", scope, person, name_bytes(request, "request"))
        return lambda now: tag

    def _batch_request(self, key: str, request: str) -> bytes:
        return self._key.request(b"batch", name_bytes(key, "key"), name_bytes(request, "request"))

    def _settle(self, charges: Sequence[Charge]) -> list[Outcome]:
        return self._run(settle, charges, lane=self._lane) if charges else []

    def _run(self, work: Callable[..., T], *arguments: Any, **options: Any) -> T:
        """Run work in one transaction, with the key and the time of its beginning."""
        clock = _milliseconds(self._clock)
        return self._store.run(lambda connection: work(connection, self._key, *arguments, clock=clock, **options))

    def _read(self, work: Callable[..., T], *arguments: Any, **options: Any) -> T:
        """Run work that changes nothing on the ledger of one moment."""
        with self._store.reading() as connection:
            return work(connection, *arguments, **options)

    def hold(self, name: str, owner: object) -> None:
        """Be the only one who steps a stream, or say that another process is; in one program the last one is."""
        if name not in self._holds:
            with self._store.reading() as connection:
                ledger = connection.execute(sa.select(BOOKS.c.name)).scalar_one()
            self._holds[name] = (owner, self._store.hold(name, ledger))
        self._holds[name] = (owner, self._holds[name][1])

    def holds(self, name: str, owner: object) -> bool:
        """Tell whether somebody still is the only one who steps a stream."""
        whose, held = self._holds.get(name, (None, None))
        if held is not None and not held.lasts():
            del self._holds[name]
            return False
        return whose is owner

    def turn(self, name: str) -> threading.Lock:
        """Return the lock under which threads of this process step a stream."""
        return self._turns.setdefault(name, threading.Lock())

    def close(self) -> None:
        """Close the ledger."""
        while self._holds and not self._store.is_forked:
            self._holds.popitem()[1][1].close()
        self._store.close()

    def __enter__(self) -> Ledger:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.close()


def _batch_receipt(done: BatchOutcome, batch: LedgerBatch) -> BatchReceipt:
    people = batch.people
    parts = tuple(
        ReceiptPart(one.account.name, one.account.unit, amount, people.values_by_person(left))
        for one, amount, left in zip(batch.columns, done.amounts, done.left, strict=True)
    )
    first, granted = parts[0], people.granted(done.granted)
    return BatchReceipt(done.report, granted, first.charged, done.slack, done.repeated, first.unit, first.left, parts)


def _milliseconds(clock: Clock) -> int:
    return int(clock() * 1000)
