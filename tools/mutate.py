"""Plant mistakes in lines that privacy rests on, one at a time, and see that the tests find each of them.

    python tools/mutate.py                   # all of them, on two processes
    python tools/mutate.py --only kernel     # those whose file or new text holds a word
    python tools/mutate.py --list

Every mistake is a file, a text that occurs in it exactly once, what it becomes, and the tests that should fail then. It
is planted in a temporary copy of the tree, never here. The tests that are named must pass without a mistake. The exit
code is 0 when every mistake was found; a text that does not occur exactly once counts as not found.
"""

from __future__ import annotations

import argparse
import os
import queue
import shutil
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[1]
LONGEST = 900  # seconds that the tests of one mistake may take
MARGINS, DRAWS = "tests/mechanisms/test_margins.py", "tests/mechanisms/test_exact_draws.py"
DIRECTED, BOOKS = "tests/solvers/test_directed_rounding.py", "tests/ledger/test_ledger.py"
BY_TABLE, PROPOSED = "tests/tables/test_charged_tables.py", "tests/mechanisms/test_kernel_proposals.py"
NOISE = "tests/mechanisms/test_noise.py"
RELEASES, OLD_NAMES = "tests/ledger/test_releases.py", "tests/ledger/test_accounts.py"
HEADS, STREAMS = "tests/ledger/test_heads.py", "tests/mobility/test_stream_ledger.py"


@dataclass(frozen=True)
class Mistake:
    """A planted mistake and the arguments of pytest that should end in a failure."""

    file: str
    old: str
    new: str
    tests: tuple[str, ...]

    def __str__(self) -> str:
        text = self.new or f"without {self.old.strip()}"
        return f"{self.file}: {text.splitlines()[0]}"


