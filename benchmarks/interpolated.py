"""Measure what interpolated mechanisms must achieve: promise, loss, time.

python benchmarks/interpolated.py box       12 x 12 km, 625 points, 9 reports, 2 losses, 4 seeds, 8 x 8 cells
python benchmarks/interpolated.py promise   10^6 random and 10^5 adversarial pairs, p in 1, 1.5, 2, inf, dimension 1-3
python benchmarks/interpolated.py rome      whole Rome, 20 reports (needs the road data, see METRICDP_DATA)
python benchmarks/interpolated.py time      300 anchors x 20 reports, a million draws, 992 anchors x 100 reports

Without a name all four; with --record the figures are kept.
"""

from __future__ import annotations

import time

import numpy as np
from record import Recorder, arguments, recorder

import metricdp as mdp
from metricdp.auditing.bounds import block_lower_bound
from metricdp.auditing.densities import continuous_violations
from metricdp_papers.aipo.cases import LOSS, Size, compared

RULES = ("log", "exact", "direction")


def box(keep: Recorder) -> None:
    """Print the excess over the block lower bound, the range over 8 instances."""
    side = np.linspace(0, 12, 25)
    points = np.stack(np.meshgrid(side, side, indexing="ij"), axis=-1).reshape(-1, 2)
    domain = mdp.Box([0, 0], [12, 12], mdp.Lp(2))
    for epsilon in (0.2, 0.4, 0.8, 1.6):
        excess: dict[str, list[float]] = {rule: [] for rule in RULES}
        spent: dict[str, list[float]] = {rule: [] for rule in RULES}
        for seed in range(4):
            rng = np.random.default_rng(seed)
            reports, goals = rng.random((9, 2)) * 12, rng.random((10, 2)) * 12
            prior = rng.random(625)
            prior /= prior.sum()
            apart = np.linalg.norm(points[:, None] - reports[None], axis=2)
            trips = np.linalg.norm(points[:, None] - goals[None], axis=2)
            ends = np.linalg.norm(reports[:, None] - goals[None], axis=2)
            for losses in (apart, np.abs(trips[:, None] - ends[None]).mean(axis=2)):
                lower = block_lower_bound(points, losses, domain.metric, epsilon, prior=prior, blocks=1)
                for rule in RULES:
                    started = time.process_time()
                    made = mdp.interpolated(
                        domain, mdp.FiniteSpace(reports, mdp.Lp(2)), epsilon, loss=(points, losses), prior=prior,
                        anchors=(8, 8), rule=rule, bound=False,
                    )  # fmt: skip
                    spent[rule].append(time.process_time() - started)
                    excess[rule].append(100 * (made.certificate.loss / lower - 1))
        text = ", ".join(
            f"{rule} {min(excess[rule]):.1f}-{max(excess[rule]):.1f} % ({np.mean(spent[rule]):.1f} s)" for rule in RULES
        )
        ordered = all(d <= e * 1.002 < a for a, e, d in zip(*(excess[rule] for rule in RULES), strict=True))
        print(f"epsilon {epsilon}: {text}; in order in every case: {ordered}", flush=True)
        keep(
            "interpolated",
            f"excess over the proven bound, 12 x 12 km, 625 points, 9 reports, 8 x 8 cells, epsilon {epsilon}",
            asked="direction below exact below log in every case",
            measured=f"{text}; {'so it is' if ordered else 'NOT so'} (8 instances, mean processor s)",
            excess=excess,
        )


