"""Files are written whole, by one at a time, never through a link, and what a killed run leaves is removed."""

from __future__ import annotations

import os
import signal
import stat
import subprocess
import sys
import time
from pathlib import Path

import pytest

from metricdp import files
from metricdp.errors import OutputProblem
from metricdp.files import hidden_path, lock_target, private_folder, replace_file


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


def test_a_file_at_work_is_private_and_then_has_the_mode_of_any_new_file(tmp_path: Path) -> None:
    target, plain = tmp_path / "out.csv", tmp_path / "plain"
    plain.write_text("")
    with replace_file(target) as partial:
        partial.write_text("half")
        assert mode(partial) == 0o600
        assert not target.exists()
    assert mode(target) == mode(plain)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["out.csv", "plain"]


@pytest.mark.parametrize("wanted", [0o600, 0o640, 0o444, 0o666])
def test_a_file_that_is_replaced_keeps_its_permissions(tmp_path: Path, wanted: int) -> None:
    target = tmp_path / "out.csv"
    target.write_text("old")
    target.chmod(wanted)
    if os.geteuid() == 0:
        os.chown(target, 12, 34)
    with replace_file(target) as partial:
        partial.write_text("new")
    assert target.read_text() == "new"
    assert mode(target) == wanted
    if os.geteuid() == 0:
        assert (target.stat().st_uid, target.stat().st_gid) == (12, 34)


@pytest.mark.parametrize("there", [True, False])
def test_a_link_is_neither_followed_nor_replaced(tmp_path: Path, there: bool) -> None:
    elsewhere, link = tmp_path / "elsewhere", tmp_path / "out"
    if there:
        elsewhere.write_text("theirs")
    link.symlink_to(elsewhere)
    with pytest.raises(OutputProblem, match="it is a symbolic link to"), replace_file(link) as partial:
        partial.write_text("mine")
    assert link.is_symlink()
    assert elsewhere.exists() == there
    assert not there or elsewhere.read_text() == "theirs"


def test_a_folder_behind_a_link_is_a_folder(tmp_path: Path) -> None:
    (tmp_path / "real").mkdir()
    (tmp_path / "link").symlink_to("real")
    with replace_file(tmp_path / "link/out") as partial:
        partial.write_text("x")
    assert (tmp_path / "real/out").read_text() == "x"


def test_a_link_laid_where_the_work_goes_is_not_followed(tmp_path: Path) -> None:
    theirs = tmp_path / "theirs"
    theirs.write_text("theirs")
    hidden_path(tmp_path / "out", "partial").symlink_to(theirs)
    with replace_file(tmp_path / "out") as partial:
        partial.write_text("mine")
    assert theirs.read_text() == "theirs"
    hidden_path(tmp_path / "out", "metricdp-lock").symlink_to(theirs)
    with pytest.raises(OutputProblem, match="cannot write"), lock_target(tmp_path / "out"):
        pass
    (tmp_path / "home").symlink_to(tmp_path)
    with pytest.raises(OutputProblem, match="a folder of yours"):
        private_folder(tmp_path / "home")


WORK = """
import sys, time
from metricdp.files import lock_target, replace_file
with lock_target(sys.argv[1]), replace_file(sys.argv[1]) as partial:
    partial.write_text("half a secret's report")
    print("there", flush=True)
    time.sleep(60)
"""


def test_what_a_killed_run_leaves_is_removed_by_the_next_and_its_lock_is_free(tmp_path: Path) -> None:
    target = tmp_path / "out"
    process = subprocess.Popen([sys.executable, "-c", WORK, str(target)], stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    assert process.stdout.readline() == "there\n"
    with pytest.raises(OutputProblem, match=f"process {process.pid} on .* is at work on it"), lock_target(target):
        pass
    with replace_file(target) as partial:  # elsewhere, as long as the other one lives
        partial.write_text("whole")
    os.kill(process.pid, signal.SIGKILL)
    process.communicate()
    assert len(list(tmp_path.iterdir())) == 3  # the target, what is left of the work, and its lock
    with lock_target(target), replace_file(target) as partial:
        partial.write_text("next")
    assert [path.name for path in tmp_path.iterdir()] == ["out"]
    assert target.read_text() == "next"


def test_a_lock_can_be_taken_again_and_again_by_many(tmp_path: Path) -> None:
    count = tmp_path / "count"
    count.write_text("0")
    work = f"""
import time
from pathlib import Path
from metricdp.errors import OutputProblem
from metricdp.files import lock_target
count = Path({str(count)!r})
done = 0
while done < 200:
    try:
        with lock_target({str(tmp_path / "out")!r}):
            count.write_text(str(int(count.read_text()) + 1))
            done += 1
    except OutputProblem:
        time.sleep(0.0005)
"""
    started = [subprocess.Popen([sys.executable, "-c", work]) for _ in range(4)]
    assert [process.wait(timeout=60) for process in started] == [0] * 4
    assert count.read_text() == "800"  # nobody was ever inside with another
    assert [path.name for path in tmp_path.iterdir()] == ["count"]


def test_without_locks_of_the_system_a_file_that_exists_is_the_lock(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(files, "fcntl", None)
    with lock_target(tmp_path / "out"):
        with (
            pytest.raises(OutputProblem, match=r"at work on it.*If it has ended, remove"),
            lock_target(tmp_path / "out"),
        ):
            pass
        with replace_file(tmp_path / "out") as partial:
            partial.write_text("x")
    assert [path.name for path in tmp_path.iterdir()] == ["out"]


def test_long_names_have_room_beside_them(tmp_path: Path) -> None:
    for name in ("a" * 255, "ß" * 127, "a" * 250):
        with lock_target(tmp_path / name), replace_file(tmp_path / name) as partial:
            partial.write_text(name)
        assert (tmp_path / name).read_text() == name
    assert hidden_path(tmp_path / ("a" * 254), "lock") != hidden_path(tmp_path / ("a" * 255), "lock")


def test_an_interruption_leaves_the_target_as_it_was(tmp_path: Path) -> None:
    target = tmp_path / "out"
    target.write_text("old")
    before = target.stat().st_mtime_ns
    time.sleep(0.01)

    def interrupted() -> None:
        with replace_file(target) as partial:
            partial.write_text("new")
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        interrupted()
    assert target.read_text() == "old"
    assert target.stat().st_mtime_ns == before
    assert [path.name for path in tmp_path.iterdir()] == ["out"]
