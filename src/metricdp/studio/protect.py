"""The panel Protect: a file is uploaded, inspected, previewed, protected, and downloaded."""

from __future__ import annotations

import asyncio
import json
import re
import secrets
import shutil
import threading
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pyarrow as pa
from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import FileResponse, Response, StreamingResponse
from starlette.routing import Route

from metricdp import messages
from metricdp.design.laplace import laplace
from metricdp.errors import InvalidInput, MetricdpError
from metricdp.metrics import Haversine
from metricdp.studio.web import answer, number, question
from metricdp.tables import (
    DEFAULT_READING,
    LATITUDES,
    LONGITUDES,
    Disclosure,
    People,
    findings_in,
    is_text,
    open_table,
    perturb,
    task_for,
)
from metricdp.tables import Job as Work
from metricdp.tables.formats import locate_table
from metricdp.tables.reporting import Preview, distribution_record, page_of_table, record_of, write_record

MOST_BYTES = 4 << 30
PREVIEW = 200
POLL_SECONDS = 0.2  # seconds between two looks at a job
FILES = {"file": None, "report": "report.html", "certificate": "certificate.json"}
LONGEST = 100  # bytes of a file's name
ENDING = 10.0  # seconds in which a job that is to end does
LESS = (
    "The preview draws every row at this epsilon. In the file it is the most that a row gets: where a person has many "
    "rows the budget leaves less for each."
)


@dataclass
class Job:
    """One file on its way: its folder, how far it is, and what came of it."""

    folder: Path
    name: str
    page: str = ""  # the page that shows it
    found: dict[str, Any] = field(default_factory=dict)
    share: float = 0.0
    stopped: bool = False
    lines: list[str] | None = None
    problem: str = ""
    worker: threading.Thread | None = field(default=None, repr=False)

    @property
    def source(self) -> Path:
        return self.folder / self.name

    def run_without_folder(self, work: Callable[[], dict[str, Any]]) -> dict[str, Any]:
        """Return what the work gives; what goes wrong is said without the folder, which is nobody's business."""
        try:
            return work()
        except MetricdpError as error:
            raise InvalidInput(self.hide_folder(str(error))) from error

    def hide_folder(self, sentence: str) -> str:
        """Return a sentence without the folder."""
        return sentence.replace(f"{self.folder}/", "")

    def remove(self) -> None:
        """End the work on it, and remove its folder."""
        self.stopped = True
        if self.worker is not None:
            self.worker.join(ENDING)
        shutil.rmtree(self.folder, ignore_errors=True)

    @property
    def target(self) -> Path:
        return self.folder / f"protected-{self.name}"


