"""Numbers as the page says them: what is a bound stays one when it is rounded."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import pytest

import browsers
import metricdp

WORDS = Path(metricdp.__file__).parent / "studio" / "page" / "words.js"
SCRIPT = """
globalThis.document = { documentElement: {} };
globalThis.localStorage = { getItem: () => "en", setItem: () => undefined };
globalThis.fetch = async () => ({ json: async () => ({ "factor.beyond": { en: "beyond {factor}x", de: "" } }) });
const words = await import(process.argv[1]);
await words.learn();
words.speak("en");
console.log(JSON.stringify(JSON.parse(process.argv[2]).map(([name, ...given]) => words[name](...given))));
"""


def said(*calls: list[object]) -> list[str]:
    program = browsers.node()
    if program is None:
        pytest.skip("there is no Node here")
    done = subprocess.run(
        [program, "--input-type=module", "-e", SCRIPT, "--", WORDS.as_uri(), json.dumps(calls)],
        capture_output=True, text=True, timeout=60, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    found: list[str] = json.loads(done.stdout)
    return found


def test_bounds_are_rounded_to_the_side_on_which_they_hold() -> None:
    lengths = said(["notBelow", 369.51], ["within", 361.2], ["notBelow", 370], ["notBelow", 0])
    assert lengths == ["360 m", "370 m", "370 m", "0 m"]
    assert said(["atLeast", 0.369559, 4], ["atMost", 0.4101, 3], ["atMost", 0]) == ["0.3695", "0.411", "0"]
    factors = said(["factor", 1.0501], ["factor", 1001.0], ["factor", None])
    assert factors == ["1.06x", "beyond 1,000x", "beyond 1,000x"]
