"""How fast sentences are protected: packages of others in environments of their own, and this one, on the same text."""

from __future__ import annotations

import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

import numpy as np

from metricdp import exponential, madlib
from metricdp.errors import MetricdpError, SamplerFailure
from metricdp.mechanisms import Mechanism
from metricdp.text import Rules, TextMechanism
from metricdp_papers.common import Row, row
from metricdp_papers.leaks import packages
from metricdp_papers.text import programs
from metricdp_papers.text.corpora import Corpus, corpus

EPSILON = 8.0
PATIENCE = 900.0  # seconds in which a package has to get ready and run
UNKNOWN = "words outside its list come back as they are"


@dataclass(frozen=True)
class Runner:
    """A mechanism of a package, and whether its words keep the guarantee it is sold with."""

    package: str
    mechanism: str
    program: str
    keeps: str


RUNNERS = {
    "mldp-noise": Runner("mldp-text", "multivariate noise, nearest word", "MLDP_NOISE", f"within its list; {UNKNOWN}"),
    "mldp-vickrey": Runner("mldp-text", "Vickrey", "MLDP_VICKREY", "no: the word itself is never its own report"),
    "mldp-tem": Runner("mldp-text", "TEM", "MLDP_TRUNCATED", "no: up to 3.2 times its epsilon"),
    "mldp-mahalanobis": Runner("mldp-text", "Mahalanobis", "MLDP_MAHALANOBIS", f"within its list; {UNKNOWN}"),
    "pypantera-cmp": Runner("pypantera", "CMP (noise, nearest word)", "PANTERA_NOISE", "not refuted"),
    "pypantera-santext": Runner("pypantera", "SanText", "PANTERA_SANTEXT", "not refuted"),
    "pypantera-tem": Runner("pypantera", "TEM", "PANTERA_TRUNCATED", "no: a draw that fails gives the word itself"),
    "diffractor": Runner("dp-diffractor", "geometric on a list", "DIFFRACTOR_GEOMETRIC",
                         f"no: a fixed seed; {UNKNOWN}, and so do stopwords"),
}  # fmt: skip
OURS: dict[str, tuple[str, Callable[[Corpus], Mechanism]]] = {
    "our-kernel": ("certified exponential", lambda text: exponential(text.space, EPSILON, form="kernel")),
    "our-noise": ("noise + nearest (madlib)", lambda text: madlib(text.space, EPSILON)),
}


def of_others(name: str, key: str, seconds: float) -> list[Row]:
    """Let a package protect the text for so many seconds; what cannot be run here is a row that says why."""
    runner = RUNNERS[key]
    about: Row = {"who": runner.package, "mechanism": runner.mechanism, "keeps_its_promise": runner.keeps}
    try:
        place = packages.environment(runner.package)
        about["who"] = packages.version(runner.package)
        with tempfile.TemporaryDirectory() as folder:
            vectors, sentences = write_files(corpus(name), Path(folder))
            program = Path(folder) / "program.py"
            program.write_text(getattr(programs, runner.program), encoding="utf-8")
            asked = [str(one) for one in (program, vectors, sentences, EPSILON, seconds)]
            told = packages.run_program(place, asked, PATIENCE, runner.package)
        lines = [line.split()[1:] for line in told.splitlines() if line.startswith("RACE ")]
        if not lines:
            raise SamplerFailure(f"{runner.package} did not say how fast it was.")
    except MetricdpError as error:
        return [row(about, WALL, note=" ".join(str(error).split()))]
    words, wall, cpu, same = map(float, lines[0])
    return _rows(about, "as_published", (words, wall, cpu), f"{words:.0f} words, {same / words:.0%} of them unchanged")


def of_ours(name: str, key: str) -> list[Row]:
    """Protect the whole text with a mechanism of this package, twice: with an empty memory, and once more."""
    text = corpus(name)
    mechanism, build = OURS[key]
    protect = TextMechanism(build(text), Rules(unknown="mask")).protect
    lines = sentences_of(text)
    rows: list[Row] = []
    for said in ("first time", "again"):
        wall, cpu = time.perf_counter(), time.process_time()
        after = protect(lines)
        taken = (len(text.codes), time.perf_counter() - wall, time.process_time() - cpu)
        words = [(one, other) for line, new in zip(lines, after, strict=True)
                 for one, other in zip(line.split(), new.split(), strict=True)]  # fmt: skip
        about: Row = {"who": "metricdp", "mechanism": f"{mechanism}, {said}", "keeps_its_promise": "proven"}
        share = np.mean([one == other for one, other in words])
        rows += _rows(about, "corrected", taken, f"{len(words)} words, {share:.0%} of them unchanged")
    return rows


WALL, PROCESSOR = "words a second", "words a second of processors"


def _rows(about: Row, value: str, taken: tuple[float, float, float], note: str) -> list[Row]:
    words, wall, cpu = taken
    return [row(about, WALL, note=note, **{value: words / wall}),
            row(about, PROCESSOR, **{value: words / max(cpu, 1e-3)})]  # fmt: skip


def sentences_of(text: Corpus) -> list[str]:
    """Return the sentences as texts, without the words that have no vector."""
    words = np.array(text.words, dtype=object)[text.codes]
    ends = np.searchsorted(text.sentences, np.arange(len(text.labels) + 1))
    return [" ".join(words[start:stop]) for start, stop in pairwise(ends) if stop > start]


def write_files(text: Corpus, folder: Path) -> tuple[Path, Path]:
    """Write vectors in word2vec's text format and the sentences, one a line."""
    vectors, sentences = folder / "vectors.txt", folder / "sentences.txt"
    with vectors.open("w", encoding="utf-8") as file:
        file.write(f"{len(text.words)} {text.vectors.shape[1]}\n")
        for word, vector in zip(text.words, text.vectors.tolist(), strict=True):
            file.write(f"{word} {' '.join(f'{value:.9g}' for value in vector)}\n")
    sentences.write_text("\n".join(sentences_of(text)) + "\n", encoding="utf-8")
    return vectors, sentences
