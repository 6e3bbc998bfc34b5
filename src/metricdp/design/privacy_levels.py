"""How much may leak: an epsilon, or a wish such as `2x@200m` that whatever is built has to keep."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from metricdp import messages
from metricdp.errors import InvalidInput, NotPrivate
from metricdp.mechanisms import AnyGuarantee, ConcentratedGuarantee, require_pure
from metricdp.mechanisms.concentrated import rho_for
from metricdp.units import (
    ProtectionTarget,
    as_positive,
    epsilon_hint,
    parse_epsilon,
    parse_protection_target,
    parse_rho,
)

NO_EPSILON = (
    "Gaussian noise has a concentrated guarantee, which is approximate and has no epsilon per unit: say what holds at "
    "a distance with --protect 2x@200m --set delta=1e-6, or name --set rho=0.35/km2."
)


@dataclass(frozen=True)
class PrivacyLevel:
    """How much may leak: an epsilon, or a wish that whatever is built has to keep, its slack included."""

    asked: float | ProtectionTarget

    @classmethod
    def parse(cls, epsilon: float | str | None, protect: str | None, unit: str) -> PrivacyLevel:
        """Return what an epsilon such as `10/km` or a wish such as `2x@200m` asks for: one of the two.

        An epsilon that is a number is one per `unit`.
        """
        if (epsilon is None) == (protect is None):
            plain = "Write --epsilon 1.0, or --protect 2x@0.5 for a factor of two at distance 0.5."
            how = epsilon_hint(unit) if unit else plain
            raise InvalidInput(f"say how much may leak, with either --epsilon or --protect. {how}")
        if epsilon is None:
            return cls(parse_protection_target(str(protect), unit))
        return cls(parse_epsilon(epsilon, unit) if isinstance(epsilon, str) else as_positive(epsilon, "epsilon"))

    def epsilon(self, slack: Callable[[float], float] | float = 0.0) -> float:
        """Return the epsilon that was named, or the largest one that keeps the wish with such a slack."""
        return self.asked.epsilon(slack) if isinstance(self.asked, ProtectionTarget) else self.asked

    def check(self, stated: AnyGuarantee, *, short: bool = False) -> list[str]:
        """Return the sentence that compares a guarantee with the wish, if there was one; raise if it is broken.

        `short` says only what is guaranteed where it was wished, with the epsilon.
        """
        if not isinstance(self.asked, ProtectionTarget):
            return []
        guarantee = require_pure(stated, "--protect")
        outside = guarantee.radius is not None and self.asked.distance > guarantee.radius
        if outside or not self.asked.kept(guarantee.epsilon, guarantee.slack):
            raise NotPrivate(
                f"the guarantee allows more than the factor {self.asked.level:g} asked for at {self.asked.distance:g} "
                f"{guarantee.unit}: {guarantee}. Nothing was written."
            )
        if short:
            return [messages.kept_request(guarantee, self.asked.distance)]
        return [messages.requested_guarantee(guarantee, self.asked.level, self.asked.distance)]


@dataclass(frozen=True)
class ConcentratedLevel:
    """How much may leak where the guarantee is concentrated: a rho, or a wish with the delta it may be broken with."""

    rho: float
    asked: ProtectionTarget | None = None
    delta: float = 0.0

    @classmethod
    def parse(cls, own: Mapping[str, Any], protect: str | None, unit: str) -> ConcentratedLevel:
        """Return what a `rho` of a builder's own options, or a wish with their `delta`, asks for."""
        if "rho" in own and protect is None and "delta" not in own:
            return cls(parse_rho(own["rho"], unit))
        if "rho" in own or protect is None or "delta" not in own:
            raise InvalidInput(NO_EPSILON)
        asked, delta = parse_protection_target(protect, unit), own["delta"]
        return cls(rho_for(asked.level, asked.distance, delta), asked, delta)

    def check(self, guarantee: AnyGuarantee, *, short: bool = False) -> list[str]:
        """Return the sentence that compares a guarantee with the wish, if there was one; raise if it is broken.

        `short` says only what is guaranteed where it was wished, with the rho.
        """
        if self.asked is None:
            return []
        if not isinstance(guarantee, ConcentratedGuarantee):
            raise InvalidInput("--set delta=... is for concentrated guarantees.")
        level, distance = self.asked.level, self.asked.distance
        if not guarantee.delta_at(distance, math.log(level)) <= self.delta * (1.0 + 1e-9):
            raise NotPrivate(f"the guarantee does not keep what was asked for: {guarantee}. Nothing was written.")
        if short:
            return [messages.kept_concentrated_request(guarantee, distance, self.delta)]
        return [messages.requested_concentrated(guarantee, level, distance, self.delta)]
