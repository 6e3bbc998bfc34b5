"""What `--help` prints: one screen of 80 columns and 50 lines a command; `--help-all` prints everything."""

from __future__ import annotations

import re
import textwrap
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from cyclopts.help import HelpEntry, HelpPanel
    from rich.console import Console, ConsoleOptions

ALL = "--help-all"
WIDTH, HEIGHT = 80, 50
MANY = 15  # options that leave room for one example


@dataclass(frozen=True)
class Command:
    """A command: its name, its group, one line about it, where its function is, and the options that come first."""

    name: str
    group: str
    about: str
    place: str
    first: tuple[str, ...] = ()


PROTECT, DESIGN, OPERATE, LEARN = "Protect", "Design and judge", "Operate", "Learn"
COMMANDS = (
    Command("perturb", PROTECT, "Protect the points of a table, or of many files.", "perturb:perturb",
            ("output", "epsilon", "protect", "mechanism", "columns", "snap", "id", "budget", "ledger", "drop",
             "report", "verbose")),
    Command("text", PROTECT, "Protect texts, word by word.", "texts:text",
            ("output", "column", "vectors", "epsilon", "mechanism", "unknown", "budget", "choose", "report",
             "verbose")),
    Command("trajectories", PROTECT, "Protect trips: reports on a public clock.", "trajectories:trajectories",
            ("output", "epsilon", "places", "predict", "zones", "times", "step", "id", "ledger", "verbose")),
    Command("stream", PROTECT, "Protect a stream without end, row by row.", "streaming:stream",
            ("window", "total", "output", "ledger", "policy", "follow", "resume", "every", "columns")),
    Command("estimate", PROTECT, "Estimate where the secrets behind a table of reports lie.", "estimate:estimate",
            ("output", "mechanism", "epsilon", "grid", "cell", "by", "confidence", "picture", "report", "json",
             "verbose")),
    Command("design", DESIGN, "Design a mechanism, and write it with its certificate.", "design:design",
            ("output", "epsilon", "points", "roads", "grid", "cell", "vectors", "metric", "builder", "prior", "loss",
             "gap", "seconds", "levels", "json", "verbose")),
    Command("audit", DESIGN, "Say what a mechanism, a matrix or a sampler really leaks.", "audit:audit",
            ("epsilon", "metric", "points", "secret", "report", "command", "url", "secrets", "people", "json",
             "verbose")),
    Command("compare", DESIGN, "Compare mechanisms on the same places at the same epsilon.", "compare:compare",
            ("output", "epsilon", "points", "roads", "grid", "cell", "metric", "builders", "loss", "prior",
             "seconds")),
    Command("choose", DESIGN, "Answer a few questions, and get command lines that work.", "choose:choose",
            ("secrets", "places", "cell", "epsilon", "prior", "loss", "wait", "rows", "device", "table", "verbose")),
    Command("inspect", DESIGN, "Explain a mechanism file: guarantee, proof, signature.",
            "mechanism_files:inspect", ("key", "json", "verbose")),
    Command("export", DESIGN, "Write a mechanism file for a device: smaller, pruned, signed.",
            "mechanism_files:export",
            ("output", "storage", "around", "radius", "prune", "areas", "tree", "key", "json", "verbose")),
    Command("budget", OPERATE, "Keep the ledger: what people may spend, spent and have left.", "budget:budget"),
    Command("serve", OPERATE, "Serve releases, budgets, audits and designs over HTTP.", "serve:serving"),
    Command("studio", OPERATE, "Open Studio in the browser, on this machine alone.", "serve:studio",
            ("port", "ledger", "policy", "key", "mechanism", "browser")),
    Command("keys", OPERATE, "Make a pair of keys to sign mechanism files with.", "mechanism_files:keys"),
    Command("demo", LEARN, "Design, protect, audit and report on bundled data.", "learn:demo",
            ("city", "nodes")),
    Command("reproduce", LEARN, "Run a study of a paper by name.", "learn:reproduce",
            ("table", "full", "folder", "jobs", "minutes")),
    Command("list", LEARN, "List builders, metrics, engines or formats.", "learn:list_names"),
)  # fmt: skip


