"""The public surface: exactly these names, reachable as the pages say, and each thing declared once."""

import importlib
import importlib.util
import re
import subprocess
import sys
from pathlib import Path

import pytest

import metricdp as mdp
from metricdp.cli import app
from metricdp.design import BUILDERS, Builder
from metricdp.errors import InvalidInput
from metricdp.metrics import METRICS
from metricdp.registry import NameRegistry

PROJECT = Path(__file__).parents[1]
NAMES = [
    "Angular",
    "AuditReport",
    "Box",
    "Certificate",
    "Disclosure",
    "FiniteSpace",
    "Frechet",
    "Guarantee",
    "Hamming",
    "Haversine",
    "Hyperbolic",
    "Job",
    "Levenshtein",
    "Lp",
    "Mahalanobis",
    "Mechanism",
    "Metric",
    "MetricdpError",
    "People",
    "Precomputed",
    "Problem",
    "Reading",
    "ShortestPath",
    "Summary",
    "Temporal",
    "Wasserstein",
    "Weighted",
    "WordMovers",
    "accuracy_radius",
    "adversary_error",
    "artifacts",
    "audit",
    "audit_sampler",
    "audit_samples",
    "auditing",
    "compare",
    "constopt",
    "contextual",
    "decomposed",
    "design",
    "dictionary",
    "elastic",
    "epsilon_at",
    "epsilon_for",
    "errors",
    "estimate_density",
    "estimate_flows",
    "estimation",
    "expected_loss",
    "exponential",
    "from_matrix",
    "gaussian",
    "grid",
    "hierarchical",
    "inspect",
    "interpolated",
    "laplace",
    "load",
    "madlib",
    "masked",
    "mechanisms",
    "metric",
    "metrics",
    "mobility",
    "optimal",
    "packing_lower_bound",
    "perturb",
    "places",
    "plots",
    "policy",
    "policy_graphs",
    "posterior_leakage",
    "problems",
    "product",
    "quantised",
    "remapped",
    "road_network",
    "save",
    "solvers",
    "spaces",
    "spanner",
    "specs",
    "tables",
    "text",
    "tight_constraints",
    "truncated_exponential",
    "universal_lower_bound",
    "violation_ratio",
    "vocabulary",
    "von_mises_fisher",
    "weighted_exponential",
    "worst_loss",
]


def test_dir_shows_exactly_the_public_names():
    assert dir(mdp) == sorted(NAMES)
    assert sorted(mdp.__all__) == sorted(NAMES)


def test_a_fresh_interpreter_knows_them_before_anything_is_imported():
    script = "import metricdp, sys; print(' '.join(dir(metricdp))); print('scipy' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    names, heavy = done.stdout.splitlines()
    assert names.split() == sorted(NAMES)
    assert heavy == "False"


def test_every_name_is_there():
    assert not [name for name in NAMES if getattr(mdp, name, None) is None]


def test_names_that_moved_warn_and_work():
    for name, home in mdp.HOMES.items():
        with pytest.warns(DeprecationWarning, match=rf"mdp\.{name} is called mdp\.{home}\.{name} now"):
            assert getattr(mdp, name) is getattr(getattr(mdp, home), name)
    with pytest.warns(DeprecationWarning, match="plots"):
        assert mdp.pictures is mdp.plots
    with pytest.warns(DeprecationWarning, match=r"mdp\.auditing\.concentrated_guarantee now"):
        assert mdp.concentrated is mdp.auditing.concentrated_guarantee
    for old, name in (("decoding", "estimate_density"), ("declarations", "Registry")):
        with pytest.warns(DeprecationWarning, match=f"metricdp.{old} is called"):
            getattr(importlib.import_module(f"metricdp.{old}"), name)


def test_what_is_not_there_says_so():
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        _ = mdp.nothing


def listed():
    """Yield (section, dotted target) of everything on the API page."""
    text = (PROJECT / "docs" / "api.md").read_text(encoding="utf-8")
    for section in re.split(r"^## ", text, flags=re.MULTILINE)[1:]:
        for entry in re.split(r"^::: ", section, flags=re.MULTILINE)[1:]:
            target = entry.split()[0]
            members = re.search(r"members: \[(.*?)\]", entry)
            for name in members[1].split(", ") if members else [""]:
                yield section, f"{target}.{name}".rstrip(".")


def test_the_api_page_says_how_each_name_is_reached():
    for section, target in listed():
        reach(section, target)


def reach(section, target):
    """Find what a line of the API page names in the way that its section says."""
    prefix = re.search(r"As `mdp\.(\w+)\.name`", section)
    if prefix:  # a whole module
        assert getattr(mdp, prefix[1]) is importlib.import_module(target)
        return
    module, name = target.rsplit(".", 1)
    if home := re.search(r"^From `(metricdp\.\w+)`", section, flags=re.MULTILINE):  # public, and not a name of mdp
        assert home[1] == module
        assert hasattr(importlib.import_module(module), name)
        return
    assert getattr(mdp, name) is getattr(importlib.import_module(module), name), target


def test_the_api_page_lists_every_public_name():
    targets = {target.rsplit(".", 1)[1] for _, target in listed()}
    assert set(NAMES) - targets - {"MetricdpError"} == set()


def test_pages_follow_the_declarations():
    spec = importlib.util.spec_from_file_location("pages", PROJECT / "tools" / "pages.py")
    pages = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(pages)
    found = 0
    for path in (page for pages_of in pages.PAGES for page in pages_of.rglob("*.md")):
        text = path.read_text(encoding="utf-8")
        found += len(pages.PART.findall(text))
        assert pages.written(text) == text, f"run `python tools/pages.py`: {path.name} is older than the declarations"
    assert found >= 2


def test_declarations_are_true():
    for builder in BUILDERS:
        assert callable(builder.function)
        assert getattr(mdp, builder.name) is builder.function
    _, _, offered = app.generate_docs().partition("## metricdp design")
    for builder in BUILDERS:
        assert all(f"`--{option}" in offered for option in builder.options), builder.name
    for metric in METRICS:
        assert getattr(mdp if metric.name in mdp.__all__ else mdp.metrics, metric.name) is metric.thing


def test_a_catalogue_refuses_what_would_confuse():
    catalogue = NameRegistry("builder", [Builder("one", print, "the first")])
    for bad in (Builder("one", print, "again"), Builder("two words", print, "x"), Builder("two", print, " ")):
        with pytest.raises(InvalidInput):
            catalogue.declare(bad)
    with pytest.raises(InvalidInput, match="unknown builder 'two': use one of one"):
        catalogue.named("two")
    assert catalogue.names == ("one",)
    assert len(catalogue) == 1
