"""Columns against blocks and the whole program: Dantzig-Wolfe at 300 and 400 crossings of Rome, as published.

python benchmarks/columns.py --record
python benchmarks/columns.py --only 100          # one size
"""

from __future__ import annotations

import time

from record import arguments, recorder

import metricdp as mdp

EPSILON, GAP, SECONDS = 10.0, 0.01, 900.0
SIZES = (100, 200, 300, 400)


def main() -> None:
    """Solve the same problems three ways, to the same gap."""
    parser = arguments(__doc__)
    parser.add_argument("--only", type=int, nargs="*", default=SIZES)
    chosen = parser.parse_args()
    keep = recorder(chosen.record)
    for size in chosen.only:
        problem = mdp.Problem(mdp.road_network("rome", nodes=size), EPSILON)
        for name, build in (
            ("Dantzig-Wolfe", lambda p: mdp.dantzig_wolfe(p, gap=GAP, seconds=SECONDS)),
            ("Benders", lambda p: mdp.decomposed(p, blocks=3, gap=GAP, seconds=SECONDS)),
            ("whole program", lambda p: mdp.optimal(p, gap=GAP, seconds=SECONDS)),
        ):
            started, worked = time.perf_counter(), time.process_time()
            found = build(problem).certificate
            seconds, work = time.perf_counter() - started, time.process_time() - worked
            words = (
                f"gap {found.gap:.2%} in {seconds:.0f} s ({work:.0f} s of one core): loss {found.loss:.6g} km, none "
                f"below {found.lower_bound:.6g} km"
            )
            values = {"size": size, "how": name, "loss": found.loss, "bound": found.lower_bound, "work": work}
            keep("scales", f"Rome, {size} crossings, epsilon 10/km, {name}", measured=words, asked="gap 1%", **values)
            print(size, name, words, found.method, flush=True)


if __name__ == "__main__":
    main()
