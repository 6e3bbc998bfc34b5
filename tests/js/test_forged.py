"""Forged files before the JavaScript reader: refused with a sentence, never a hang, a foreign error or NaN."""

from __future__ import annotations

import json
import shutil
import signal
import subprocess
import time
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import metricdp as mdp
from browsers import node, outcomes
from forging import rewritten
from metricdp import constants
from metricdp.artifacts import inspect, save
from metricdp.errors import CorruptFile

PROJECT = Path(__file__).parents[2]
Change = Callable[[dict[str, Any], dict[str, Any]], Any]


def forge(path: Path, name: str, change: Change) -> None:
    """Write a file of the format's collection after a change, unsigned, with a checksum that fits."""
    shutil.copy(PROJECT / "tests" / "data" / f"v2-{name}.mdp", path)
    rewritten(path, lambda manifest, tensors: (change(manifest, tensors), manifest.update(signature=None)))


def test_every_kind_and_every_metric_is_opened_and_drawn_from(every_kind: list[Path]) -> None:
    for answer in outcomes(every_kind[0].parent).values():
        assert answer["outcome"] == "opened", answer
        assert int(answer["message"].split()[0]) > 5, answer


FLOATS = {"nan": {"float": "nan"}, "inf": {"float": "inf"}}


def metric(**values: Any) -> Change:
    return lambda manifest, tensors: manifest["metrics"][0]["parameters"].update(values)


def promise(**values: Any) -> Change:
    return lambda manifest, tensors: manifest["guarantee"].update(values)


def body(**values: Any) -> Change:
    return lambda manifest, tensors: manifest["body"].update(values)


def tensor(name: str, value: float) -> Change:
    return lambda manifest, tensors: tensors.__setitem__(name, np.full_like(tensors[name], value))


def deep(manifest: dict[str, Any], tensors: dict[str, Any]) -> None:
    """Weighted metrics that each hold the one before twice: 2**40 terms in two kilobytes."""
    number = len(manifest["metrics"])
    for level in range(40):
        below = 0 if level == 0 else number + level - 1
        parts = [[below, [0, 1], 1.0], [below, [0, 1], 1.0]]
        manifest["metrics"].append({"name": "Weighted", "parameters": {"parts": parts, "unit": ""}})
    manifest["spaces"][0]["ground"] = len(manifest["metrics"]) - 1


def curves(manifest: dict[str, Any], tensors: dict[str, Any]) -> None:
    """Curves of curves of curves: one term each, twenty deep."""
    number = len(manifest["metrics"])
    for level in range(20):
        below = 0 if level == 0 else number + level - 1
        manifest["metrics"].append({"name": "Frechet", "parameters": {"ground": below, "dimension": 2, "unit": ""}})


def itself(manifest: dict[str, Any], tensors: dict[str, Any]) -> None:
    manifest["metrics"][3]["parameters"]["parts"][0] = [3, [0], 1.0]


def number_of(manifest: dict[str, Any], name: str) -> int:
    return [entry["name"] for entry in manifest["metrics"]].index(name)


def streets_by_roads(manifest: dict[str, Any], tensors: dict[str, Any]) -> None:
    space = next(entry for entry in manifest["spaces"] if entry["kind"] == "streets")
    space["metric"] = number_of(manifest, "ShortestPath")


def roads_by_streets(manifest: dict[str, Any], tensors: dict[str, Any]) -> None:
    manifest["metrics"].insert(1, {"name": "Lp", "parameters": {"p": 2.0, "unit": ""}})
    number = number_of(manifest, "StreetPath")
    manifest["metrics"][number]["parameters"]["network"] = 1


