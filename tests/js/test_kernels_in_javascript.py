"""Kernels in JavaScript: the ideal law, so that equal words give the reports of Python, whichever path decides."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import browsers
import metricdp as mdp
from instances import some_kernel
from metricdp.artifacts import save
from metricdp.mechanisms import kernel_rows
from metricdp.metrics import true_distance
from published import KERNELS, kernel_of

flint = pytest.importorskip("flint")
SIZE, DRAWS = 24, 30
METRICS: dict[str, tuple[Any, float]] = {
    "l2": (mdp.Lp(2), 2.0),
    "l1": (mdp.Lp(1), 1.0),
    "linf": (mdp.Lp(np.inf), 2.0),
    "angles": (mdp.Angular(), 3.0),
    "degrees": (mdp.Angular("deg"), 0.05),
}


class Given:
    """The words of one row, chosen by the test."""

    def __init__(self, words: list[int]) -> None:
        self._words = words

    def first(self, attempt: int, start: int, stop: int) -> np.ndarray:
        return np.array([self._words[:1]], dtype=np.uint64)

    def digits(self, row: int) -> Any:
        return lambda attempt, uniform, count: int("".join(f"{word:016x}" for word in self._words[:count]), 16)


@pytest.fixture(scope="module")
def node() -> Iterator[browsers.Engine]:
    if browsers.node() is None:
        pytest.skip("node is not installed (Debian: apt install nodejs)")
    with browsers.running("node") as running:
        yield running


def border(kernel: mdp.mechanisms.KernelMechanism, secret: int, place: int) -> int:
    """Return the first 128 bits of a number at which one report ends and the next begins."""
    order = [secret, *(k for k in range(SIZE) if k != secret)]
    with flint.ctx.workprec(400):
        terms = kernel.distribution.balls(secret, bits=400)
        share = sum((terms[k] for k in order[:place]), flint.arb(0)) / sum(terms, flint.arb(0))
        return int((share * flint.arb(2) ** 128).mid().floor().unique_fmpz())


@pytest.mark.parametrize("name", METRICS)
def test_equal_words_give_equal_reports(
    name: str, node: browsers.Engine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    metric, epsilon = METRICS[name]
    rng = np.random.default_rng(len(name))
    space = mdp.vocabulary([f"w{i}" for i in range(SIZE)], rng.normal(size=(SIZE, 5)), metric=metric)
    kernel: Any = mdp.weighted_exponential(space, epsilon, weights=np.linspace(1.0, 4.0, SIZE), form="kernel")
    draws, reports = [], []
    for number in range(DRAWS):
        words = [int(word) for word in rng.integers(0, 2**64, 5, dtype=np.uint64)]
        secret = int(rng.integers(SIZE))
        if number % 3 == 0:  # on the border by one word, or by two
            near = border(kernel, secret, int(rng.integers(1, SIZE)))
            words[: 1 + number % 2] = [near >> 64, near & (2**64 - 1)][: 1 + number % 2]
        words[0] = {1: 0, 2: 2**64 - 1}.get(number, words[0])
        monkeypatch.setattr(kernel_rows, "row_words", lambda source, width, words=words: Given(words))
        reports.append(int(kernel.sample([secret])[0]))
        draws.append({"secret": secret, "words": [[word >> 32, word & (2**32 - 1)] for word in words]})
    path = save(kernel, tmp_path / "kernel.mdp")
    assert node.ask("replay", file=node.offer(path), draws=draws) == reports
    assert len(set(reports)) > 5


@pytest.mark.parametrize("entry", KERNELS, ids=lambda entry: entry["name"])
def test_shared_words_give_their_reports(entry: dict[str, Any], node: browsers.Engine, tmp_path: Path) -> None:
    draws = [
        {"secret": draw["secret"], "words": [[int(word[:8], 16), int(word[8:], 16)] for word in draw["words"]]}
        for draw in entry["draws"]
    ]
    path = save(kernel_of(entry), tmp_path / "kernel.mdp")
    assert node.ask("replay", file=node.offer(path), draws=draws) == [draw["report"] for draw in entry["draws"]]


def test_distances_are_within_their_bounds_of_the_true_ones() -> None:
    """Doubles of JavaScript against the formulas in 200 bits."""
    source = browsers.PROJECT / "js" / "src"
    script = f"""const {{ trueDistances }} = await import("{(source / "distances.js").as_uri()}");
        const {{ Points }} = await import("{(source / "spaces.js").as_uri()}");
        answer = given.spaces.map(({{ data, shape, metric }}) => {{
          metric.measure = (a, b) => a.filter((value, k) => value !== b[k]).length;
          metric.parameters = {{ p: metric.p === "inf" ? Infinity : metric.p }};
          const points = new Points({{ data: typeof data[0] === "string" ? data : Float64Array.from(data), shape }});
          const found = trueDistances({{ metric, points }});
          const rows = Array.from({{ length: shape[0] }}, (_, i) => i);
          const away = rows.map((i) => rows.map((j) => found.measure(i, j)));
          return {{ away, relative: found.relative, absolute: found.absolute }};
        }});"""
    spaces = [kernel_of(entry).space for entry in KERNELS]
    described = [
        {
            "data": np.ravel(space.points).tolist(),
            "shape": list(np.shape(space.points)),
            "metric": {
                "name": type(space.metric).__name__,
                "unit": space.metric.unit,
                "p": "inf" if getattr(space.metric, "p", 0.0) == np.inf else getattr(space.metric, "p", 0.0),
                "covariance": np.ravel(getattr(space.metric, "covariance", [])).tolist(),
            },
        }
        for space in spaces
    ]
    found = browsers.in_node(script, spaces=described)
    with flint.ctx.workprec(200):
        for space, answer in zip(spaces, found, strict=True):
            for i, j in itertools.permutations(range(len(space)), 2):
                true = true_distance(space.metric, space.points[i], space.points[j])
                assert abs(flint.arb(answer["away"][i][j]) - true) <= answer["relative"] * true + answer["absolute"]


def test_vectors_elsewhere_are_said(node: browsers.Engine, tmp_path: Path) -> None:
    kernel = some_kernel()
    words, points = kernel.space.coordinates[:, 0], kernel.space.points.astype(np.float32)
    np.savez(tmp_path / "words.npz", words=words, vectors=points)
    path = save(kernel, tmp_path / "named.mdp", vectors=tmp_path / "words.npz")
    answer = node.ask("open", file=node.offer(path))
    assert answer["error"] == "Unsupported"
    assert "names its vectors instead of holding them" in answer["message"]


def test_a_kernel_steeper_than_its_promise_is_refused(node: browsers.Engine, tmp_path: Path) -> None:
    from forging import rewritten

    kernel = some_kernel()
    path = save(kernel, tmp_path / "steep.mdp")
    rewritten(path, lambda manifest, tensors: manifest["body"].update(inner=1.01 * kernel.guarantee.epsilon))
    assert node.ask("open", file=node.offer(path))["error"] == "CorruptFile"


def test_a_law_is_right_where_doubles_lose_a_distance(node: browsers.Engine, tmp_path: Path) -> None:
    space = mdp.FiniteSpace([[0.0, 0.0], [1e-200, 0.0], [3e-200, 1.0], [2.0, 1.0]], mdp.Lp(2))
    kernel = mdp.truncated_exponential(space, 1.0, form="kernel")
    file = node.offer(save(kernel, tmp_path / "near.mdp"))
    there = node.ask("laws", file=file, secrets=list(range(4)))
    np.testing.assert_allclose(there, kernel.rows(np.arange(4)), rtol=1e-9)