class ProtectPanel:
    """The endpoints of the panel. Files lie in a folder that only this user can read, and go when Studio ends."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._jobs: dict[str, Job] = {}
        self._removing: list[threading.Thread] = []

    def routes(self) -> list[Route]:
        """Return the endpoints."""
        return [
            Route("/studio/files", self.receive, methods=["POST"]),
            Route("/studio/protect/{id}/preview", self.preview, methods=["POST"]),
            Route("/studio/protect/{id}/run", self.run, methods=["POST"]),
            Route("/studio/protect/{id}/page", self.show, methods=["POST"]),
            Route("/studio/protect/{id}/events", self.events),
            Route("/studio/protect/{id}/{what}", self.fetch),
            Route("/studio/protect/{id}", self.forget, methods=["DELETE"]),
        ]

    async def receive(self, request: Request) -> Response:
        """Take a file in and say what is in it."""
        name = _safe_name(request.query_params.get("name", ""))
        if not name:
            raise InvalidInput("the file needs a name that says its format, such as trips.csv.")
        identity = secrets.token_hex(16)
        job = Job(self._folder / identity, name, request.query_params.get("page", ""))
        job.folder.mkdir(mode=0o700)
        try:
            size = 0
            with job.source.open("wb") as file:
                async for part in request.stream():
                    size += len(part)
                    if size > MOST_BYTES:
                        raise InvalidInput("the file is larger than 4 GB: use `metricdp perturb` for it.")
                    await run_in_threadpool(file.write, part)
            job.found = {
                "id": identity,
                "name": name,
                "bytes": size,
                **await run_in_threadpool(job.run_without_folder, lambda: _inspect_file(job)),
            }
        except BaseException:
            shutil.rmtree(job.folder, ignore_errors=True)
            raise
        self._jobs[identity] = job
        return answer(job.found)

    async def show(self, request: Request) -> Response:
        """Say again what is in a file, to a page that was reloaded; from now on it is that page's."""
        job = self._job(request)
        job.page = str((await question(request)).get("page", ""))
        return answer({**job.found, "begun": job.worker is not None})

    async def preview(self, request: Request) -> Response:
        """Protect the first rows, for the owner of the file to look at."""
        job = self._job(request)
        chosen = _read_choice(await question(request))
        return answer(await run_in_threadpool(job.run_without_folder, lambda: _preview_rows(job, chosen)))

    async def run(self, request: Request) -> Response:
        """Begin to protect the whole file."""
        job, chosen = self._job(request), _read_choice(await question(request))
        if job.worker is not None and job.worker.is_alive():
            raise InvalidInput("this file is being protected already.")
        job.share, job.lines, job.problem = 0.0, None, ""
        job.worker = threading.Thread(target=_protect_file, args=(job, chosen), daemon=True)
        job.worker.start()
        return answer({"started": True}, 202)

    async def events(self, request: Request) -> Response:
        """Tell how far it is, until it ends."""
        return StreamingResponse(_event_stream(self._job(request)), media_type="text/event-stream")

    async def fetch(self, request: Request) -> Response:
        """Give the protected file, the report or the certificate."""
        job, what = self._job(request), request.path_params["what"]
        if what not in FILES or job.lines is None:
            return answer({"message": "there is nothing here yet."}, 404)
        path = job.target if FILES[what] is None else job.folder / str(FILES[what])
        if not path.is_file():
            return answer({"message": "there is nothing here."}, 404)
        return FileResponse(path, filename=path.name)

    async def forget(self, request: Request) -> Response:
        """Remove a file and all that came of it."""
        job = self._jobs.pop(request.path_params["id"], None)
        if job is not None:
            await run_in_threadpool(job.remove)
        return answer({"forgotten": job is not None})

    def forget_page(self, page: str) -> None:
        """Remove the files of a page that was closed, in a thread of its own."""
        theirs = [identity for identity, job in self._jobs.items() if job.page == page]
        for job in [self._jobs.pop(identity) for identity in theirs]:
            self._removing = [one for one in self._removing if one.is_alive()]
            self._removing.append(threading.Thread(target=job.remove, daemon=True))
            self._removing[-1].start()

    def settle(self) -> None:
        """Wait until the files of closed pages are removed."""
        for thread in self._removing:
            thread.join()

    def close(self) -> None:
        """Remove everything."""
        jobs = [self._jobs.pop(identity) for identity in list(self._jobs)]
        for job in jobs:
            job.stopped = True
        for job in jobs:
            job.remove()
        self.settle()

    def _job(self, request: Request) -> Job:
        found = self._jobs.get(request.path_params["id"])
        if found is None:
            raise InvalidInput("this file is not here any more: drop it again.")
        return found


@dataclass(frozen=True)
class ProtectionChoice:
    """What was chosen for a file."""

    columns: list[str]
    epsilon: float
    disclosure: Disclosure
    people: People

    @property
    def is_allocated(self) -> bool:
        """Whether rows get different shares of a budget."""
        return self.people.allocation is not None


def _read_choice(asked: dict[str, Any]) -> ProtectionChoice:
    columns = asked.get("columns")
    if not isinstance(columns, list) or len(columns) != 2 or not all(isinstance(one, str) and one for one in columns):
        raise InvalidInput("choose the columns of the latitude and of the longitude.")
    if columns[0] == columns[1]:
        raise InvalidInput("latitude and longitude must be two columns.")
    drop, coarsen, person = asked.get("drop", []), asked.get("coarsen", {}), asked.get("person")
    if not isinstance(drop, list) or not isinstance(coarsen, dict) or not isinstance(person, (str, type(None))):
        raise InvalidInput("`drop` must be a list of columns, `coarsen` an object and `person` a column.")
    disclosure = Disclosure([str(one) for one in drop], coarsen, force=asked.get("force") is True)
    people = People()
    if person:
        budget = None if asked.get("budget") is None else number(asked, "budget", 1e-6, 1e9)
        most = None if asked.get("max_rows") is None else int(number(asked, "max_rows", 1, 1e9))
        people = People(person, budget, asked.get("allocation"), most)
    return ProtectionChoice(columns, number(asked, "epsilon", 1e-6, 1e6), disclosure, people)


