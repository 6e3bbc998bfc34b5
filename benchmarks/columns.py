"""Four ways to one optimum on roads: columns (Dantzig-Wolfe), blocks (Benders), the whole program by two solvers.

    python benchmarks/columns.py --record
    python benchmarks/columns.py --only 100          # one size
    python benchmarks/columns.py --again             # not only what was not recorded since --since

Qiu et al. (2020) solve 300 to 400 places of a road network by columns. Every way gets the same problem and the same gap
of 1 %, without a limit of time; seconds of processor are counted, of all threads together, so that other work on the
machine does not decide. A run that was stopped goes on where it was.
"""

from __future__ import annotations

import datetime
import json
import time
from collections.abc import Callable

from record import RESULTS, arguments, recorder

import metricdp as mdp
from metricdp.mechanisms import MatrixMechanism
from metricdp.solvers.backends.first_order import FirstOrder
from metricdp.solvers.backends.interior import Interior
from metricdp_papers.columns import dantzig_wolfe

EPSILON, GAP = 10.0, 0.01
SIZES = (100, 200, 300, 400)
WAYS: dict[str, Callable[[mdp.Problem], MatrixMechanism]] = {
    "whole program, interior point": lambda p: mdp.optimal(p, gap=GAP, solver=Interior()),
    "whole program, first order": lambda p: mdp.optimal(p, gap=GAP, solver=FirstOrder()),
    "Benders": lambda p: mdp.decomposed(p, blocks=3, gap=GAP),
    "Dantzig-Wolfe": lambda p: dantzig_wolfe(p, gap=GAP),
}


def recorded(since: str) -> set[tuple[int, str]]:
    """Return the sizes and ways that were recorded since a day."""
    path = RESULTS / "scales.jsonl"
    lines = map(json.loads, path.read_text(encoding="utf-8").splitlines() if path.is_file() else ())
    kept = (line["values"] for line in lines if line["date"] >= since and line["values"].get("ways") == len(WAYS))
    return {(one["size"], one["how"]) for one in kept if "how" in one}


def main() -> None:
    """Solve the same problems every way, to the same gap."""
    parser = arguments(__doc__)
    parser.add_argument("--only", type=int, nargs="*", default=SIZES)
    parser.add_argument("--since", default=datetime.date.today().isoformat(), help="what is newer is not run again")
    parser.add_argument("--again", action="store_true", help="run all of it")
    chosen = parser.parse_args()
    keep = recorder(chosen.record)
    done = set() if chosen.again else recorded(chosen.since)
    compile_first = mdp.Problem(mdp.road_network("rome", nodes=30), EPSILON)
    for build in WAYS.values():
        build(compile_first)  # what is compiled at first use is not counted
    for size in chosen.only:
        problem = mdp.Problem(mdp.road_network("rome", nodes=size), EPSILON)
        assert len(problem.inputs.distances) == size  # computed once, counted for none
        for name, build in WAYS.items():
            if (size, name) in done:
                continue
            started, worked = time.perf_counter(), time.process_time()
            found = build(problem).certificate
            seconds, work = time.perf_counter() - started, time.process_time() - worked
            words = (
                f"gap {found.gap:.2%} in {work:.3g} s of processor: loss {found.loss:.6g} km, none below "
                f"{found.lower_bound:.6g} km"
            )
            values = {"size": size, "how": name, "loss": found.loss, "bound": found.lower_bound, "gap": found.gap}
            values |= {"work": work, "seconds": seconds, "ways": len(WAYS), "method": found.method}
            keep("scales", f"Rome, {size} crossings, epsilon 10/km, {name}", measured=words, asked="gap 1%", **values)
            print(size, name, words, found.method, flush=True)


if __name__ == "__main__":
    main()
