"""The JavaScript sources: one built file that is up to date, no dependency, and what both languages share."""

from __future__ import annotations

import hashlib
import json
import re
import shutil
import subprocess
from pathlib import Path

import pytest

import browsers
import metricdp as mdp
from metricdp import constants, messages, units
from metricdp.artifacts.storage import STORAGES
from metricdp.metrics import EARTH_RADIUS_KM

FOLDER = Path(__file__).parents[2] / "js"
SOURCES = sorted((FOLDER / "src").glob("*.js"))
BUILT = FOLDER / "dist" / "metricdp.js"
PUBLIC = {
    "ConcentratedGuarantee", "CorruptFile", "InvalidInput", "LocationTree", "Mechanism", "MetricdpError", "NotPure",
    "OutOfDomain", "Trace", "Unsupported", "haversine", "open", "openTree", "planDay", "protectGeolocation",
    "showDistance",
}  # fmt: skip


def node(*arguments: str | Path, folder: Path = FOLDER) -> subprocess.CompletedProcess[str]:
    program = browsers.node()
    if program is None:
        pytest.skip("Node 20 or newer is not installed (Debian: apt install nodejs)")
    return subprocess.run(
        [program, *map(str, arguments)], cwd=folder, capture_output=True, text=True, timeout=100, check=False
    )


def tool(name: str) -> Path:
    path = FOLDER / "node_modules" / ".bin" / name
    if not path.exists():
        pytest.skip(f"{name} is not installed (npm ci in js/)")
    return path


def test_the_built_file_is_what_the_sources_make() -> None:
    done = node("build.js", "--check")
    assert done.returncode == 0, done.stderr


def test_the_built_file_exports_what_is_public_and_nothing_else(tmp_path: Path) -> None:
    shutil.copy(BUILT, tmp_path / "metricdp.mjs")  # alone: one file to copy
    done = node("--eval", "import('./metricdp.mjs').then((m) => console.log(Object.keys(m).join()))", folder=tmp_path)
    assert set(done.stdout.strip().split(",")) == PUBLIC, done.stderr
    text = BUILT.read_text(encoding="utf-8")
    assert not re.search(r"^import\b|\bfrom \"", text, re.MULTILINE)
    assert re.findall(r"\bimport\(\"(.+?)\"\)", text) == ["node:fs/promises"]  # for paths in Node


def test_types_were_made_from_these_comments_and_name_everything() -> None:
    types = (FOLDER / "dist" / "metricdp.d.ts").read_text(encoding="utf-8")
    documented = re.findall(r"^ */\*\*[\s\S]*?\*/\n.*$", BUILT.read_text(encoding="utf-8"), re.MULTILINE)
    assert hashlib.sha256("\n".join(documented).encode()).hexdigest() in types.splitlines()[0]
    assert set(re.findall(r"^export (?:declare )?(?:class|function) (\w+)", types, re.MULTILINE)) == PUBLIC
    methods = set(
        re.findall(r"^  (?:get )?(\w+)\(.*\) \{$", (FOLDER / "src" / "mechanism.js").read_text(), re.MULTILINE)
    )
    mechanism = types[types.index("export class Mechanism") :]
    for method in methods - {"constructor"}:
        assert re.search(rf"^    (?:get )?{method}\(", mechanism, re.MULTILINE), method


def test_types_are_what_typescript_makes(tmp_path: Path) -> None:
    done = node(tool("tsc"), "--project", "tsconfig.json", "--outDir", tmp_path)
    assert done.returncode == 0, done.stdout
    _, _, made = (FOLDER / "dist" / "metricdp.d.ts").read_text(encoding="utf-8").partition("\n")
    assert (tmp_path / "metricdp.d.ts").read_text(encoding="utf-8") == made


def test_the_linter_finds_nothing() -> None:
    config = FOLDER / "eslint.config.js"
    done = node(tool("eslint"), "--config", config, "js/src", "js/build.js", "tests/js", folder=FOLDER.parent)
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.parametrize("path", [*SOURCES, BUILT, FOLDER / "build.js"], ids=lambda path: path.name)
def test_every_file_is_javascript(path: Path) -> None:
    done = node("--check", path)
    assert done.returncode == 0, done.stderr


def test_sources_are_short_and_tidy() -> None:
    for path in SOURCES:
        text = path.read_text(encoding="utf-8")
        lines = text.splitlines()
        assert len(lines) < 400, path
        assert text.endswith("\n"), path
        assert not any(line != line.rstrip() or "\t" in line for line in lines), path
        assert not re.search(r"\b(?:var|eval|debugger|TODO|FIXME)\b|==(?!=)(?<!===)(?<!!==)", text), path
        if path.name not in ("index.js", "constants.js"):
            for names in re.findall(r'^import \{([^}]*)\} from "\./[\w-]+\.js";$', text, re.MULTILINE):
                for name in map(str.strip, names.split(",")):
                    assert len(re.findall(rf"(?<![\w.]){name}\b", text)) > 1, f"{path.name} imports {name} for nothing"