def planted_mistakes() -> list[Mistake]:
    """Return every mistake; `tests/test_mutate.py` sees that each fits the code."""
    made: list[Mistake] = []

    def plant(file: str, old: str, new: str, *tests: str) -> None:
        made.append(Mistake(file, old, new, tests))

    mechanisms, auditing = "src/metricdp/mechanisms/", "src/metricdp/auditing/"
    rows, compiled = mechanisms + "kernel_rows.py", mechanisms + "kernel_compiled.py"
    terms = (MARGINS, "-k", "terms")
    margin = "margin = 2.0 * error * others + 16.0 * UNIT * total"
    plant(rows, margin, "margin = 0.0 * total", *terms)
    plant(compiled, margin, "margin = 0.0 * total", *terms)
    plant(rows, "last = low < 0.0, inside == final", "last = low < 0.0, after >= others", DRAWS, "-k", "absorb")
    plant(compiled, "(k == final or high", "(after >= others or high", DRAWS, "-k", "absorb")
    plant("js/dist/metricdp.js", "(k === final || high", "(after >= others || high", DRAWS, "-k", "draws_them_too")
    proposals, distance = mechanisms + "kernel_rows.py", (MARGINS, "-k", "proposal")
    plant(proposals, "< acceptance * (1.0 - self.margin)", "< acceptance", *distance)
    plant(proposals, "> acceptance * (1.0 + self.margin)", "> acceptance", *distance)
    plant(proposals, "self.nearest = np.minimum(nearest, distribution.cap)", "self.nearest = nearest * 1.01", PROPOSED)
    plant(proposals, "torn = words * size > MOST - size", "torn = words * size > MOST", PROPOSED)
    plant(compiled, "if word * size > MOST - size:", "if word * size > MOST:", PROPOSED)
    plant(mechanisms + "rows.py", "int((m + 8) * 2.0**-52 * 2.0**64)", "0", DRAWS, "-k", "matrix")
    plant(
        mechanisms + "rows.py", "(word << 64) + int(source.words(1)[0])", "(word << 64)", DRAWS, "-k", "matrix or local"
    )
    local = mechanisms + "local_rows.py"
    plant(local, "BAND = 2  #", "BAND = -1  #", DRAWS, "-k", "local")
    plant(local, "rows[left], drawn) < 0", "rows[left], drawn) < 9", DRAWS, "-k", "local")
    plant(mechanisms + "curves.py", "+ 2.0**-62 + ", "+ ", DRAWS, "-k", "far_anchor")
    plant(mechanisms + "curves.py", "1.01 * blur *", "0.0 * blur *", DRAWS, "-k", "cut")
    between = mechanisms + "kinds/interpolated.py"
    plant(between, "np.clip(away / (high - low), TINIEST, 0.5)", "np.minimum(away / (high - low), 0.5)",
          DRAWS, "-k", "far_anchor")  # fmt: skip
    plant(between, "UNSURE = 2.0**-30", "UNSURE = -1.0", DRAWS, "-k", "geometric")
    plant(mechanisms + "kinds/streets.py", "ROUNDINGS = 4 * 2.0**-53", "ROUNDINGS = 0.0", DRAWS, "-k", "cut")
    deciding = mechanisms + "noise/arbitrary_precision.py"
    plant(deciding, "(value + flint.arb(0.5)).floor()", "(value + flint.arb(0.4)).floor()", NOISE)
    plant(deciding, "flint.arb(2 * value + 1, 1)", "flint.arb(2 * value + 1)", DRAWS, "-k", "geometric")

    plant(
        auditing + "exact.py", "np.where(distances <= radius,", "np.where(distances < radius,", MARGINS, "-k", "radius"
    )
    pairs = "pairs[lengths {0} claim.radius], lengths[lengths {0} claim.radius]"
    plant(auditing + "local.py", pairs.format("<="), pairs.format("<"), MARGINS, "-k", "radius")
    plant("src/metricdp/problems/problem.py", "distances <= self.radius, ratios", "distances < self.radius, ratios",
          MARGINS, "-k", "radius")  # fmt: skip
    attacks = ("tests/contract/test_attacks.py", "-k", "nothing_is_unsound and audits")
    plant(auditing + "exact.py", "ceiling = (spread - slack + error) / counted",
          "ceiling = (spread - slack - 9 * error) / counted", *attacks)  # fmt: skip
    plant(auditing + "exact.py", "if witness is not None:\n        return report(epsilon=np.inf, refuted=claimed",
          "if False:\n        return report(epsilon=np.inf, refuted=claimed", *attacks)  # fmt: skip
    plant(
        auditing + "kernels.py", "np.any(mechanism.nearest > sums.nearest)", "np.any(mechanism.nearest < 0)", PROPOSED
    )
    plant(auditing + "kernels.py", "wrong = np.abs(", "wrong = 0.0 * np.abs(", "tests/design/test_kernels.py",
          "tests/artifacts/test_kernel_files.py")  # fmt: skip

    plant(
        "src/metricdp/places/elastic.py", "(lengths * scale, 0.0)", "(lengths * scale, np.inf)", MARGINS, "-k", "scaled"
    )
    city = "src/metricdp/solvers/local/"
    plant(city + "compiled.py", "= slope[j] - slack * terms[j]", "= slope[j] + slack * terms[j]", DIRECTED)
    plant(city + "compiled.py", "slopes[at] - slack * abs", "slopes[at] + slack * abs", DIRECTED)
    plant(city + "program.py", "- (2 * len(least) + 2) * UNIT", "+ (2 * len(least) + 2) * UNIT", DIRECTED)
    plant(city + "repair.py", "ROUNDED = 4e-7", "ROUNDED = 2e-7", DIRECTED)
    plant(city + "repair.py", "remaining + slope +", "remaining + 0.5 * slope +", DIRECTED)
    plant(
        city + "repair.py",
        "np.where(remaining > 0.0, rounding, 0.0)",
        "np.where(remaining > 0.0, 0.5 * rounding, 0.0)",
        DIRECTED,
    )
    # Half of `charge` or of CHARGED, there, is no mistake of privacy: what `short` finds uncovered is charged again.
    # Nor is `shift *= 2.0` in solvers/repair/recombine.py: the exact shift keeps the ratios, which were shrunk by more
    # than its rounding before; `strict` and the audit judge the result.

    accounts = "src/metricdp/ledger/accounts.py"
    plant(accounts, "return limit.amount - own - sum(", "return limit.amount - sum(", RELEASES)
    plant(accounts, "- own - sum(self.counted(person, account, limit).values())", "- own", OLD_NAMES)
    plant(
        accounts,
        "self.left(person, account, limit) < asked[",
        "2 * self.left(person, account, limit) < asked[",
        RELEASES,
    )
    plant(accounts, "total.charge(amount, slack, self.now)", "total.charge(amount // 2, slack, self.now)", BOOKS)
    plant(accounts, 'number.to_bytes(8, "big"), person,', 'number.to_bytes(8, "big"), b"",', BOOKS)
    charging, by_table = "src/metricdp/tables/charging.py", (BY_TABLE, "-k", "row_by_row or second_one")
    parts = "({name: cost[part] for name, cost in found.items()} for part in range(3))"
    plant(charging, parts, parts.replace("cost[part]", "cost[part] // (2 if part == 1 else 1)"), *by_table)
    plant(charging, parts, parts.replace("cost[part]", "cost[part] * (part < 2)"), *by_table)
    plant(
        charging,
        "    if done.repeated:\n        raise InvalidInput(",
        "    if False:\n        raise InvalidInput(",
        *by_table,
    )
    texts, of_texts = "src/metricdp/text/mechanism.py", "tests/tables/test_texts_of_persons.py"
    plant(
        texts,
        "floor(Fraction(budget) * ROUND_UP / unit)",
        "floor(Fraction(budget) / unit)",
        of_texts,
        "-k",
        "never_below",
    )
    plant("src/metricdp/tables/plan.py", "epsilon=columns * of_one.epsilon", "epsilon=of_one.epsilon",
          of_texts, "-k", "every_column")  # fmt: skip
    plant(charging, "texts.row_guarantee if texts is not None and counted else", "", of_texts, "-k", "no_total")
    losses, checking = "src/metricdp/ledger/chain.py", "src/metricdp/ledger/checking.py"
    plant(losses, "        if then != before.link:\n            return True\n", "", HEADS, "-k", "under")
    plant(checking, "if entry.account is None or (entry", "if entry.account is not None and (entry", BOOKS)
    named = "src/metricdp/metrics/accounts.py"
    plant(named, "METRICS.of(term.metric)", "METRICS.kind(term.metric)", OLD_NAMES)
    plant(named, "<< 2 * FINE) - 1) + 1, 1 << FINE)", "<< 2 * FINE) - 1), 1 << FINE)", OLD_NAMES)
    plant(
        named, "if found is not None and found[1] == old:\n        return 1", "if False:\n        return 1", OLD_NAMES
    )
    plant("src/metricdp/ledger/amounts.py", "math.ceil(Fraction(number)", "math.floor(Fraction(number)", OLD_NAMES)

    head = "src/metricdp/ledger/head.py"
    plant(head, "self._known.get(lane, -1) >= end.blocks", "self._known.get(lane, -1) >= end.blocks - 1", HEADS)
    plant(head, 'if self._seal(outer["head"]) != outer["seal"]:', "if False:", HEADS)
    plant(head, "return max(found, key=", "return min(found, key=", HEADS)
    plant(losses, "if end.blocks < noted.blocks:", "if end.blocks < noted.blocks - 1:", HEADS)
    plant(losses, "return (number, first, last) == (end.blocks, end.entries, end.link)", "return True", HEADS)

    windows, streams = "src/metricdp/mobility/budgets.py", "tests/mobility/test_streams.py"
    plant(windows, "run.recent_noise(self.window - 1)", "run.recent_noise(self.window - 2)", streams)
    plant(windows, "if run.resting < taken:", "if run.resting < taken - 1:", streams)
    plant(windows, "len(rates) + 1) if len(rates)", "len(rates)) if len(rates)", streams)
    memory = "src/metricdp/mobility/streams.py"
    plant(memory, "run.recent_noise(self.budget.window - 1)", "run.recent_noise(self.budget.window - 2)", STREAMS)

    positions, snapped = auditing + "positions.py", "tests/auditing/test_positions.py"
    plant(positions, "guarantee.with_slack(guarantee.epsilon * moved)", "guarantee.with_slack(0.5 * "
                                                                        "guarantee.epsilon * moved)",
          snapped)  # fmt: skip
    plant(positions, "guarantee.radius - moved", "guarantee.radius", snapped)
    plant(positions, "guarantee.radius is not None and reached", "False and reached", snapped)
    plant(auditing + "dispatch.py", "if any(part.guarantee.radius is not None for", "if any(False for",
          "tests/auditing/test_judging.py")  # fmt: skip

    rendering, escaped = "src/metricdp/rendering.py", ("tests/cli/test_forged_text.py", "tests/cli/test_credentials.py")
    plant(rendering, r"\u2028-\u202e", "", *escaped)
    plant(rendering, r"\x7f-\x9f", "", *escaped)
    plant(rendering, "text = _WORD.sub(_hide_password, text)", "pass", *escaped)
    plant(rendering, 'rest.rfind("@")', 'rest.find("@")', *escaped)

    compacted, buffers = "src/metricdp/tables/disclosure/hidden_values.py", "tests/tables/test_compact.py"
    plant(compacted, "made[null_rows] = 0", "pass", buffers)
    plant(compacted, "if null_rows is not None and lengths[null_rows].any():", "if False:", buffers)
    plant(compacted, "_compact(array.field(number), null_rows,", "_compact(array.field(number), hidden,", buffers)
    plant(compacted, "places = np.where(hidden, len(words), places)", "pass", buffers)
    plant(compacted, "unseen = other if hidden is None else other | hidden", "unseen = np.zeros_like(other)", buffers)
    return made


