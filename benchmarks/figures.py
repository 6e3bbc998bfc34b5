"""Write docs/figures.md from the newest line of every figure in benchmarks/results.

python benchmarks/figures.py            # write the page
python benchmarks/figures.py --check    # say whether it is up to date
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

PROJECT = Path(__file__).parents[1]
RESULTS, PAGE = PROJECT / "benchmarks" / "results", PROJECT / "docs" / "figures.md"
HEAD = """# Figures

Measured on two cores with the pinned versions of `constraints.txt`, unless a row says otherwise. This page is written
by `python benchmarks/figures.py` from `benchmarks/results/*.jsonl`, where every measurement has a line of its own with
the machine it was made on; a row shows the newest. "Load" is how many processes wanted a core when the measurement
ended: two means both were busy. Rows without a load were measured before machines were recorded.
"""
TITLES = {
    "first": "First things",
    "optimal": "The optimal engine",
    "cities": "Whole cities",
    "noise": "Exact noise",
    "interpolated": "Interpolated mechanisms",
    "kernels": "Whole vocabularies",
    "policies": "Policies and pruning",
    "tables": "Tables",
    "texts": "Texts",
    "vectors": "Vectors",
    "retrieval": "Retrieval with protected queries",
    "recognition": "Who is recognised",
    "shapes": "Noise with a shape",
    "concentrated": "Concentrated guarantees",
    "ledger": "The ledger",
    "devices": "Files for devices",
    "contextual": "Context",
    "decoding": "Decoding",
    "traces": "Traces",
    "decomposed": "Decomposition",
    "betting": "Auditing a black box",
    "service": "The service",
    "attacks": "Attacks",
}
BEFORE = {
    "optimal": "Uniform prior, Euclidean loss and metric, epsilon 1 per cell unless said, all pairs audited exactly; "
    "see [how the optimum is found](explanation/optimality.md). `benchmarks/optimal.py` measures grids and "
    "`benchmarks/constopt.py` ConstOPT on words. Rows whose date has no day were measured before "
    "scripts kept their figures, and stay until they are measured again.",
    "cities": "`benchmarks/cities.py` and `benchmarks/borders.py`: loss = distance, uniform prior; the gap is that of "
    "the audited distribution to a bound for all mechanisms that report its places. The rest is in "
    "[whole cities](how-to/cities.md).",
    "noise": "`benchmarks/noise.py`: spherical Laplace noise of 10 per km unless said; plain doubles are what was "
    "drawn before. Why it is exact is in [noise that is exact](explanation/exact_noise.md).",
    "interpolated": "The rest is in [secrets anywhere](../papers/docs/aipo.md).",
    "kernels": "`benchmarks/kernels.py`; what is proven is in [kernels](explanation/exact_noise.md). "
    "Random vocabularies are judged by "
    "their whole table in brute force.",
    "traces": "`benchmarks/traces.py`; the tables are on the page about [traces](how-to/trajectories.md).",
    "policies": "`benchmarks/policies.py`: random places, [policies](how-to/policies.md) and "
    "[pruned reports](how-to/policies.md), every distribution audited exactly; shares are above the engine's lower "
    "bound of the same problem. `benchmarks/corgi.py`: pruning as CORGI publishes it, beside ours.",
    "tables": '`benchmarks/tables.py`; "processor" counts all threads and children.',
    "vectors": "`benchmarks/vectors.py`: unit vectors of 300 coordinates, epsilon 50; what it means is in "
    "[protect embeddings](how-to/embeddings.md).",
    "retrieval": "`benchmarks/retrieval.py`: ten nearest on the unit sphere, clean and protected queries; one "
    "guarantee in the l_2 distance for all rows but those of an epsilon per radian. The picture is in "
    "[protect embeddings](how-to/embeddings.md).",
    "recognition": "`benchmarks/recognition.py`: the better of three classifiers, for the task and who it was; what "
    "it means is in [images and series](how-to/embeddings.md).",
    "shapes": "`benchmarks/shapes.py`: 1,000 random settings each; distributions and bounds are in "
    "[ellipses, hyperbolic space, documents](explanation/families.md).",
    "concentrated": "`benchmarks/concentrated.py`: approximate guarantees, and bounds of those and of no pure ones; "
    "see [Gaussian noise](explanation/families.md).",
    "ledger": "`benchmarks/ledger.py` and `benchmarks/kills.py`; what is guaranteed is in "
    "[keep a budget over time](how-to/budget.md).",
    "devices": "`benchmarks/devices.py`, an exponential and a tight mechanism of 1,000 x 1,000; "
    "`benchmarks/noise_devices.py`, every distribution of noise in JavaScript beside Python.",
    "contextual": "`benchmarks/contextual.py` and `benchmarks/independence.py`; the rest is in "
    "[context](../papers/docs/contextual.md).",
    "decoding": "`benchmarks/decoding.py`: 95 % intervals over 1,000 tables, secrets and noise drawn anew, a third of "
    "the cells empty and a third small; what they cover is in [decoding](how-to/estimate.md). Lines of flows and of "
    "New York from before 2026-11-18 are of intervals that were made otherwise.",
    "decomposed": "`benchmarks/rounds.py`; the rest is in [decomposition](../papers/docs/benders.md).",
    "betting": "`benchmarks/betting.py`. Noise is rounded to a public lattice. Defects are re-implementations from "
    "descriptions, not the code of the package. The same samplers are put to the test that was used before, and to a "
    "classifier whose best event is counted (the scheme of DP-Sniper, written again: of the public testers StatDP and "
    "DP-Auditorium neither is on the package index). See [auditing a black box](explanation/black_box_audits.md).",
    "service": "`benchmarks/service.py` on two cores that also run the clients and, where it is named, PostgreSQL. "
    "Other work wanted the same cores (see the load), so rates, paces and batches were run before it (nice -10). "
    "Sizing: [run it as a service](how-to/service.md).",
    "attacks": "Each is a script in `benchmarks/` that anyone can run again, longer; a short version is in the check.",
}


def newest(path: Path) -> list[dict[str, Any]]:
    """Return the last line of every `what`, in the order in which they first appeared."""
    found: dict[str, dict[str, Any]] = {}
    for line in path.read_text(encoding="utf-8").splitlines():
        entry = json.loads(line)
        found[entry["what"]] = entry
    return list(found.values())


def table(rows: list[dict[str, Any]]) -> str:
    """Return the rows as Markdown."""
    lines = ["| what | asked | measured | when, load |", "| --- | --- | --- | --- |"]
    for row in rows:
        load = row.get("machine", {}).get("load")
        when = row.get("date", "") + ("" if load is None else f", {load:g}")
        cells = [
            row["what"],
            row["asked"],
            row["measured"].replace("no mechanism below", "none with these reports below"),
            when,
        ]
        lines.append("| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |")
    return "\n".join(lines)


def page() -> str:
    """Return the whole page."""
    names = [*TITLES, *sorted(path.stem for path in RESULTS.glob("*.jsonl") if path.stem not in TITLES)]
    parts = [HEAD]
    for name in names:
        path = RESULTS / f"{name}.jsonl"
        if path.is_file():
            parts.append(f"## {TITLES.get(name, name.replace('_', ' ').capitalize())}\n")
            parts += [BEFORE[name] + "\n"] if name in BEFORE else []
            parts.append(table(newest(path)) + "\n")
    return "\n".join(parts)


if __name__ == "__main__":
    if "--check" in sys.argv[1:]:
        sys.exit(0 if PAGE.read_text(encoding="utf-8") == page() else "docs/figures.md is out of date")
    PAGE.write_text(page(), encoding="utf-8")