ATTACKS: dict[str, tuple[str, Change]] = {
    "no p": ("quantised", lambda m, t: m["metrics"][0]["parameters"].pop("p")),
    "p of null": ("quantised", metric(p=None)),
    "p below one": ("quantised", metric(p=0.5)),
    "p of a text": ("quantised", metric(p="2")),
    "p that is no number": ("quantised", metric(p=FLOATS["nan"])),
    "an infinite ratio": ("interpolated", tensor("ratio0", np.inf)),
    "ratios beyond any laws": ("interpolated", tensor("ratio0", 1e308)),
    "ratios of nan": ("interpolated", tensor("ratio1", np.nan)),
    "negative ratios": ("interpolated", tensor("ratio1", -1.0)),
    "ratios of nan on streets": ("streets", tensor("ratios", np.nan)),
    "ratios beyond any laws on streets": ("streets", tensor("ratios", 1e308)),
    "no pieces": ("streets", tensor("counts", 0)),
    "very many pieces": ("streets", tensor("counts", 2**62)),
    "a radius of nan": ("sparse", promise(radius=FLOATS["nan"])),
    "a radius of minus one": ("sparse", promise(radius=-1)),
    "a radius of zero": ("sparse", promise(radius=0)),
    "a radius in a list": ("sparse", promise(radius=[1])),
    "a radius of a text": ("sparse", promise(radius="2")),
    "an epsilon of nan": ("spherical-laplace", promise(epsilon=FLOATS["nan"])),
    "an infinite epsilon": ("spherical-laplace", promise(epsilon=FLOATS["inf"])),
    "an epsilon in a list": ("spherical-laplace", promise(epsilon=[10.0])),
    "a slack of nan": ("spherical-laplace", promise(slack=FLOATS["nan"])),
    "a promise for nothing": ("quantised", promise(basis="trust me")),
    "another unit": ("spherical-laplace", promise(unit="m")),
    "a metric that is not there": ("quantised", promise(metric=7)),
    "the first metric by a text": ("quantised", promise(metric="0")),
    "less noise than promised": ("spherical-laplace", body(epsilon=99.0)),
    "no noise at all": ("spherical-laplace", body(epsilon=FLOATS["inf"])),
    "a lattice that doubles cannot decide on": ("spherical-laplace", body(pitch=1e-13)),
    "a lattice finer than words carry": ("spherical-laplace", body(pitch=1e-14)),
    "a lattice larger than the Earth": ("spherical-laplace", body(pitch=1e300)),
    "a pitch of nan": ("spherical-laplace", body(pitch=FLOATS["nan"])),
    "a rate too small to divide by": ("spherical-laplace", body(epsilon=1e-320)),
    "a unit that is no length": ("spherical-laplace", metric(unit="parsec")),
    "points of nan": ("quantised", tensor("inputs.points", np.nan)),
    "points all alike": ("quantised", tensor("inputs.points", 1.0)),
    "a dimension of a billion": ("spherical-laplace", lambda m, t: m["spaces"][0].update(dimension=10**9)),
    "a metric within itself": ("product", itself),
    "metrics within metrics": ("quantised", deep),
    "curves within curves": ("quantised", curves),
    "a shape beyond all memory": ("sparse", lambda m, t: m["body"]["matrix"].update(shape=[2**26, 8])),
    "a side of zero": ("sparse", lambda m, t: m["body"]["matrix"].update(shape=[0, 4])),
    "counts of doubles": ("quantised", lambda m, t: t.update({"matrix.counts": t["matrix.counts"].astype(float)})),
    "columns out of order": ("quantised", lambda m, t: t.update({"matrix.columns": t["matrix.columns"][::-1].copy()})),
    "a prototype as a kind": ("quantised", lambda m, t: m.update(kind="constructor")),
    "a prototype as a metric": ("quantised", lambda m, t: m["metrics"][0].update(name="__proto__")),
    "a prototype as a tensor": ("quantised", body(matrix="toString")),
    "a part that promises nothing": ("product", lambda m, t: m["body"]["parts"][0]["guarantee"].update(basis="none")),
    "a product of less noise": ("product", lambda m, t: m["body"]["parts"][0]["body"].update(epsilon=100.0)),
    "a product that promises too much": ("product", promise(epsilon=0.5)),
    "a part that promises more": ("product", lambda m, t: m["body"]["parts"][1]["guarantee"].update(epsilon=0.01)),
    "a part for close pairs": ("product", lambda m, t: m["body"]["parts"][1]["guarantee"].update(radius=2.0)),
    "one street": ("streets", lambda m, t: t.update({"metric.edges": t["metric.edges"][:1]})),
    "a street to itself": ("streets", tensor("metric.edges", 1)),
    "more nodes than there are": ("streets", metric(nodes=2**52)),
    "points where a box belongs": ("interpolated", lambda m, t: m["body"].update(inputs=m["body"]["outputs"])),
    "a box where points belong": ("interpolated", lambda m, t: m["body"].update(outputs=m["body"]["inputs"])),
    "points where streets belong": ("streets", lambda m, t: m["body"].update(inputs=m["body"]["outputs"])),
    "streets along no street": ("streets", streets_by_roads),
    "roads along streets": ("streets", roads_by_streets),
}  # fmt: skip


