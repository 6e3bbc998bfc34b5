"""Several mechanisms as one: independent parts of a secret, each protected on its own scale."""

from __future__ import annotations

import numpy as np

from metricdp.errors import InvalidInput, NotPrivate
from metricdp.mechanisms import Certificate, Guarantee, Mechanism, ProductMechanism, require_pure
from metricdp.mechanisms.kinds.product import parts_of, product_metric

WEIGHTED = (
    "mdp.product",
    "A product guarantees a sum of distances, and rho is about squares: protect each column under a guarantee of "
    "its own, or numbers all at once with mdp.gaussian under mdp.Mahalanobis",
)


def product(*mechanisms: Mechanism) -> ProductMechanism:
    """Join mechanisms that protect separate parts of one secret: a place, an hour and a word, for example.

    In tables the columns of the parts follow one another: `mdp.perturb(frame, mdp.product(place, hour),
    columns=["lat", "lon", "hour"])`.

    Guarantee: the loss between two secrets is at most sum_i epsilon_i d_i(x_i, x'_i) (plus the slacks): epsilon 1 in
    the metric `Weighted` with the parts' epsilons as weights. It holds whether the parts of a secret are independent or
    not; what one part tells about another is not protected beyond the part's own guarantee.

    The certificate counts the parts' losses times their epsilons. Its lower bound is the sum of the parts': fixing all
    parts but one turns any mechanism with the joint guarantee into one with that part's guarantee.
    """
    if len(mechanisms) < 2 or not all(isinstance(part, Mechanism) for part in mechanisms):
        raise InvalidInput("`product` takes two or more mechanisms, such as mdp.product(place, hour).")
    for part in mechanisms:
        if len(parts_of(part)) > 1:
            raise InvalidInput("a part of a product cannot be a product: name all parts in one call.")
        if part.guarantee.basis == "none":
            raise NotPrivate("a part of the product was built for comparison and keeps no guarantee.")
        if part.guarantee.radius is not None:
            raise InvalidInput("a part of the product protects only close pairs (`radius`): a sum cannot state that.")
    guarantees = [require_pure(part.guarantee, *WEIGHTED) for part in mechanisms]
    theorem = all(guarantee.basis == "theorem" for guarantee in guarantees)
    metric = product_metric(mechanisms)
    slack = sum(guarantee.slack for guarantee in guarantees)
    guarantee = Guarantee(1.0, metric, slack, "theorem" if theorem else "certificate")
    return ProductMechanism(tuple(mechanisms), guarantee, _certificate(mechanisms))


def _certificate(mechanisms: tuple[Mechanism, ...]) -> Certificate:
    found = [(part.guarantee.epsilon, part.certificate) for part in mechanisms]
    objectives = sorted({certificate.objective for _, certificate in found})
    if len(objectives) > 1:
        raise InvalidInput(
            "one part of the product counts its expected loss and another its worst loss, which do not add up: "
            "build them with the same `objective`."
        )
    return Certificate(
        loss=float(np.sum([epsilon * c.loss for epsilon, c in found])),
        lower_bound=_lower_sum([epsilon * c.lower_bound for epsilon, c in found]),
        objective=objectives[0],
        pairs=sum(c.pairs for _, c in found),
        method="product of " + "; ".join(c.method for _, c in found),
        seconds=float(np.sum([c.seconds for _, c in found])),
        at_most=any(c.at_most for _, c in found),
        epsilon=max(c.epsilon / epsilon for epsilon, c in found),
    )


def _lower_sum(terms: list[float]) -> float:
    """Return a number no larger than the sum of rounded products."""
    return float(np.sum(terms) - (len(terms) + 2) * 2.0**-53 * np.abs(terms).sum())
