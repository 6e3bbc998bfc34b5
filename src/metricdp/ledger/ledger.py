"""The ledger: what every person spent, and the only way to a release that is charged exactly once."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from types import TracebackType
from typing import Any

import sqlalchemy as sa

from metricdp.ledger.amounts import Account, account_named, accounts_for, accounts_of, charge_of, is_replaced_name
from metricdp.ledger.backends import Hold
from metricdp.ledger.batch_accounts import batch_of
from metricdp.ledger.batches import count_granted, find_batch_answer, settle_batch
from metricdp.ledger.budgets import Budget, budget_of
from metricdp.ledger.checking import Verdict, check_ledger, limit_verdict
from metricdp.ledger.erasing import erase_person
from metricdp.ledger.history import ChargeRecord, charges_of, export_rows
from metricdp.ledger.keys import LedgerKey, name_bytes
from metricdp.ledger.losses import ends_of
from metricdp.ledger.maintenance import backup, change_policy, restore, rotate
from metricdp.ledger.opening import open_key, recover
from metricdp.ledger.people import BatchPeople, Cost, Person
from metricdp.ledger.policy import Policy
from metricdp.ledger.queue import GroupCommit
from metricdp.ledger.records import BatchReceipt, Release, Steady
from metricdp.ledger.requests import answer_of, receipt_of, request_of
from metricdp.ledger.schema import BOOKS
from metricdp.ledger.settling import Charge, Outcome, Receipt, settle, state_of
from metricdp.ledger.store import Store
from metricdp.metrics import Metric

Clock = Callable[[], float]  # seconds since 1970


class Ledger:
    """The books of what people spent, in a file or on a PostgreSQL server.

    Safe to use from many threads, processes and, on a server, machines at once; a process that was forked opens them
    for itself. An example:

        with Ledger.open("budget.db", policy="40/km per day, 200/km ever") as ledger:
            receipt = ledger.release("anna", "request-1", key="app", metric=guarantee.metric,
                                     epsilon=guarantee.epsilon, slack=guarantee.slack, draw=draw)

    """

    def __init__(self, store: Store, key: LedgerKey, files: tuple[Path, Path | None], clock: Clock) -> None:
        self._store, self._key, self._clock = store, key, clock
        self._key_file, self._head_file = files
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
        """Open books, or begin them where there are none and a policy is given.

        Args:
            place: A file such as "budget.db", or an address such as "postgresql://user@host/database".
            policy: What a person may spend, such as "40/km per day, 200/km ever". Books that are there keep theirs: a
                different one is refused.
            key_file: The key of the books. Beside a file it is `budget.db.key`, made with the books; for a server it
                has to be named, and all who use the server need the same one.
            head_file: A small file that says how far the books had come, written before every answer. Books that are
                behind it are refused (`Ledger.recover`). Beside a file it is `budget.db.head`, made with the books or
                at the first opening. For a server it is kept where it is named, on this machine; without one nobody
                notices that an old dump was restored.
            read_only: Change nothing but the version of earlier books; one behind its head file gives a warning.
            clock: Seconds since 1970, for tests.
        """
        store = Store(place)
        chosen = Policy.parse(policy) if isinstance(policy, str) else policy
        try:
            its, head = store.key_file(key_file), store.head_file(head_file)
            key = open_key(store, its, chosen, _milliseconds(clock), head_file=head, read_only=read_only)
        except BaseException:
            store.close()
            raise
        return cls(store, key, (its, head), clock)

    @staticmethod
    def recover(
        place: str | os.PathLike[str],
        *,
        policy: Policy | str | None = None,
        key_file: str | os.PathLike[str] | None = None,
        head_file: str | os.PathLike[str] | None = None,
        clock: Clock = time.time,
    ) -> str:
        """Accept that books lost entries, and return what was lost; the chain records it.

        People may spend again what the lost entries charged. Books that are empty or gone begin anew, with a policy.
        """
        store = Store(place)
        chosen = Policy.parse(policy) if isinstance(policy, str) else policy
        try:
            its, head = store.key_file(key_file), store.head_file(head_file)
            return recover(store, its, chosen, _milliseconds(clock), head_file=head)
        finally:
            store.close()

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
        `LedgerUnavailable` says that the books could not be written: ask again with the same request id.

        Args:
            person: Whose secret it is: a name or number, stored as a keyed hash only.
            request: An id that the caller chooses and repeats where it got no answer, or `Steady(period)`.
            key: Who asks, such as the name of an API key: request ids of different keys are different.
            metric: The metric of the promise, or the name of its account such as "haversine/km". A sum of metrics
                (`Weighted`, the metric of a product) is charged part by part, each in its own account. A metric with
                parameters has an account that the policy has to name. Roads in units of length share one account.
            epsilon: The promise per unit of that metric, rounded up to the next millionth (per kilometre for lengths).
            rho: Instead of an epsilon, that of a concentrated promise (Gaussian noise), per squared unit. It is charged
                to an account of its own, `rho-haversine/km2`, in which rho adds up; limits are `rho 0.5/km2 per day`.
                Neither account knows of the other: what a person gave away is what both say together.
            slack: The slack of the promise, in nats.
            dimension: The number of coordinates of a secret. l1 and all l_p below 2 need it: they are charged in the
                account of l2, where l1 costs sqrt(dimension) times epsilon.
            purpose: One of the purposes of the policy, where it names any.
            draw: Gives the report, at most a mebibyte. It is called once at most, inside the transaction: fresh noise,
                no other work, and no call of this ledger.
        """
        return answer_of(
            self._pile.do(
                self._charge(Release(person, request, draw, key, metric, epsilon, slack, purpose, rho, dimension))
            )
        )

    def release_many(self, releases: Sequence[Release]) -> list[Receipt | Exception]:
        """Settle many releases in one transaction, in their order, each on its own.

        What went wrong with one is returned in its place: `BudgetExceeded`, `InvalidInput`, or whatever its `draw`
        raised. That the books cannot be written is raised for all of them: then none was charged.
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
        report and grants, whoever is asked for this time.

        Args:
            rows: How many rows there are of every person.
            request: An id that the caller chooses and repeats where it got no answer.
            key: Who asks, as in `release`.
            metric: As in `release`.
            epsilon: The promise of one row, the same for all or by person.
            rho: Instead of it, that of concentrated promises, as in `release`.
            slack: The slack of one row, the same for all or by person.
            dimension: As in `release`.
            purpose: As in `release`.
            partial: Grant what fits instead of all or nothing.
            draw: Gets the rows that were granted to every person and gives the report of them all, at most 64
                mebibytes; empty where reports are kept elsewhere, as the file of a job is.
        """
        people = BatchPeople.of(self._key, rows)
        batch = batch_of(people, metric, (epsilon, rho, slack), (purpose, dimension), partial=partial)
        tag = self._batch_request(key, request)
        batch = replace(batch, request=tag, draw=lambda granted: draw(people.granted(granted)))
        clock = _milliseconds(self._clock)
        done = self._store.run(
            lambda connection: settle_batch(connection, self._key, batch, clock=clock, lane=self._lane)
        )
        return receipt_of(people, done, batch)

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
        costs = (None, 1.0, 0.0) if concentrated else (1.0, None, 0.0)
        batch = batch_of(people, metric, costs, (purpose, dimension), partial=True)
        batch = replace(batch, request=self._batch_request(key, request))
        with self._store.reading() as connection:
            done = find_batch_answer(connection, self._key, batch, clock=_milliseconds(self._clock))
            ends = ends_of(connection)
        self._store.note(ends)
        return None if done is None else receipt_of(people, done, batch)

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
        batch = batch_of(people, metric, (epsilon, rho, slack), (purpose, dimension), partial=partial)
        with self._store.reading() as connection:
            return people.granted(count_granted(connection, batch, clock=_milliseconds(self._clock)))

    def budget(self, person: Person, *, metric: Metric | str | None = None, dimension: int | None = None) -> Budget:
        """Return what a person has spent and has left: in every account there is, or in those of one metric."""
        named: tuple[Account, ...] | None = None
        if isinstance(metric, str) and is_replaced_name(metric.strip().lower()):
            named = (account_named(metric.strip().lower()),)
        elif metric is not None:
            named = accounts_for(metric, dimension=dimension)
        with self._store.reading() as connection:
            return budget_of(connection, self._key.person(person), named, clock=_milliseconds(self._clock))

    def history(self, person: Person) -> list[ChargeRecord]:
        """Return every charge of a person, with the stored report where it is theirs alone."""
        with self._store.reading() as connection:
            return charges_of(connection, self._key.person(person))

    def export(self) -> Iterator[dict[str, Any]]:
        """Yield the whole books as plain values, row by row, without reports; people stay keyed hashes."""
        with self._store.reading() as connection:
            yield from export_rows(connection)

    def policy(self) -> Policy:
        """Return what a person may spend."""
        with self._store.reading() as connection:
            return state_of(connection, 0).policy

    def change_policy(self, policy: Policy | str) -> None:
        """Set what people may spend from now on; the chain records it. What was spent stays counted."""
        chosen = Policy.parse(policy) if isinstance(policy, str) else policy
        clock = _milliseconds(self._clock)
        self._store.run(lambda connection: change_policy(connection, self._key, chosen, clock=clock))

    def erase(self, person: Person) -> bool:
        """Erase a person and close their accounts for ever; return False where that was done before.

        Reports, amounts, times and request ids go. A tombstone stays, covered by the chain, that refuses every further
        release: erasing must not give a budget back.
        """
        clock, tag, lane = _milliseconds(self._clock), self._key.person(person), self._lane
        done = self._store.run(lambda connection: erase_person(connection, self._key, tag, clock=clock, lane=lane))
        self._store.forget_log()
        return done

    def rotate(self, *, reports_before: float | None = None) -> tuple[int, int]:
        """Close the periods that are over and drop reports drawn before a time, in seconds since 1970.

        Returns how many accounts had periods that were over, and how many reports were dropped. The request id of a
        dropped report is refused from then on.
        """
        before = None if reports_before is None else int(reports_before * 1000)
        clock, lane = _milliseconds(self._clock), self._lane
        done = self._store.run(lambda connection: rotate(connection, self._key, clock=clock, lane=lane, before=before))
        self._store.forget_log()
        return done

    def verify(self, *, pins: Sequence[str] = ()) -> Verdict:
        """Check the books: every total equals its entries, and the chain over them is unbroken.

        `pins` are heads of an earlier verdict that were kept elsewhere: the books must still hold what they held then.
        """
        with self._store.reading() as connection:
            found = check_ledger(connection, self._key, pins)
        return limit_verdict(found, self._store.loss, self._head_file)

    def backup(self, target: str | os.PathLike[str]) -> Path:
        """Copy books in a file, their key and head, while they are in use; nothing is released from it (`restore`)."""
        return backup(self._store, (self._key, self._key_file), target, clock=_milliseconds(self._clock))

    def restore(self) -> float | None:
        """Make a backup the books in use; return when it was made, in seconds since 1970, None where it is no backup.

        What people spent between the backup and now is not in it: they may spend it again. The chain records it.
        """
        clock = _milliseconds(self._clock)
        made = self._store.run(lambda connection: restore(connection, self._key, clock=clock, lane=self._lane))
        return None if made is None else made / 1000

    def _charge(self, one: Release) -> Charge:
        accounts = accounts_of(one.metric, one.epsilon, one.rho, one.dimension)
        person = name_bytes(one.person, "person")
        return Charge(
            person=self._key.person(person),
            request=request_of(self._key, one, accounts, person),
            purpose=one.purpose or "",
            dues=tuple((account, account.charge(one.rho or one.epsilon or 0.0)) for account in accounts),
            slack=charge_of(one.slack, "slack"),
            draw=one.draw,
        )

    def _batch_request(self, key: str, request: str) -> bytes:
        return self._key.request(b"batch", name_bytes(key, "key"), name_bytes(request, "request"))

    def _settle(self, charges: Sequence[Charge]) -> list[Outcome]:
        if not charges:
            return []
        clock = _milliseconds(self._clock)
        return self._store.run(lambda connection: settle(connection, self._key, charges, clock=clock, lane=self._lane))

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
        """Let the books go."""
        while self._holds and not self._store.is_forked:
            self._holds.popitem()[1][1].close()
        self._store.close()

    def __enter__(self) -> Ledger:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.close()


def _milliseconds(clock: Clock) -> int:
    return int(clock() * 1000)
