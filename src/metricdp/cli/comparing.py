"""The command that compares builders: one promise and one objective, with the bounds that belong to both."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

import metricdp
from metricdp import wording
from metricdp.arrays import Floats
from metricdp.cli import building, choices, tables, terminal
from metricdp.cli.choices import Epsilon, Output
from metricdp.cli.stakes import prior_from
from metricdp.errors import Infeasible, InvalidInput
from metricdp.mechanisms import MatrixMechanism
from metricdp.pictures.story import Comparison, Contender
from metricdp.spaces import FiniteSpace
from metricdp.units import parse_epsilon
from metricdp.wording import Objective


def compare(
    *,
    where: Annotated[choices.Where, Parameter(name="*")] = choices.NOWHERE,
    epsilon: Epsilon,
    output: Output,
    builders: str = "exponential,optimal",
    objective: Objective = "expected",
    prior: str | None = None,
    gap: float = 1e-3,
    overwrite: tables.Overwrite = False,
) -> int:
    """Draw loss against epsilon for several mechanisms with the lower bound, and write the numbers beside it.

    An example:
    `metricdp compare --points cells.csv --metric l2 --epsilon 0.5,1,2 --builders exponential,optimal -o compare.png`

    Args:
        where: Points of a file, roads, or cells of a map.
        epsilon: The values to compare, with commas between: 0.5,1,2 or 1/km,5/km.
        output: Where the picture goes; a CSV file of the same name is put beside it.
        builders: Names with commas between; `metricdp builders` lists them. madlib has no matrix to compare.
        objective: Which loss is compared and bounded: expected (on average over the points) or worst (of any point).
        prior: A table that says how likely every place is, as for `metricdp design`.
        gap: How far the loss of optimal may be from the proven optimum, as a share.
        overwrite: Replace a picture and a table that are there.
    """
    from metricdp.files import check_target
    from metricdp.pictures import loss_plot, write_picture
    from metricdp.pictures.loss import loss_rows, loss_table

    table = str(Path(output).with_suffix(".csv"))
    if Path(output).suffix.lower() not in (".png", ".svg", ".pdf"):
        raise InvalidInput(f"the picture {output!r} must be named .png, .svg or .pdf.")
    for target in (output, table):
        check_target(target, source=where.named, overwrite=overwrite)
    places = where.places()
    space = places.space
    levels = [parse_epsilon(part, space.unit) for part in epsilon.split(",") if part.strip()]
    names = [name.strip() for name in builders.split(",") if name.strip()]
    if sparse := [name for name in names if building.on_windows(building.builder_named(name), space)]:
        raise InvalidInput(
            f"{sparse[0]} has no matrix on {where.words(space)}, so its loss cannot be compared exactly: take at most "
            "4,096, or design it alone; its certificate holds its loss and the bound of all others."
        )
    likely = None if prior is None else prior_from(prior, places)
    with terminal.progress_bar("Comparing") as progress:
        found, missing = compared(Question(space, objective, likely, gap), levels, names, progress=progress)
    write_picture(loss_plot(found), output)
    loss_table(found, table)
    print(terminal.text_table(["builder", "epsilon", "loss", "lower_bound", "gap", "seconds"], loss_rows(found)))
    print(f"Loss and lower bound: the {wording.objective(objective)}.")
    for line in missing:
        print(f"Left out: {line}", file=sys.stderr)
    print(f"Picture: {output}; numbers: {table}.")
    return 0


@dataclass(frozen=True)
class Question:
    """What all builders of a comparison are asked: where, for which loss and prior, how close to the optimum."""

    space: FiniteSpace
    objective: Objective
    prior: Floats | None
    gap: float

    def made(self, builder: str, epsilon: float) -> MatrixMechanism:
        """Build one of them, for this objective where the builder lets one choose."""
        takes = building.builder_named(builder).options
        options = building.Options(
            gap=self.gap if "gap" in takes else None,
            objective=self.objective if "objective" in takes else None,
        )
        prior = self.prior if "prior" in takes else None
        mechanism = building.built(builder, self.space, epsilon, options=options, prior=prior)
        if not isinstance(mechanism, MatrixMechanism):
            raise InvalidInput(f"{builder} has no matrix and so no exact loss: leave it out of the comparison.")
        return mechanism

    def loss(self, mechanism: MatrixMechanism) -> float:
        """Measure the loss that the objective counts, whatever the mechanism was made for."""
        if self.objective == "worst":
            return metricdp.worst_loss(mechanism, loss=self._distances(mechanism))
        return metricdp.expected_loss(mechanism, prior=self.prior, loss=self._distances(mechanism))

    def bounds(self, mechanism: MatrixMechanism, builder: str, epsilon: float) -> bool:
        """Tell whether the bound of a certificate speaks about every mechanism of this comparison.

        It must count the same loss over the same prior, and hold for a promise that is no stronger than the one
        asked for: all pairs, and an epsilon that is not smaller.
        """
        promise = mechanism.guarantee
        same_prior = (
            self.objective == "worst" or self.prior is None or "prior" in building.builder_named(builder).options
        )
        return (
            mechanism.certificate.objective == self.objective
            and same_prior
            and promise.radius is None
            and promise.epsilon >= epsilon
        )

    def _distances(self, mechanism: MatrixMechanism) -> Floats:
        return mechanism.inputs.distances_to(mechanism.outputs)


def compared(
    question: Question, epsilons: Sequence[float], builders: Sequence[str], *, progress: choices.Progress | None
) -> tuple[list[Comparison], list[str]]:
    """Return a comparison per epsilon, and a line for each mechanism that does not exist there."""
    if not epsilons or not builders:
        raise InvalidInput("name at least one epsilon and one builder, such as --epsilon 0.5,1,2.")
    found: list[tuple[float, list[Contender], float]] = []
    missing: list[str] = []
    for done, epsilon in enumerate(sorted(set(epsilons))):
        contenders, proven = [], 0.0  # distances are not negative, so no loss is
        for number, builder in enumerate(dict.fromkeys(builders)):
            try:
                mechanism = question.made(builder, epsilon)
            except Infeasible as error:
                missing.append(f"{builder} at epsilon {epsilon:g}: {error}")
                continue
            certificate = mechanism.certificate
            if question.bounds(mechanism, builder, epsilon):
                proven = max(proven, certificate.lower_bound)
            contenders.append(
                Contender(
                    builder,
                    question.loss(mechanism),
                    certified=certificate.epsilon,
                    seconds=certificate.seconds,
                    bounded=mechanism.guarantee.radius is None and mechanism.guarantee.slack == 0.0,
                )
            )
            if progress is not None:
                progress((done + (number + 1) / len(builders)) / len(set(epsilons)))
        if contenders:
            found.append((epsilon, contenders, proven))
    if not found:
        raise Infeasible("; ".join(missing))
    return [
        # What bounds a weaker promise bounds the stronger ones too.
        Comparison(
            tuple(contenders),
            max(bound for other, _, bound in found if other >= epsilon),
            unit=question.space.unit,
            objective=question.objective,
            epsilon=epsilon,
        )
        for epsilon, contenders, _ in found
    ], missing
