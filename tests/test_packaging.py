"""What is shipped: the wheel, the pinned versions, the recipes."""

import re
import subprocess
import sys
import tomllib
import zipfile
from pathlib import Path

PROJECT = Path(__file__).parents[1]
NEEDS = tomllib.loads((PROJECT / "pyproject.toml").read_text(encoding="utf-8"))["project"]


def test_the_conda_recipe_needs_what_the_wheel_needs():
    recipe = (PROJECT / "packaging" / "conda" / "meta.yaml").read_text(encoding="utf-8")
    run = re.search(r"  run:\n((?:    - .*\n)+)", recipe)[1]
    needed = {line.strip("- ").replace(" ", "") for line in run.splitlines()}
    assert needed == {*NEEDS["dependencies"], f"python{NEEDS['requires-python']}"}
    assert f'version = "{NEEDS["version"]}"' in recipe


def test_pinned_versions_have_hashes_and_name_no_host():
    for path in PROJECT.glob("constraints*.txt"):
        text = path.read_text(encoding="utf-8")
        assert "://" not in text, path.name
        assert "--index" not in text, path.name
        pinned = re.split(r"^(?=[a-z])", text, flags=re.MULTILINE)[1:]
        assert pinned
        assert all("--hash=sha256:" in one for one in pinned), path.name


def test_the_wheel_holds_the_package_its_types_and_its_licences_only(tmp_path):
    build = [
        sys.executable,
        "-m",
        "pip",
        "wheel",
        str(PROJECT),
        "--no-deps",
        "--no-build-isolation",
        "-q",
        "-w",
        tmp_path,
    ]
    subprocess.run(build, check=True, capture_output=True)
    (wheel,) = tmp_path.glob("*.whl")
    names = zipfile.ZipFile(wheel).namelist()
    assert {name.split("/")[0].split("-")[0] for name in names} == {"metricdp"}
    for needed in ("metricdp/py.typed", "metricdp/__init__.pyi", "metricdp/data/ATTRIBUTION.md"):
        assert needed in names
    assert not [name for name in names if "test" in name.split("/")[1] or name.endswith((".pyc", ".key"))]
