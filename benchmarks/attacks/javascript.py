"""Forged files before the JavaScript reader in Node: refused with an error of ours, or drawn from without a NaN."""

from __future__ import annotations

import json
import shutil
import subprocess
import tempfile
from pathlib import Path

import metricdp as mdp
from attacks.forgery import forged

RUNNER = Path(__file__).parents[2] / "tests" / "js" / "forged.js"
BATCH = 25  # files a case, since Node has to start
SECONDS = 5  # of processor for a file, less than a case has, so that a file that hangs is named
WORDS = {"foreign": "foreign", "memory": "foreign", "hang": "hung", "report": "unsound"}


def attack(number: int) -> tuple[str, str]:
    """Put a batch of forged files before the reader; the first bad outcome is the verdict."""
    node = shutil.which("node")
    if node is None:
        raise mdp.MetricdpError("Node is not installed")
    files = {f"{at:02d}.mdp": forged(10**6 + number * BATCH + at) for at in range(BATCH)}
    with tempfile.TemporaryDirectory() as folder:
        for name, (_, data) in files.items():
            (Path(folder) / name).write_bytes(data)
        done = subprocess.run(
            [node, str(RUNNER), folder, "--seconds", str(SECONDS), "--draws", "2"],
            capture_output=True, text=True, check=False,
        )  # fmt: skip
    answers = [json.loads(line) for line in done.stdout.splitlines()]
    if len(answers) < BATCH:
        return "foreign", f"Node ended early: {done.stderr[-200:]}"
    for answer in answers:
        what, _ = files[answer["file"]]
        if answer["outcome"] in WORDS:
            return WORDS[answer["outcome"]], f"{what}: {answer['message'][:200]}"
    opened = sum(answer["outcome"] == "opened" for answer in answers)
    return "held", f"{opened} opened"
