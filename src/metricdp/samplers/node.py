"""A JavaScript module as a sampler, run in Node: our own with a mechanism file, or any with a function that draws."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from metricdp.arrays import Points, as_positive
from metricdp.errors import SamplerFailure
from metricdp.files import existing_file
from metricdp.samplers.process import Process, RestartingSampler
from metricdp.samplers.reports import json_reports, line_of, plain, printable

AT_ONCE = 1000  # reports in one answer, which is one line
DRIVER = Path(__file__).with_name("driver.mjs")


class NodeSampler(RestartingSampler):
    """Draw reports from an ES module, in a Node that is kept running.

    With `mechanism`, a file that `metricdp design` wrote, the module is metricdp for JavaScript: it opens the file and
    draws from it. Otherwise the module exports `function` (or a default function): it takes a secret, a number, a list
    of numbers or a word, and returns a report or a Promise of one: a number, a list, a word, or an object such as
    {point}, {lat, lon} or {latitude, longitude}. What the module logs does not disturb.
    """

    def __init__(
        self,
        module: str | os.PathLike[str],
        *,
        function: str = "sample",
        mechanism: str | os.PathLike[str] | None = None,
        patience: float = 60.0,
    ) -> None:
        node = shutil.which("node")
        if node is None:
            raise SamplerFailure("a JavaScript module is run in Node, which is not installed here (nodejs.org).")
        place = existing_file(module, "module").resolve()
        file = [] if mechanism is None else [str(existing_file(mechanism, "mechanism file").resolve())]
        self._words = [node, str(DRIVER), str(place), function, *file]
        self._patience = as_positive(patience, "patience")

    def each(self, secrets: Sequence[Any]) -> Points:
        """Return one report for every secret, in their order, one a row: the function is called once for each."""
        values = [plain(secret) for secret in secrets]
        sent = [value[0] if isinstance(value, list) and len(value) == 1 else value for value in values]
        hide = "\n".join(dict.fromkeys(line_of(secret) for secret in secrets))
        if self._process is None:
            self._process = Process(self._words, patience=self._patience, who="the module in Node")
            self._ask("", hide)  # it says that it is ready
        items: list[Any] = []
        while len(items) < len(sent):
            some = sent[len(items) : len(items) + AT_ONCE]
            items += self._ask(json.dumps({"secrets": some}) + "\n", hide)["reports"]
        return json_reports(items, "the module") if items else np.empty((0, 1))

    def _ask(self, text: str, hide: str) -> dict[str, Any]:
        assert self._process is not None
        line = self._process.ask(text, 1, hide=hide)[0]
        try:
            answer = json.loads(line)
        except ValueError:
            answer = {"error": f"it writes to the output by itself: {printable(line, hide)!r}"}
        if not isinstance(answer, dict) or "error" in answer:
            self.close()
            said = answer["error"] if isinstance(answer, dict) else "it writes to the output by itself"
            raise SamplerFailure(f"the module in Node: {printable(str(said), hide, longest=300)}.")
        return answer
