"""Pruning on the device: the map of Python's `prune`, the same promise, and nothing of it told to anybody."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import metricdp as mdp
from browsers import in_node as ask
from instances import some_kernel, some_local
from metricdp.artifacts import inspect, save

RNG = np.random.default_rng(11)
PLACES = np.column_stack([41.1 + 0.05 * RNG.random(24), -8.65 + 0.07 * RNG.random(24)])  # no two distances are equal
AREAS = (PLACES[:, 0] > 41.125) * 2 + (PLACES[:, 1] > -8.615)
NAMES = ["Bonfim", "Cedofeita", "Campanha", "Paranhos"]


def best() -> Any:
    return mdp.exponential(mdp.FiniteSpace(PLACES, mdp.Haversine()), 1.5)


def written_tree(folder: Path) -> mdp.places.LocationTree:
    """A tree by hand: places, districts, two banks, with a file each."""
    banks = AREAS // 2
    tree = mdp.places.location_tree(mdp.FiniteSpace(PLACES, mdp.Haversine()), [AREAS, banks])
    places = best()
    files = {"places": places, "district": tree.coarsen(places, 1), "bank": tree.coarsen(places, 2)}
    levels: list[dict[str, Any]] = []
    for (name, mechanism), of, areas in zip(files.items(), tree.labels, (None, NAMES, ["south", "north"]), strict=True):
        path = save(mechanism, folder / f"{name}.mdp")
        levels.append({"name": name, "file": path.name, "sha256": inspect(path).sha256, "areas": areas})
        if areas is not None:
            away = [np.flatnonzero(np.all(place == PLACES, axis=1))[0] for place in mechanism.outputs.coordinates]
            levels[-1] |= {"of": of.tolist(), "middles": [int(code) for code in away]}
    said = {"format": "metricdp-tree", "version": 1, "places": len(PLACES), "levels": levels}
    (folder / "tree.json").write_text(json.dumps(said), encoding="utf-8")
    return tree


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("tree")
    written_tree(place)
    return place


@pytest.mark.parametrize("rule", ["cheapest", "nearest"])
def test_laws_are_those_that_python_prunes(folder: Path, rule: Any) -> None:
    """Row by row, also where something is pruned in two steps; and the audit finds the promise kept."""
    gone, more = [2, 3, 5, 7, 11, 13], [0, 17]
    script = """const m = await open(given.path);
        const laws = (one) => Array.from({ length: 24 }, (_, k) => Array.from(one.distribution(k)));
        const mine = m.prune(given.gone, { rule: given.rule });
        const less = mine.prune(given.more, { rule: given.rule });
        answer = [laws(mine), laws(less), mine.audit(), mine.guarantee, mine.reports];"""
    once, twice, judged, promise, reports = ask(
        script, path=str(folder / "places.mdp"), gone=gone, more=more, rule=rule
    )
    whole = mdp.load(folder / "places.mdp")
    tree = mdp.places.location_tree(whole.inputs, 1)
    pruned = tree.prune(whole, gone, rule=rule)
    assert np.allclose(once, pruned.matrix, rtol=1e-12, atol=1e-15)
    assert np.allclose(twice, tree.prune(pruned, [*gone, *more], rule=rule).matrix, rtol=1e-12, atol=1e-15)
    assert not np.any(np.array(once)[:, gone])
    assert not np.any(np.array(twice)[:, gone + more])
    assert judged["holds"]
    assert judged["epsilon"] <= whole.guarantee.epsilon * (1 + 1e-9)
    assert promise["epsilon"] == whole.guarantee.epsilon
    assert reports == 24


@pytest.mark.parametrize("kind", ["matrix", "local", "kernel"])
def test_a_draw_is_that_of_the_whole_mechanism_put_on_the_map(folder: Path, kind: str, tmp_path: Path) -> None:
    """The same words: a report that is kept stays, a pruned one becomes always the same. So the promise stays."""
    made = {"local": some_local, "kernel": some_kernel}
    path = folder / "places.mdp" if kind == "matrix" else save(made[kind](), tmp_path / "made.mdp")
    script = """const m = await open(given.path);
        const mine = m.prune(given.gone);
        const seeded = () => {
          let state = 1;
          const word = () => (state = Math.imul(state ^ (state >>> 15), 0x2c1b3c6d) + 0x9e3779b9 | 0) >>> 0;
          return { high: 0, low: 0, next() { [this.high, this.low] = [word(), word()]; } };
        };
        const drawn = (one, words) =>
          Array.from({ length: 3000 }, (_, k) => one.sample(k % one.secrets, { words }).code);
        answer = [drawn(m, seeded()), drawn(mine, seeded()), mine.distribution(1)];"""
    gone = [1, 2, 3]
    whole, mine, distribution = ask(script, path=str(path), gone=gone)
    pairs = {(k, t) for k, t in zip(whole, mine, strict=True)}
    assert all(k == t for k, t in pairs if k not in gone)
    assert {k for k, _ in pairs} >= set(gone)
    assert len(pairs) == len({k for k, _ in pairs})
    assert not {t for _, t in pairs} & set(gone)
    assert sum(distribution.values()) == pytest.approx(1)


def test_a_tree_gives_every_level_and_avoids_areas_of_it(folder: Path) -> None:
    script = """const tree = await openTree(given.path);
        const laws = (one) => Array.from({ length: 24 }, (_, k) => Array.from(one.distribution(k)));
        const exact = await tree.open("places", { avoid: { district: ["Bonfim"], places: [20] } });
        const coarse = await tree.open("district", { avoid: { district: ["Paranhos"] } });
        const file = await tree.open("bank");
        const levels = tree.levels.map(({ name, size, areas }) => [name, size, areas]);
        answer = [laws(exact), laws(coarse), file.reports, levels,
          tree.codes("bank", ["north"], { of: "district" }), coarse.sample([41.12, -8.62], { clamp: true }).code];"""
    exact, coarse, banks, levels, codes, drawn = ask(script, path=str(folder / "tree.json"))
    tree = mdp.places.location_tree(mdp.FiniteSpace(PLACES, mdp.Haversine()), [AREAS, AREAS // 2])
    gone = sorted({*np.flatnonzero(AREAS == 0).tolist(), 20})
    ours = tree.prune(mdp.load(folder / "places.mdp"), gone)
    assert np.allclose(exact, ours.matrix, rtol=1e-12, atol=1e-15)
    whole = mdp.load(folder / "district.mdp").matrix
    assert np.all(np.array(coarse)[:, 3] == 0)
    assert np.allclose(np.sum(coarse, axis=1), 1)
    assert np.all(np.array(coarse)[:, :3] >= whole[:, :3] - 1e-15)
    assert banks == 2
    assert levels == [["places", 24, None], ["district", 4, NAMES], ["bank", 2, ["south", "north"]]]
    assert codes == [2, 3]
    assert drawn in (0, 1, 2)


WRONG: dict[str, Any] = {
    "another format": lambda tree: tree.update(format="tree"),
    "a later version": lambda tree: tree.update(version=2),
    "a file elsewhere": lambda tree: tree["levels"][1].update(file="../district.mdp"),
    "a file at an address": lambda tree: tree["levels"][1].update(file="https:evil"),
    "another file": lambda tree: tree["levels"][1].update(file="bank.mdp"),
    "another checksum": lambda tree: tree["levels"][1].update(sha256="0" * 64),
    "a torn area": lambda tree: tree["levels"][2]["of"].__setitem__(0, 1 - tree["levels"][2]["of"][0]),
    "a middle outside": lambda tree: tree["levels"][1]["middles"].reverse(),
    "an area of no place": lambda tree: tree["levels"][1]["of"].__setitem__(0, 9),
    "two areas of one name": lambda tree: tree["levels"][1]["areas"].__setitem__(0, "Paranhos"),
    "too few places": lambda tree: tree["levels"][1]["of"].pop(),
    "two levels of one name": lambda tree: tree["levels"][2].update(name="district"),
    "more than is known": lambda tree: tree.update(more=1),
}


def test_trees_that_do_not_fit_are_refused(folder: Path) -> None:
    paths = {}
    for number, (what, change) in enumerate(WRONG.items()):
        said = json.loads((folder / "tree.json").read_text())
        change(said)
        paths[what] = str(folder / f"wrong{number}.json")
        Path(paths[what]).write_text(json.dumps(said))
    paths["no JSON"] = str(folder / "places.mdp")
    script = """answer = {};
        for (const [what, path] of Object.entries(given.paths)) {
          const opened = openTree(path).then((tree) => tree.open("district"));
          answer[what] = await opened.then(() => "opened", (error) => error.name);
        }"""
    assert ask(script, paths=paths) == dict.fromkeys(paths, "CorruptFile")


def test_what_cannot_be_pruned_is_refused_in_words_that_name_no_place(folder: Path, tmp_path: Path) -> None:
    calls = [
        "m.prune([])", "m.prune([24])", "m.prune([-1])", "m.prune([1.5])", "m.prune(['7'])", "m.prune([[7], [8]])",
        "m.prune((secret) => [7])", "m.prune({ 0: [7] })", "m.prune(new Map([[0, [7]]]))", "m.prune(7)",
        "m.prune(null)", "m.prune(Array.from({ length: 24 }, (_, k) => k))", "m.prune([7], { rule: 'renormalise' })",
        "m.prune([7], { rule: 'x' })",
        "tree.codes('district', ['Somewhere'])", "tree.codes('places', [77])", "tree.codes('nowhere', [7])",
        "tree.codes('places', [7], { of: 'district' })", "tree.codes('district', 'Bonfim')", "noise.prune([7])",
        "local.prune([7], { rule: 'cheapest' })",
    ]  # fmt: skip
    save(some_local(), tmp_path / "local.mdp")
    save(mdp.laplace(mdp.Haversine(), 1.0), tmp_path / "noise.mdp")
    script = f"""const m = await open(`${{given.folder}}/places.mdp`);
        const tree = await openTree(`${{given.folder}}/tree.json`);
        const [local, noise] = [await open(`${{given.other}}/local.mdp`), await open(`${{given.other}}/noise.mdp`)];
        const said = (call) => {{
          try {{ return ["taken", JSON.stringify(call())]; }} catch (error) {{ return [error.name, error.message]; }}
        }};
        answer = [{", ".join(f"() => {call}" for call in calls)}].map(said);"""
    for call, (name, said) in zip(calls, ask(script, folder=str(folder), other=str(tmp_path)), strict=True):
        assert name in ("InvalidInput", "Unsupported"), call
        assert not any(word in said for word in ("7", "24", "Somewhere", "Bonfim")), (call, said)
    alike = ask(
        "try { (await open(given.path)).prune(() => [7]); } catch (error) { answer = error.message; }",
        path=str(folder / "places.mdp"),
    )
    assert "a list that depends on the secret would reveal it" in alike


def test_nothing_of_what_was_pruned_is_handed_out(folder: Path) -> None:
    """An app behind a pruned geolocation sees reports that are kept, the accuracy of everybody, and nothing else.

    Within the window in which something is pruned its report stays: another one would tell what was pruned.
    """
    script = """const m = await open(given.path);
        const mine = m.prune(given.gone);
        const seen = [];
        const kept = new Map();
        const storage = { getItem: (k) => kept.get(k) ?? null, setItem: (k, v) => kept.set(k, v) };
        let clock = Date.UTC(2030, 0, 1, 12);
        const asked = async (one, [latitude, longitude]) => {
          const device = { getCurrentPosition: (success) => success({ coords: { latitude, longitude } }) };
          const options = { geolocation: device, storage, clamp: true, perDay: 1000, now: () => clock };
          const wrapped = protectGeolocation(one, options);
          return [(await new Promise((done) => wrapped.getCurrentPosition(done))).coords, wrapped.spent().reports];
        };
        for (const place of given.places) {
          const before = await asked(m, place);
          const within = await asked(mine, place);
          clock += 1_800_000;
          seen.push([before, within, await asked(mine, place)]);
          clock += 1_800_000;
          if (clock > Date.UTC(2030, 0, 1, 22)) { clock = Date.UTC(2030, 0, 1, 12); kept.clear(); }
        }
        const shown = (one) =>
          JSON.stringify([Object.keys(one), one.sha256, one.guarantee, one.explain(), one.accuracy(0.9), one.columns]);
        answer = { seen, same: shown(m) === shown(mine), certificate: mine.certificate, before: m.certificate };"""
    gone = list(range(12))
    found = ask(script, path=str(folder / "places.mdp"), gone=gone, places=PLACES.tolist() * 3)
    pruned = {tuple(PLACES[code]) for code in gone}
    seen = [
        [((one["latitude"], one["longitude"]), one["accuracy"], spent) for one, spent in row] for row in found["seen"]
    ]
    assert any(before[0] in pruned for before, _, _ in seen)
    for before, within, after in seen:
        assert within == before
        assert after[0] not in pruned
        assert after[1] == before[1] == seen[0][0][1]
    assert found["same"]
    assert found["certificate"]["loss"] is None
    assert found["certificate"]["lower_bound"] == found["before"]["lower_bound"]
    assert found["certificate"]["epsilon"] == found["before"]["epsilon"]