def test_only_the_systems_randomness_is_used() -> None:
    for source in [*SOURCES, BUILT, FOLDER / "example" / "index.html"]:
        text = source.read_text(encoding="utf-8")
        assert not re.search(r"Math\s*(\.|\[.{0,3})\s*random", text), source
    assert BUILT.read_text(encoding="utf-8").count("getRandomValues(") == 1


def test_the_package_names_files_that_are_there_and_needs_no_other() -> None:
    package = json.loads((FOLDER / "package.json").read_text(encoding="utf-8"))
    assert not {"dependencies", "peerDependencies", "optionalDependencies"} & set(package)
    for name in package["files"]:
        assert (FOLDER / name).exists(), name
    for entry in package["exports"].values():
        for target in entry.values() if isinstance(entry, dict) else [entry]:
            assert (FOLDER / target).is_file(), target


def test_both_languages_share_one_file_of_constants() -> None:
    found = (FOLDER / "src" / "constants.js").read_text(encoding="utf-8")
    texts = re.search(r"CONSTANTS = (\{.*?\n\});\n\nexport const MESSAGES = (\{.*\n\});\n", found, re.DOTALL)
    assert texts is not None
    place = Path(messages.__file__).parents[1]
    shared, sentences = (json.loads((place / name).read_text()) for name in ("constants.json", "messages.json"))
    assert json.loads(texts[1]) == shared
    baked = json.loads(texts[2])
    assert baked == {name: sentences[name] for name in baked}
    assert constants.STORAGES == STORAGES
    assert (constants.EARTH_RADIUS_KM, constants.METRES) == (EARTH_RADIUS_KM, units.METRES)


def test_numbers_that_are_shared_stand_nowhere_else_in_javascript() -> None:
    for path in SOURCES:
        if path.name != "constants.js":
            text = path.read_text(encoding="utf-8")
            assert not re.search(r"6371|1609|0\.3048|2 \*\* 51|2 \*\* 29|metricdp-mechanism", text), path


def test_the_list_of_weak_keys_is_every_point_of_small_order() -> None:
    """On -x^2 + y^2 = 1 + d x^2 y^2 the points of orders 1, 2, 4 and 8 have five different y: L times any point."""
    prime = 2**255 - 19
    d = -121665 * pow(121666, -1, prime) % prime
    order = 2**252 + 27742317777372353535851937790883648493

    def add(a: tuple[int, int], b: tuple[int, int]) -> tuple[int, int]:
        k = d * a[0] * b[0] * a[1] * b[1] % prime
        x = (a[0] * b[1] + b[0] * a[1]) * pow(1 + k, -1, prime) % prime
        return x, (a[1] * b[1] + a[0] * b[0]) * pow(1 - k, -1, prime) % prime

    def times(count: int, point: tuple[int, int]) -> tuple[int, int]:
        result = (0, 1)
        while count:
            if count & 1:
                result = add(result, point)
            point, count = add(point, point), count >> 1
        return result

    found = set()
    for y in range(2, 60):
        square = (y * y - 1) * pow(d * y * y + 1, -1, prime) % prime
        x = pow(square, (prime + 3) // 8, prime)
        x = x if (x * x - square) % prime == 0 else x * pow(2, (prime - 1) // 4, prime) % prime
        if (x * x - square) % prime == 0:
            found.add(times(order, (x, y))[1])
    assert sorted(y.to_bytes(32, "little").hex() for y in found) == sorted(constants.WEAK_KEYS)


def test_the_first_example_of_the_readme_runs_as_it_stands(tmp_path: Path) -> None:
    private, _ = mdp.artifacts.create_keys(tmp_path / "me")
    crossings = mdp.FiniteSpace([[41.9, 12.501], [41.91, 12.51], [41.92, 12.49]], mdp.Haversine())
    mdp.save(mdp.exponential(crossings, 10.0), tmp_path / "rome.mdp", key=private)
    example = (FOLDER / "README.md").read_text().split("```js\n")[1].split("```")[0]
    script = tmp_path / "example.mjs"
    script.write_text(example.replace('"metricdp"', f'"{BUILT.as_uri()}"') + "\nconsole.log(JSON.stringify(point));\n")
    done = node(script, folder=tmp_path)
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout.splitlines()[-1]) in crossings.points.tolist()
