"""Packages of others, each installed in an environment of its own outside this project, and asked through commands."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import venv
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from metricdp.arrays import Floats
from metricdp.errors import SamplerFailure
from metricdp.files import lock_target, make_folder, replace_file
from metricdp.samplers import CommandSampler
from metricdp_papers.leaks import adapters

LONGEST_INSTALL = 900.0  # seconds
LONGEST_MATRIX = 280.0


# What is asked for of every package. Packages are run; nothing of them is part of this project.
PACKAGES = {
    "qif": ("qif==1.6.0", "numpy"),
    "diffprivlib": ("diffprivlib==0.6.6", "scikit-learn==1.6.1"),
    "opendp": ("opendp==0.16.0",),
    "pypantera": ("pypantera==1.0.2",),
    "dp-diffractor": ("dp-diffractor==0.2.1",),
    "mldp-text": ("mldp_text==0.1.2",),
}


def folder() -> Path:
    """Return where environments are kept: the user's cache, so that they are installed once."""
    base = os.environ.get("XDG_CACHE_HOME", "")
    return (Path(base) if os.path.isabs(base) else Path.home() / ".cache") / "metricdp" / "leaks"


def environment(name: str) -> Path:
    """Return the environment of a package, installed where it is not yet; a sentence where that cannot be."""
    requirements = PACKAGES[name]
    place = make_folder(folder()) / "-".join(requirements).replace("==", "-").replace("/", "_")
    ready = place / "versions.json"
    with lock_target(place):
        if not ready.is_file():
            venv.create(place, clear=True, with_pip=True, symlinks=os.name != "nt")
            words = ["install", "--quiet", "--no-input", "--retries", "1", "--timeout", "20", *requirements]
            _pip(place, words, name)
            listed = json.loads(_pip(place, ["list", "--format", "json"], name))
            with replace_file(ready) as partial:
                partial.write_text(json.dumps({one["name"]: one["version"] for one in listed}, indent=1))
    return place


def version(name: str) -> str:
    """Return the versions that were installed of what was asked for."""
    found = json.loads((environment(name) / "versions.json").read_text())
    asked = [requirement.partition("==")[0] for requirement in PACKAGES[name]]
    return ", ".join(f"{one} {found.get(one, '?')}" for one in asked)


def sampler(name: str, adapter: str) -> CommandSampler:
    """Return a package as a sampler, by one of the small programs."""
    return CommandSampler([python(environment(name)), str(_script(name, adapter))], patience=120.0)


def matrix(name: str, adapter: str) -> Floats:
    """Return the matrix that a package computes."""
    printed = run_program(environment(name), [str(_script(name, adapter))], LONGEST_MATRIX, name)
    lines = [line for line in printed.splitlines() if "," in line]
    return np.array([[float(cell) for cell in line.split(",")] for line in lines])


def _script(name: str, adapter: str) -> Path:
    place = environment(name) / f"{adapter.lower()}.py"
    text = getattr(adapters, adapter)
    if not place.is_file() or place.read_text() != text:
        with replace_file(place) as partial:
            partial.write_text(text)
    return place


def python(place: Path) -> str:
    """Return the interpreter of an environment."""
    return str(place / ("Scripts/python.exe" if sys.platform == "win32" else "bin/python"))


def _pip(place: Path, words: Sequence[str], name: str) -> str:
    words = ["-m", "pip", "--disable-pip-version-check", *words]
    late = "could not be installed"
    return run_program(place, words, LONGEST_INSTALL, name, late=late, failed=f"{late} here")


def run_program(
    place: Path,
    words: Sequence[str],
    longest: float,
    name: str,
    *,
    late: str = "did not end",
    failed: str = "ended with an error",
) -> str:
    """Return what the interpreter of an environment prints; refuse an error and an end that comes too late."""
    options: dict[str, Any] = {"capture_output": True, "text": True, "check": False, "stdin": subprocess.DEVNULL}
    try:
        done = subprocess.run([python(place), *words], timeout=longest, **options)
    except subprocess.TimeoutExpired as error:
        raise SamplerFailure(f"{name} {late} within {longest:g} s.") from error
    if done.returncode != 0:
        raise SamplerFailure(f"{name} {failed}: {_last_line(done.stderr)}")
    return str(done.stdout)


def _last_line(text: str) -> str:
    lines = [line for line in text.strip().splitlines() if line.startswith("ERROR")] or text.strip().splitlines()
    return lines[-1][:300] if lines else "it said nothing"