def _safe_name(given: str) -> str:
    """Return the name of a file that a page sent, as this machine may keep it."""
    name = re.sub(r"[^\w.\- ]", "_", Path(given.replace("\0", "_")).name).lstrip(".")
    stem, dot, ending = name.partition(".")
    ending = (dot + ending).encode()[-LONGEST // 2 :].decode(errors="ignore")
    return stem.encode()[: LONGEST - len(ending.encode())].decode(errors="ignore") + ending


def _noise(chosen: ProtectionChoice) -> Any:
    return laplace(Haversine(), chosen.epsilon)


def _first_rows(job: Job, columns: list[str] | None) -> tuple[Any, Any]:
    """Return the first rows as a flat table, and the columns of the secret in it."""
    with open_table(locate_table(str(job.source)), columns, DEFAULT_READING, geographic=True) as table:
        names = table.columns
        batch = next(table.batches(), None)
        if batch is None or batch.num_rows == 0:
            raise InvalidInput("this file has no rows: there is nothing to protect.")
        return pa.Table.from_batches([batch.slice(0, PREVIEW)]), names


def _inspect_file(job: Job) -> dict[str, Any]:
    origin = locate_table(str(job.source))
    first, _ = _first_rows(job, None)
    names = first.schema.names
    lower = {name.lower(): name for name in names}
    guess = [next((lower[one] for one in usual if one in lower), "") for usual in (LATITUDES, LONGITUDES)]
    columns = [{"name": one.name, "type": str(one.type)} for one in first.schema]
    warnings = _warnings(first, guess) if all(guess) else []
    return {"format": origin.format.name, "columns": columns, "guess": guess, "warnings": warnings}


def _warnings(first: Any, columns: list[str]) -> list[dict[str, Any]]:
    """Return what is found in the columns that would stay."""
    task = task_for(first.schema.names, laplace(Haversine(), 1.0), columns=columns, on_error="null")
    try:
        found = findings_in(first, task)
    except MetricdpError as error:
        return [{"column": "", "sentence": str(error), "time": False}]
    return [{"column": one.column, "sentence": messages.found_columns([one])[0], "time": one.is_time} for one in found]


def _preview_rows(job: Job, chosen: ProtectionChoice) -> dict[str, Any]:
    first, flat = _first_rows(job, chosen.columns)
    columns = list(flat or chosen.columns)
    after = perturb(first, _noise(chosen), columns=columns, disclosure=chosen.disclosure)
    names = [name for name in first.schema.names if name in after.schema.names]
    rows = [
        [list(map(_cell_text, row)) for row in zip(*(_values(side.column(name)) for name in names), strict=True)]
        for side in (first, after)
    ]
    guarantee = _noise(chosen).guarantee
    return {
        "names": names, "before": rows[0], "after": rows[1], "protected": columns,
        "lines": [messages.row_guarantee(guarantee), *([LESS] if chosen.is_allocated else [])],
    }  # fmt: skip


def _values(column: Any) -> list[Any]:
    """Return the values of a column; text of a CSV file is bytes, which stay as they are and may not be UTF-8."""
    if is_text(column.type):
        column = column.cast(pa.large_binary())
    values: list[Any] = column.to_pylist()
    return values


def _cell_text(value: Any) -> str | None:
    if value is None:
        return None
    if isinstance(value, bytes):
        value = _decode_text(value)
    return f"{value:.6f}" if isinstance(value, float) else str(value)[:80]


def _decode_text(text: bytes) -> str:
    try:
        return text.decode("utf-8")
    except UnicodeDecodeError:
        return text.decode("cp1252", errors="replace")  # for looking only: the file keeps its bytes


def _protect_file(job: Job, chosen: ProtectionChoice) -> None:
    """Protect the whole file, in a thread of its own."""
    report_preview, noise = Preview(), _noise(chosen)

    def progress(share: float) -> None:
        if job.stopped:
            raise InvalidInput("the file was removed: nothing was written.")
        job.share = share

    try:
        summary = perturb(
            job.source, noise, columns=chosen.columns, to=job.target, people=chosen.people,
            disclosure=chosen.disclosure, job=Work(watch=report_preview, progress=progress, overwrite=True),
        )  # fmt: skip
        write_record(record_of(summary, distribution_record(summary, noise)), str(job.folder / "certificate.json"))
        if not chosen.is_allocated:  # a page shows one distribution, and rows have different ones then
            page_of_table(summary, noise, report_preview).write(job.folder / "report.html")
        job.lines = list(summary.lines())
    except MetricdpError as error:
        job.problem = job.hide_folder(str(error))
    except Exception as error:
        job.problem = f"it stumbled ({type(error).__name__}); nothing was written."


async def _event_stream(job: Job) -> AsyncIterator[str]:
    while job.lines is None and not job.problem:
        yield f"event: progress\ndata: {json.dumps({'share': job.share})}\n\n"
        await asyncio.sleep(POLL_SECONDS)
    if job.problem:
        yield f"event: failed\ndata: {json.dumps({'message': job.problem})}\n\n"
    else:
        lines = [job.hide_folder(line) for line in job.lines or []]
        yield f"event: done\ndata: {json.dumps({'lines': lines, 'report': (job.folder / 'report.html').is_file()})}\n\n"