def command_lines() -> list[str]:
    """Return what `metricdp --help` prints."""
    about = "Metric differential privacy: releases hardly tell nearby true values apart."
    lines = ["Usage: metricdp COMMAND [OPTIONS]", about, ""]
    for group in dict.fromkeys(command.group for command in COMMANDS):
        lines.append(f"{group}:")
        lines += [f"  {command.name:<14}{command.about}" for command in COMMANDS if command.group == group]
    return [
        *lines, "",
        "metricdp COMMAND --help      the options most people need, on one screen",
        f"metricdp COMMAND {ALL}  all options in full",
        "metricdp --version           the version",
        "--plugin NAME                with any command: first import a module of yours",
    ]  # fmt: skip


in_full = False  # whether the command was asked for all of it


@dataclass(frozen=True)
class HelpScreen:
    """Formats the help of a command; the options named `first` come first, with one line each."""

    first: tuple[str, ...] = ()

    def render_usage(self, console: Console, options: ConsoleOptions, usage: Any) -> None:
        """Print how the command is called."""
        _print(console, ["Usage: " + _flat(str(usage)), ""])

    def render_description(self, console: Console, options: ConsoleOptions, description: Any) -> None:
        """Print what the command does: its first sentence and its examples, or all of it."""
        paragraphs = [_flat(part) for part in _text_of(description, console).split("\n\n") if part.strip()]
        if not in_full:
            paragraphs = [paragraphs[0], *(part for part in paragraphs[1:] if "metricdp" in part)]
            paragraphs = paragraphs[: 3 if len(self.first) < MANY else 2]
        _print(console, [line for part in paragraphs for line in (*textwrap.wrap(part, WIDTH), "")])

    def __call__(self, console: Console, options: ConsoleOptions, panel: HelpPanel) -> None:
        """Print a panel: arguments, or options in two groups."""
        entries = [entry for entry in panel.entries if entry.names or entry.positional_label]
        if not entries:
            return
        if not any(entry.names and entry.names[0].startswith("-") for entry in entries):
            title = [] if entries[0].positional_label else ["Commands:"]
            _print(console, [*title, *_rows(entries, console), ""])
            return
        by_name = {name: entry for entry in entries for name in entry.names}
        chosen = [by_name[f"--{name}"] for name in self.first if f"--{name}" in by_name] or entries
        rest = [entry for entry in entries if entry not in chosen]
        lines = ["Options:", *_rows(chosen, console)]
        more = _rows(rest, console)
        if rest and (in_full or len(lines) + len(more) <= HEIGHT - 14):  # what stands above has up to twelve lines
            lines += ["", "More options:", *more]
        elif rest:
            names = "  ".join(entry.names[0] for entry in rest)
            lines += ["", f"More options ({ALL} explains them):", *_indent(names)]
        _print(console, lines)


def _rows(entries: list[HelpEntry], console: Console) -> list[str]:
    lines = []
    for entry in entries:
        label = ", ".join([*entry.shorts, *entry.names]) or str(entry.positional_label)
        about = _flat(_text_of(entry.description, console))
        about += f" [{'|'.join(entry.choices)}]" if entry.choices and not _names_all(about, entry.choices) else ""
        about = about if in_full else _first_sentence(about)
        first, *more = textwrap.wrap(about, WIDTH - 24) or [""]
        if len(label) <= 20:
            lines.append(f"  {label:<20}  {first}")
        else:
            lines += [f"  {label}", *([" " * 24 + first] if first else [])]
        lines += [" " * 24 + line for line in more]
    return lines


def _names_all(about: str, choices: tuple[str, ...]) -> bool:
    """Return whether a help text names all choices already."""
    return all(re.search(rf"\b{re.escape(choice)}\b", about) for choice in choices)


def _first_sentence(text: str) -> str:
    """Return the first sentence, whole: a part of it may say something else."""
    return re.split(r"(?<=[.])\s(?=[A-Z`\[-])", text, maxsplit=1)[0]


def _indent(text: str) -> list[str]:
    return textwrap.wrap(
        text, WIDTH - 2, initial_indent="  ", subsequent_indent="  ", break_on_hyphens=False, break_long_words=False
    )


def _flat(text: str) -> str:
    return " ".join(text.split())


def _text_of(what: Any, console: Console) -> str:
    """Return the plain text of what cyclopts would render."""
    with console.capture() as capture:
        console.print(what, width=10_000, soft_wrap=True)
    return re.sub(r"\x1b\[[0-9;]*m", "", capture.get())


def _print(console: Console, lines: list[str]) -> None:
    console.print("\n".join(lines), markup=False, highlight=False, soft_wrap=True)
