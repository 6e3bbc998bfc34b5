"""Words by names: a vocabulary, mechanisms on it, and what several epsilons do to public sentences."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

from metricdp.artifacts import load
from metricdp.errors import InvalidInput
from metricdp.mechanisms import Mechanism
from metricdp.spaces import FiniteSpace
from metricdp.specs.designs import build
from metricdp.specs.options import PlaceSpec, WordSpec
from metricdp.specs.places import Places, read_places
from metricdp.text.lists import number_of
from metricdp.text.word_evaluation import WordEvaluation, epsilon_range, evaluate_words, words_of

HELP_WORDS = 2_500  # words that several epsilons are tried on, unless asked for more: minutes otherwise


def read_words(spec: WordSpec) -> Places:
    """Return the words that are named."""
    if spec.vectors is None and (spec.words is None or number_of(spec.words) is not None):
        raise InvalidInput(
            "say which words there are: --vectors glove.npz (or --vectors bundled, to try), or --words list.txt to "
            "measure them by their spelling; or give --mechanism words.mdp from `metricdp design --vectors`."
        )
    return read_places(PlaceSpec(vectors=spec.vectors, words=spec.words, metric=spec.metric))


def build_words(spec: WordSpec, lower: Sequence[str] = ()) -> tuple[Mechanism, list[Mechanism], list[str]]:
    """Return the mechanism that is named, those at `lower` epsilons (or of files) on the same words, and notes."""
    if spec.mechanism is not None:
        for name in ("vectors", "words", "metric", "epsilon", "builder"):
            if getattr(spec, name) is not None:
                raise InvalidInput(f"a mechanism file brings its own words and epsilon: remove --{name}.")
        made = load(spec.mechanism, trusted=spec.key)
        words_of(made)
        return made, [load(path, trusted=spec.key) for path in lower], []
    if spec.key is not None:
        raise InvalidInput("--key is for a mechanism file that was signed: name it with --mechanism.")
    if spec.epsilon is None:
        raise InvalidInput(
            "say how much a word may leak per distance, such as --epsilon 3. `metricdp text --vectors FILE --choose` "
            "shows what epsilons do."
        )
    found = read_words(spec)
    made, *others = (_build_at(spec, found.space, epsilon) for epsilon in (spec.epsilon, *lower))
    return made, others, found.notes


def try_epsilons(
    spec: WordSpec, *, progress: Callable[[float], None] | None = None
) -> tuple[list[WordEvaluation], Places, bool]:
    """Return what several epsilons do to the bundled sentences, the words, and whether only the first were taken.

    The epsilons stand in `epsilon` with commas between; without it they go from where hardly a word stays to where
    nearly all do.
    """
    if spec.mechanism is not None:
        raise InvalidInput("--choose builds mechanisms at several epsilons: give --vectors instead of --mechanism.")
    limited = spec.words is None and spec.vectors is not None
    places = read_words(replace(spec, words=str(HELP_WORDS)) if limited else spec)
    asked = [part.strip() for part in str(spec.epsilon).split(",")] if spec.epsilon is not None else None
    epsilons = asked or [f"{value:g}" for value in epsilon_range(places.space)]
    found = []
    for number, epsilon in enumerate(epsilons):
        found.append(evaluate_words(_build_at(spec, places.space, epsilon)))
        if progress is not None:
            progress((number + 1) / len(epsilons))
    return found, places, limited and len(places.space) == HELP_WORDS


def _build_at(spec: WordSpec, space: FiniteSpace, epsilon: str) -> Mechanism:
    return build(spec.builder or "exponential", space, epsilon)