def copied(folder: Path) -> None:
    """Copy what git tracks, and what it would, to a folder."""
    command = ["git", "ls-files", "--cached", "--others", "--exclude-standard", "-z"]
    listed = subprocess.run(command, cwd=ROOT, capture_output=True, check=True).stdout.decode().split("\0")
    for name in filter(None, listed):
        if (ROOT / name).is_file():
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(ROOT / name, folder / name)


def failing(folder: Path, tests: tuple[str, ...]) -> bool | None:
    """Tell whether tests fail in a copy of the tree; None where they could not be run."""
    sources = os.pathsep.join(str(folder / name) for name in ("src", "papers/src"))
    environment = os.environ | {"PYTHONPATH": sources, "PYTHONDONTWRITEBYTECODE": "1"}
    command = [sys.executable, "-m", "pytest", "-x", "-q", "-p", "no:cacheprovider", *tests]
    try:
        done = subprocess.run(command, cwd=folder, env=environment, capture_output=True, timeout=LONGEST, check=False)
    except subprocess.TimeoutExpired:
        return True  # a mistake that makes the code hang was noticed
    return {0: False, 1: True}.get(done.returncode)


def verdict(folder: Path, mistake: Mistake) -> str:
    """Plant a mistake in a copy of the tree, run its tests, take it back and say what became of it."""
    path = folder / mistake.file
    text = path.read_text(encoding="utf-8")
    if text.count(mistake.old) != 1:
        return f"NOT PLANTED, its text occurs {text.count(mistake.old)} times"
    path.write_text(text.replace(mistake.old, mistake.new), encoding="utf-8")
    try:
        found = failing(folder, mistake.tests)
    finally:
        path.write_text(text, encoding="utf-8")
    return {True: "found", False: "SURVIVED", None: "NOT RUN"}[found]


