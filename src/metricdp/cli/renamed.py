"""Commands and options of 0.1 under their new names; they work for one version, with a warning."""

from __future__ import annotations

import warnings

COMMANDS = {
    "tree": ("design",),
    "prune": ("export", "--prune"),
    "shuffle": ("audit",),
    "builders": ("list", "builders"),
    "metrics": ("list", "metrics"),
    "engines": ("list", "engines"),
    "formats": ("list", "formats"),
}
EXAMPLES = {"tree": " --levels ...", "shuffle": " --people N --distance 200m"}
OPTIONS = {"--spread": "--allocation", "--at-most": "--max-rows", "--yes-really": "--force"}


def use_new_names(words: list[str]) -> list[str]:
    """Return the words of a command with the new names, and warn of every old one."""
    if words and (new := COMMANDS.get(words[0])) is not None:
        example = EXAMPLES.get(words[0], "")
        _warn(f"`metricdp {words[0]}` is called `metricdp {' '.join(new)}{example}` now.")
        arguments = words[1:]
        words = [new[0], *arguments, *new[1:]] if new[0] == "export" else [*new, *arguments]
    found: list[str] = []
    for at, word in enumerate(words):
        if word == "--":
            return [*found, *words[at:]]
        name, equals, value = word.partition("=")
        if name in OPTIONS:
            _warn(f"`{name}` is called `{OPTIONS[name]}` now.")
        found.append(OPTIONS.get(name, name) + equals + value)
    return found


def _warn(sentence: str) -> None:
    warnings.warn(sentence, DeprecationWarning, stacklevel=1)