def promise(keep: Recorder) -> None:
    """Print the worst ratio over epsilon that pairs reach, and the proven one."""
    rng = np.random.default_rng(0)
    shares, beyond = [], []
    for p in (1.0, 1.5, 2.0, np.inf):
        for n in (1, 2, 3):
            sides = np.array([4.0, 3.0, 2.0])[:n]
            domain = mdp.Box(np.zeros(n), sides, mdp.Lp(p))
            reports = mdp.FiniteSpace(rng.random((5, n)) * sides, mdp.Lp(p))
            for rule, budget in (("exact", None), ("direction", None), ("log", "half"), ("log", "certified")):
                made = mdp.interpolated(
                    domain, reports, 1.1, anchors=(4, 3, 2)[:n], rule=rule, budget=budget, split="even", bound=False
                )
                found = continuous_violations(made, pairs=1_000_000, adversarial=100_000)
                print(
                    f"p {p:g}, dimension {n}, {rule}{' ' + budget if budget else ''}: worst {found.worst:.9f}"
                    f", proven {made.certificate.epsilon / 1.1:.9f}, violations {found.share:g}", flush=True,
                )  # fmt: skip
                shares.append(found.share)
                beyond.append(found.worst - made.certificate.epsilon / 1.1)
    keep(
        "interpolated",
        f"10^6 random and 10^5 adversarial pairs, p in 1, 1.5, 2, inf, dimension 1 to 3, {len(shares)} cases",
        asked="no violation",
        measured=f"{sum(share > 0 for share in shares)} cases with a violation; worst ratio less the proven one, in "
        f"epsilons: at most {max(beyond):.1e}",
    )


def rome(keep: Recorder) -> None:
    """Print the losses on the whole of Rome, published cells; `metricdp reproduce aipo --full` has all cities."""
    for epsilon in (0.2, 0.4, 0.8, 1.6):
        rows = compared("rome", 2.0, epsilon, 0, Size(places=200))
        losses: dict[str, float] = {}
        for row in rows:
            if row["measure"] == LOSS:
                for column in ("as_published", "corrected"):
                    if row.get(column) is not None:
                        losses[f"{row['method']} {column.replace('_', ' ')}"] = row[column]
        measured = ", ".join(f"{method} {loss:.3f}" for method, loss in losses.items())
        print(f"epsilon {epsilon}: {measured}", flush=True)
        keep("interpolated", f"whole Rome, 20 reports, epsilon {epsilon}: loss in km", measured=measured, **losses)


def speed(keep: Recorder) -> None:
    """Print design times and a million draws."""
    rng = np.random.default_rng(0)
    for cells, count in (((19, 14), 20), ((31, 30), 100)):
        domain = mdp.Box([0, 0], [48, 47], mdp.Lp(2))
        points, reports = rng.random((20_000, 2)) * [48, 47], rng.random((count, 2)) * [48, 47]
        losses = np.linalg.norm(points[:, None] - reports[None], axis=2)
        for split in ("even", None) if count == 20 else ("even",):
            wall, busy = time.perf_counter(), time.process_time()
            made = mdp.interpolated(
                domain,
                mdp.FiniteSpace(reports, mdp.Lp(2)),
                0.8,
                loss=(points, losses),
                anchors=cells,
                split=split,
                gap=3e-3,
            )
            wall, busy = time.perf_counter() - wall, time.process_time() - busy
            name = f"{(cells[0] + 1) * (cells[1] + 1)} anchors x {count} reports"
            print(
                f"{name}, split {split}: {wall:.1f} s, CPU {busy:.1f} s, "
                f"loss {made.certificate.loss:.4f}, bound {made.certificate.lower_bound:.4f}, {made.certificate.note}",
                flush=True,
            )
            keep(
                "interpolated",
                name if split else f"{name}, the split searched for",
                asked="10 s" if count == 20 else "2 minutes",
                measured=f"{wall:.1f} s, {busy:.1f} processor s",
                seconds=wall,
                processor_seconds=busy,
            )
        secrets = rng.random((1_000_000, 2)) * [48, 47]
        made.sample(secrets[:10])
        wall, busy = time.perf_counter(), time.process_time()
        made.sample(secrets)
        wall, busy = time.perf_counter() - wall, time.process_time() - busy
        print(f"a million draws: {wall:.2f} s, CPU {busy:.2f} s", flush=True)
        keep(
            "interpolated",
            "a million draws from an interpolated law" + ("" if count == 20 else f", {count} reports"),
            asked="1 s" if count == 20 else "",
            measured=f"{wall:.2f} s, {busy:.2f} processor s",
            seconds=wall,
            processor_seconds=busy,
        )


PARTS = {"box": box, "promise": promise, "rome": rome, "time": speed}


def main() -> None:
    parser = arguments(__doc__)
    parser.add_argument("parts", nargs="*", choices=PARTS)
    chosen = parser.parse_args()
    for name in chosen.parts or PARTS:
        print(f"== {name}", flush=True)
        PARTS[name](recorder(chosen.record))


if __name__ == "__main__":
    main()
