"""Audits of mechanism files that took long, remembered by the checksum of the file: each is audited once.

An entry is a small JSON file in the user's cache folder (`XDG_CACHE_HOME`, else ~/.cache, then metricdp/audits), which
nobody else may write to. It is for one file to the last bit, one claim, one version of metricdp and one edition of the
auditor; for anything else the audit is done. Only proofs are remembered, and only in metrics of this package: what
somebody's plugin measures may change without any of these changing.
"""

from __future__ import annotations

import hashlib
import json
import os
import stat
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import asdict, replace
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

from metricdp.auditing import AuditReport, Claim, audit
from metricdp.auditing.dispatch import EDITION
from metricdp.auditing.leakage import has_rows
from metricdp.errors import OutputProblem
from metricdp.files import NO_LINKS, is_ours, private_folder, replace_file
from metricdp.mechanisms import Mechanism, Witness, require_pure

LEAST_SECONDS = 1.0  # seconds: what is audited sooner leaves nothing behind
LARGEST_ENTRY = 1 << 16  # bytes
METRICS = tuple(f"metricdp.metrics.{name}" for name in ("vectors", "geography", "discrete", "curved"))
VERDICTS = ("holds", "violated")


def cached_audit(
    mechanism: Mechanism,
    checksum: str,
    *,
    epsilon: float | None = None,
    again: bool = False,
    progress: Callable[[float], None] | None = None,
) -> AuditReport:
    """Audit the mechanism of a file whose checksum was verified, or return what is remembered of it."""
    claim = Claim.of(require_pure(mechanism.guarantee, "this audit"), epsilon)
    known = None if again else _recall(mechanism, checksum, claim)
    if known is not None:
        return known
    started = time.perf_counter()
    report = audit(mechanism, epsilon=epsilon, progress=progress)
    store_audit(mechanism, checksum, report, time.perf_counter() - started)
    return report


def store_audit(mechanism: Mechanism, checksum: str, report: AuditReport, seconds: float) -> None:
    """Store the result of a long audit for the next time; a folder that cannot be written to is not an error."""
    if seconds < LEAST_SECONDS or report.claimed is None or report.verdict not in VERDICTS:
        return
    if report.basis != "proof" or not _is_plain(mechanism):
        return
    claim = Claim.of(require_pure(mechanism.guarantee, "this audit"), report.claimed)
    entry = _about(checksum, claim) | {"date": time.strftime("%Y-%m-%d"), "report": asdict(report)}
    with suppress(OSError, OutputProblem, RuntimeError):
        folder = _folder()
        folder.parent.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        private_folder(folder.parent)
        with replace_file(private_folder(folder) / _name(checksum, claim)) as partial:
            partial.write_text(json.dumps(entry, indent=1), encoding="utf-8")


def _recall(mechanism: Mechanism, checksum: str, claim: Claim) -> AuditReport | None:
    if not _is_plain(mechanism):
        return None
    try:
        entry = json.loads(_read(_folder() / _name(checksum, claim)))
        about = _about(checksum, claim)
        if {name: entry[name] for name in about} != about:
            return None
        report = _report(entry["report"])
        date = time.strftime("%Y-%m-%d", time.strptime(entry["date"], "%Y-%m-%d"))
    except (OSError, RuntimeError, ValueError, TypeError, KeyError, RecursionError):
        return None
    same = (report.claimed, report.slack, report.basis) == (claim.epsilon, claim.slack, "proof")
    if not same or report.verdict not in VERDICTS:
        return None
    return replace(report, method=f"{report.method}, remembered from {date}")


def _is_plain(mechanism: Mechanism) -> bool:
    """Return whether all that a verdict depends on lies in the file and in this package."""
    ours = type(mechanism).__module__.partition(".")[0] == "metricdp"
    return ours and has_rows(mechanism) and type(mechanism.inputs.metric).__module__ in METRICS


def _about(checksum: str, claim: Claim) -> dict[str, Any]:
    return {
        "sha256": checksum,
        "metricdp": _version(),
        "edition": EDITION,
        "epsilon": claim.epsilon,
        "slack": claim.slack,
        "radius": claim.radius,
    }


@cache
def _version() -> str:
    try:
        return version("metricdp")
    except PackageNotFoundError:  # run from a folder of sources
        return ""


def _name(checksum: str, claim: Claim) -> str:
    """Return the name of an entry, made of digits whatever the checksum is."""
    return f"{hashlib.sha256(json.dumps(_about(checksum, claim)).encode()).hexdigest()}.json"


def _folder() -> Path:
    base = os.environ.get("XDG_CACHE_HOME", "")
    return (Path(base) if os.path.isabs(base) else Path.home() / ".cache") / "metricdp" / "audits"


def _read(path: Path) -> bytes:
    """Read an entry that only its owner can have written."""
    with open(os.open(path, os.O_RDONLY | NO_LINKS), "rb") as file:
        found = os.fstat(file.fileno())
        if not stat.S_ISREG(found.st_mode) or not is_ours(found) or found.st_mode & 0o022:
            raise ValueError("another user may have written it")
        return file.read(LARGEST_ENTRY)


def _report(fields: dict[str, Any]) -> AuditReport:
    witness = fields["witness"]
    if witness is not None:
        places = {name: witness[name] and tuple(witness[name]) for name in ("secret_at", "other_at", "report_at")}
        witness = Witness(**(witness | places))
    return AuditReport(**(fields | {"witness": witness}))