def main() -> int:
    """Plant every mistake, print what became of it, and return 1 where one was not found."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", default="", help="mistakes whose file, new text or tests hold this")
    parser.add_argument("--jobs", type=int, default=2, help="processes")
    parser.add_argument("--list", action="store_true", help="print the mistakes and stop")
    chosen = parser.parse_args()
    mistakes = [one for one in planted_mistakes() if chosen.only in f"{one.file} {one.new} {one.tests}"]
    if chosen.list:
        for one in mistakes:
            print(one)
        return 0
    lost = 0
    with tempfile.TemporaryDirectory(prefix="mutate") as root:
        free: queue.Queue[Path] = queue.Queue()
        for number in range(max(1, chosen.jobs)):
            folder = Path(root) / str(number)
            copied(folder)
            free.put(folder)

        def work(one: Mistake | None, tests: tuple[str, ...] = ()) -> str:
            folder = free.get()
            try:
                if one is None:
                    return {False: "passes", True: "FAILS", None: "NOT RUN"}[failing(folder, tests)]
                return verdict(folder, one)
            finally:
                free.put(folder)

        with ThreadPoolExecutor(max_workers=max(1, chosen.jobs)) as pool:
            every = sorted({one.tests for one in mistakes})
            for tests, said in zip(every, pool.map(lambda tests: work(None, tests), every), strict=True):
                if said != "passes":
                    lost += 1
                    print(f"{said} without a mistake: {' '.join(tests)}", flush=True)
            for one, said in zip(mistakes, pool.map(work, mistakes), strict=True):
                lost += said != "found"
                print(f"{said}: {one}", flush=True)
    print(f"{len(mistakes)} mistakes, {lost} not found")
    return 1 if lost else 0


if __name__ == "__main__":
    sys.exit(main())