def test_every_attack_on_the_reader_is_refused(tmp_path: Path) -> None:
    for number, (name, change) in enumerate(ATTACKS.values()):
        forge(tmp_path / f"{number:03}.mdp", name, change)
    found = outcomes(tmp_path)
    for number, name in enumerate(ATTACKS):
        answer = found[f"{number:03}.mdp"]
        assert answer["outcome"] == "refused", (name, answer)
        assert answer["milliseconds"] < 5000, (name, answer)
        assert len(answer["message"]) < 300, (name, answer)
        assert "checksum" not in answer["message"], (name, answer)


HOSTILE: list[Any] = [
    None, True, "", "0", -1, 0, 0.5, 2**53, 1e308, [], [None], {}, FLOATS["nan"], FLOATS["inf"], "__proto__", [[0]],
    1e-320,
]  # fmt: skip


def places(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """Every place of a manifest at which something can be put instead."""
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, below in items:
        if key not in ("sha256", "signature"):
            yield (*path, key)
            yield from places(below, (*path, key))


def put(manifest: dict[str, Any], path: tuple[Any, ...], value: Any) -> None:
    for key in path[:-1]:
        manifest = manifest[key]
    manifest[path[-1]] = value


def mutated(rng: np.random.Generator, manifest: dict[str, Any], tensors: dict[str, Any]) -> None:
    """Change one place of a manifest or one number of a tensor."""
    if not tensors or rng.random() < 0.75:
        found = list(places(manifest))
        put(manifest, found[rng.integers(len(found))], HOSTILE[rng.integers(len(HOSTILE))])
        return
    name = sorted(tensors)[rng.integers(len(tensors))]
    array = tensors[name]
    if array.dtype.kind == "f":
        with np.errstate(over="ignore"):  # infinite as a float of 32 bits
            array.flat[rng.integers(array.size)] = [np.nan, np.inf, -1.0, 1e308, 0.0][rng.integers(5)]
    else:
        array.flat[rng.integers(array.size)] = [0, np.iinfo(array.dtype).max, 1][rng.integers(3)]


def test_whatever_is_changed_in_a_file_nothing_hangs_and_python_refuses_no_more(
    every_kind: list[Path], tmp_path: Path
) -> None:
    """Random changes with a checksum that fits; what Python refuses for its form is refused here."""
    rng = np.random.default_rng(11)
    refused = {}
    for number in range(12 * len(every_kind)):
        path = tmp_path / f"{number:03}.mdp"
        shutil.copy(every_kind[number % len(every_kind)], path)
        rewritten(path, lambda manifest, tensors: mutated(rng, manifest, tensors))
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            try:
                inspect(path, verify=False)
            except CorruptFile as error:
                refused[path.name] = str(error)
    found = outcomes(tmp_path)
    assert {answer["outcome"] for answer in found.values()} == {"opened", "refused"}, [
        answer for answer in found.values() if answer["outcome"] not in ("opened", "refused")
    ]
    assert sum(answer["outcome"] == "refused" for answer in found.values()) > 150
    for name, reason in refused.items():
        assert found[name]["outcome"] == "refused", (name, reason)


WEAK = [*constants.WEAK_KEYS, *(key[:-2] + f"{int(key[-2:], 16) | 0x80:02x}" for key in constants.WEAK_KEYS),
        "edffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff7f", "ee" + "ff" * 30 + "7f"]  # fmt: skip


def test_keys_that_fit_every_signature_are_refused(tmp_path: Path) -> None:
    """With a public key of order one, R = the identity and S = 0 verify for every message."""
    for number, key in enumerate(WEAK):
        path = tmp_path / f"{number:02}.mdp"
        save(mdp.laplace(mdp.Haversine(), 10.0), path)
        for_all = {"algorithm": "ed25519", "public_key": key, "value": "01" + "00" * 31 + "00" * 31 + "00"}
        rewritten(path, lambda manifest, tensors, entry=for_all: manifest.update(signature=entry))
    for answer in outcomes(tmp_path).values():
        assert answer["outcome"] == "refused", answer
        assert "every signature fits" in answer["message"]


def test_the_runner_says_what_became_of_good_files_too() -> None:
    found = outcomes(PROJECT / "tests" / "data")
    assert {name for name, answer in found.items() if answer["outcome"] == "opened"} == {
        path.name for path in (PROJECT / "tests" / "data").glob("v*.mdp")
    }
    assert all(int(answer["message"].split()[0]) > 5 for answer in found.values() if answer["outcome"] == "opened")


def answers_of(tmp_path: Path, source: str, *options: str) -> subprocess.Popen[str]:
    """Start the watched reader with a module of our own in the place of the library, on one file."""
    program = node()
    if program is None:
        pytest.skip("Node 20 or newer is not installed (Debian: apt install nodejs)")
    (tmp_path / "files").mkdir()
    (tmp_path / "files" / "one.mdp").write_bytes(b"")
    (tmp_path / "library.mjs").write_text(f"export class MetricdpError extends Error {{}}\n{source}", encoding="utf-8")
    command = [program, str(PROJECT / "tests" / "js" / "forged.js"), str(tmp_path / "files")]
    return subprocess.Popen(
        [*command, "--module", str(tmp_path / "library.mjs"), *options], stdout=subprocess.PIPE, text=True
    )


@pytest.mark.parametrize(
    ("source", "said"),
    [
        ("export function open() { for (;;); }", "no answer in 0.5 s of processor time"),
        ("export function open() { return new Promise(() => {}); }", "asleep for 0.5 s without an answer"),
    ],
    ids=["works for ever", "sleeps for ever"],
)
def test_a_reader_that_never_answers_has_hung(tmp_path: Path, source: str, said: str) -> None:
    process = answers_of(tmp_path, source, "--seconds", "0.5", "--asleep", "0.5")
    answer = json.loads(process.communicate(timeout=60)[0])
    assert (answer["outcome"], answer["message"]) == ("hang", said)
    assert process.returncode == 1


def test_a_reader_that_gets_no_processor_has_not_hung(tmp_path: Path) -> None:
    begun = tmp_path / "begun"
    source = f"""
        import {{ writeFileSync }} from "node:fs";
        export function open() {{
          writeFileSync({json.dumps(str(begun))}, "");
          Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 500); // the thread has not given back control
          throw new MetricdpError("refused");
        }}"""
    process = answers_of(tmp_path, source, "--seconds", "2")
    while not begun.exists():
        time.sleep(0.005)
    process.send_signal(signal.SIGSTOP)  # as on a machine whose processors are taken
    time.sleep(2.5)
    process.send_signal(signal.SIGCONT)
    assert json.loads(process.communicate(timeout=60)[0])["outcome"] == "refused"
