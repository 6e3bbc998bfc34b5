"""Audits are remembered by the checksum of the file: for this file, this claim, this judge, and nothing else."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import metricdp as mdp
from instances import local_on, some_local
from metricdp.artifacts import audit_cache, inspect, load, save
from metricdp.errors import CorruptFile


@pytest.fixture
def audits(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> list[Any]:
    """Remember everything in a folder of the test, and list what is judged."""
    verify: list[Any] = []
    honest = audit_cache.audit

    def counted(mechanism: Any, **options: Any) -> Any:
        verify.append(mechanism)
        return honest(mechanism, **options)

    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setattr(audit_cache, "LEAST_SECONDS", 0.0)
    monkeypatch.setattr(audit_cache, "audit", counted)
    return verify


def entries(tmp_path: Path) -> list[Path]:
    return sorted((tmp_path / "cache" / "metricdp" / "audits").glob("*"))


def seal(path: Path) -> str:
    return inspect(path, verify=False).sha256


def test_a_file_is_judged_once(audits: list[Any], tmp_path: Path) -> None:
    path = tmp_path / "city.mdp"
    save(some_local(), path)
    (saved,) = entries(tmp_path)
    load(path)
    assert audits == []  # the judgement of saving is that of the file
    saved.unlink()
    load(path)
    load(path)
    assert len(audits) == 1
    first, second = (audit_cache.cached_audit(load(path), seal(path)) for _ in range(2))
    assert first == second
    assert "remembered from 20" in first.method
    fresh = audit_cache.cached_audit(load(path), seal(path), again=True)
    assert "remembered" not in fresh.method
    assert (fresh.verdict, fresh.epsilon, fresh.witness) == (first.verdict, first.epsilon, first.witness)
    assert len(audits) == 2
    assert saved.stat().st_mode & 0o077 == 0 or saved.parent.stat().st_mode & 0o077 == 0


def test_another_claim_another_file_or_another_judge_is_judged_anew(
    audits: list[Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path, other = tmp_path / "city.mdp", tmp_path / "other.mdp"
    save(some_local(), path)
    mechanism, checksum = load(path), seal(path)
    strict = audit_cache.cached_audit(mechanism, checksum, epsilon=mechanism.guarantee.epsilon * 0.1)
    assert strict.verdict == "violated"
    assert len(audits) == 1
    again = audit_cache.cached_audit(mechanism, checksum, epsilon=mechanism.guarantee.epsilon * 0.1)
    assert again.verdict == "violated"
    assert "remembered" in again.method
    assert len(audits) == 1
    save(local_on(mdp.FiniteSpace(np.arange(9.0), mdp.Lp(1)), 2.5), other)
    for entry in entries(tmp_path):
        if json.loads(entry.read_text())["sha256"] == seal(other):
            entry.unlink()
    load(other)
    assert len(audits) == 2
    monkeypatch.setattr(audit_cache, "EDITION", 0)
    load(path)
    assert len(audits) == 3


@pytest.mark.parametrize(
    "change",
    [
        lambda entry: entry | {"epsilon": 1e9},
        lambda entry: entry | {"sha256": "0" * 64},
        lambda entry: entry | {"report": entry["report"] | {"claimed": 1e9}},
        lambda entry: entry | {"report": entry["report"] | {"obstacle": "none"}},
        lambda entry: entry | {"report": entry["report"] | {"basis": "samples"}},
        lambda entry: entry | {"report": entry["report"] | {"more": 1}},
        lambda entry: entry | {"date": "<b>"},
        lambda entry: [],
    ],
)
def test_what_is_not_written_as_we_write_it_is_not_believed(change: Any, audits: list[Any], tmp_path: Path) -> None:
    path = tmp_path / "city.mdp"
    save(some_local(), path)
    (saved,) = entries(tmp_path)
    saved.write_text(json.dumps(change(json.loads(saved.read_text()))))
    load(path)
    assert len(audits) == 1


def test_an_entry_that_others_can_write_or_a_link_is_not_believed(audits: list[Any], tmp_path: Path) -> None:
    path = tmp_path / "city.mdp"
    save(some_local(), path)
    (saved,) = entries(tmp_path)
    saved.chmod(0o666)
    load(path)
    assert len(audits) == 1
    elsewhere = tmp_path / "elsewhere.json"
    saved.replace(elsewhere)
    elsewhere.chmod(0o600)
    saved.symlink_to(elsewhere)
    load(path)
    assert len(audits) == 2


def test_quick_audits_and_foreign_metrics_leave_nothing_behind(
    audits: list[Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(audit_cache, "LEAST_SECONDS", 60.0)
    path = tmp_path / "city.mdp"
    save(some_local(), path)
    load(path)
    assert not (tmp_path / "cache").exists()
    monkeypatch.setattr(audit_cache, "LEAST_SECONDS", 0.0)
    monkeypatch.setattr(audit_cache, "METRICS", ())
    load(path)
    assert not (tmp_path / "cache").exists()


def test_a_folder_that_takes_no_files_is_no_error(
    audits: list[Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "file"))
    save(some_local(), tmp_path / "city.mdp")
    load(tmp_path / "city.mdp")
    assert len(audits) == 1


def test_a_forged_file_has_another_checksum(audits: list[Any], tmp_path: Path) -> None:
    from forging import rewritten

    path = tmp_path / "city.mdp"
    save(some_local(), path)

    def tell_all(manifest: Any, tensors: Any) -> None:
        tensors[manifest["body"]["values"]][0] = 1e6

    rewritten(path, tell_all)
    with pytest.raises(CorruptFile, match="does not keep the guarantee"):
        load(path)
