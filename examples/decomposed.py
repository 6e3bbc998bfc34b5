"""Solve a mechanism block by block, leave the state in a file, and go on from it with a smaller gap."""

import numpy as np

import metricdp as mdp


def main() -> None:
    rng = np.random.default_rng(0)
    valley = np.stack([np.linspace(0, 9, 18), rng.uniform(0, 1, 18)], axis=1)  # eighteen villages along a road
    problem = mdp.Problem(mdp.FiniteSpace(valley, mdp.Lp(2)), 1.0)

    # Pairs up to 3.0 are constrained directly; what chains of them miss is measured and charged to epsilon.
    first = mdp.decomposed(problem, blocks=3, neighbours=3.0, gap=1e-2, checkpoint="valley.npz")
    print(f"loss {first.certificate.loss:.4f}, none with these reports below {first.certificate.lower_bound:.4f}")

    # The same run goes on where it stopped, its blocks now in processes: "ray:address" would use a cluster.
    second = mdp.decomposed(
        problem, blocks=3, neighbours=3.0, gap=1e-5, checkpoint="valley.npz", resume=True, executor="processes"
    )
    print(f"loss {second.certificate.loss:.4f}, none with these reports below {second.certificate.lower_bound:.4f}")
    print(second.certificate.note)


if __name__ == "__main__":  # processes start by importing this file
    main()
