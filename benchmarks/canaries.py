"""Search for canaries in all that failing runs leave behind: errors, output, logs, warnings, temporary files.

python benchmarks/canaries.py [--runs 300] [--runners pandas,csv,local,spark,ray,...] [--record]

Every group of runs is a process of its own whose output and temporary files (Spark's and Ray's logs among them) lie in
one folder; that folder is searched when the process has ended.
"""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "tests"))

from record import arguments, recorder  # noqa: E402

from canaries import RUNNERS, cases, doubles, fits, found, run  # noqa: E402

SLOW = {"local": 8, "spark": 8, "ray": 8, "spark frame": 8, "ray data": 8}  # at most so many runs: workers are started


def work(folder: Path, runner: str, count: int) -> int:
    """Run cases in this process and return how many; what errors say goes to a file, as an application's log would."""
    import logging

    logging.basicConfig(level=0, filename=folder / "out" / "application.log")
    logging.captureWarnings(True)
    done, seed = 0, 0
    while done < count:
        for case in cases(seed):
            if done == count:
                break
            if not fits(runner, case):
                continue
            text = run(runner, case, folder / "in" / str(done), folder / "out" / str(done))
            (folder / "out" / f"{done}.error").write_text(text, encoding="utf-8")
            done += 1
        seed += 1
    return done


def searched(folder: Path, runner: str, count: int) -> tuple[list[str], int]:
    """Return what was found in the files of a folder, and how many bytes were searched."""
    texts, binaries, hits, size = set(), set(), [], 0
    for case in (case for seed in range(1 + count // 15) for case in cases(seed) if fits(runner, case)):
        texts.update(case.needles)
        binaries.update(doubles(case))
    for path in folder.rglob("*"):
        if not path.is_file() or path.is_symlink():
            continue
        data = path.read_bytes()
        size += len(data)
        if path.suffix != ".mdp":  # a mechanism holds its own public words
            hits += [f"{runner}: {needle} in {path.name}" for needle in found(data, texts)]
        hits += [f"{runner}: a double in {path.name}" for value in binaries if value in data]
    return hits, size


def measured(runner: str, count: int) -> tuple[list[str], int]:
    folder = Path(tempfile.mkdtemp(prefix="mdp", dir="/tmp"))  # short: Ray's sockets have little room for names
    try:
        for name in ("in", "out", "t"):
            (folder / name).mkdir()
        places = {"TMPDIR": folder / "t", "RAY_TMPDIR": folder / "t", "SPARK_LOCAL_DIRS": folder / "t"}
        environment = {**os.environ, **{name: str(place) for name, place in places.items()}}
        environment |= {"PYSPARK_PYTHON": sys.executable, "PYTHONPATH": os.pathsep.join(sys.path)}
        with (folder / "out" / "stdout").open("wb") as output, (folder / "out" / "stderr").open("wb") as errors:
            subprocess.run(
                [sys.executable, __file__, "--child", str(folder), runner, str(count)],
                check=True, stdout=output, stderr=errors, env=environment, cwd=folder / "out",
            )  # fmt: skip
        shutil.rmtree(folder / "in")  # there they are
        return searched(folder, runner, count)
    except subprocess.CalledProcessError:
        print((folder / "out" / "stderr").read_text(errors="replace")[-3000:])
        raise
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def shares(runners: list[str], runs: int) -> dict[str, int]:
    """Return how many runs every runner gets."""
    slow = {name: SLOW[name] for name in runners if name in SLOW}
    quick = [name for name in runners if name not in SLOW]
    left = max(0, runs - sum(slow.values()))
    return {name: left // len(quick) + (number < left % len(quick)) for number, name in enumerate(quick)} | slow


def main() -> None:
    parser = arguments(__doc__)
    parser.add_argument("--runs", type=int, default=300)
    parser.add_argument("--runners", default=",".join(RUNNERS))
    parser.add_argument("--child", nargs=3, help=argparse.SUPPRESS)
    asked = parser.parse_args()
    if asked.child:
        work(Path(asked.child[0]), asked.child[1], int(asked.child[2]))
        return
    started, hits, size = time.perf_counter(), [], 0
    plan = shares(asked.runners.split(","), asked.runs)
    for runner, count in plan.items():
        more, read = measured(runner, count)
        hits += more
        size += read
        print(f"{runner}: {count} failing runs, {len(more)} canaries found in {read:,} bytes", flush=True)
    recorder(asked.record)(
        "canaries",
        "canaries in failing runs on every way in: frames, files, the command, jobs, engines, calls",
        asked="300 runs, 0 found",
        measured=f"{sum(plan.values())} runs, {len(hits)} found in {size / 1e6:.1f} MB of errors, output, logs, files",
        runs=plan,
        found=len(hits),
        seconds=round(time.perf_counter() - started, 1),
    )
    print("\n".join(hits[:50]) or "no canary found")
    raise SystemExit(1 if hits else 0)


if __name__ == "__main__":
    main()
