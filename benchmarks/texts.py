"""Measure texts: the sentences of SST-2 from CSV to CSV, with a mechanism that is loaded from its file.

python benchmarks/texts.py [--mechanism words.mdp] [--epsilon 3] [--rounds 3] [--profile]

Without --mechanism one is made over all words of the data folder (26,828, 100 dimensions) and kept beside the table.
"With warm-up" begins with a mechanism that was just loaded; "after" is the fastest of the later rounds.
With --record the figures are kept.
"""

from __future__ import annotations

import cProfile
import csv
import pstats
import resource
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq
from record import arguments, recorder

import metricdp as mdp
from metricdp.places import data_folder
from metricdp.tables import perturb
from metricdp.text import Rules, TextMechanism, Vectors, read_vectors

ASKED = {"with": "50,000 words/s", "after": "100,000 words/s"}


def made(epsilon: float, place: Path) -> Path:
    """Return the file of a mechanism over all words there are."""
    folder = Path(data_folder()) / "glove_6b_100d"
    parts = [read_vectors(folder / name) for name in ("vectors.npz", "review_extra.npz")]
    whole = Vectors([word for part in parts for word in part.words], np.concatenate([part.array for part in parts]))
    started = time.perf_counter()
    mechanism = mdp.exponential(whole.space(), epsilon)
    print(f"{len(whole):,} words certified in {time.perf_counter() - started:.1f} s: {mechanism.certificate.method}")
    mdp.save(mechanism, place)
    return place


def table(folder: Path) -> tuple[Path, int]:
    """Write the sentences as CSV and return how many tokens they have."""
    sentences = pq.read_table(Path(data_folder()) / "text_sst2" / "sentences.parquet")
    rows = list(zip(sentences["label"].to_pylist(), sentences["text"].to_pylist(), strict=True))
    with (folder / "sst2.csv").open("w", newline="", encoding="utf-8") as file:
        csv.writer(file).writerows([("label", "text"), *rows])
    return folder / "sst2.csv", sum(len(text.split()) for _, text in rows)


def measure(chosen: Any, folder: Path) -> None:
    """Protect the table several times and keep the first figure and the best of the others."""
    keep = recorder(chosen.record)
    file = Path(chosen.mechanism) if chosen.mechanism else made(chosen.epsilon, folder / "words.mdp")
    started = time.perf_counter()
    words = mdp.load(file)
    print(f"loaded in {time.perf_counter() - started:.2f} s: {words}")
    source, tokens = table(folder)
    texts = TextMechanism(words, Rules(unknown="mask"))
    seconds, busy = [], []
    for number in range(chosen.rounds + 1):
        profile = cProfile.Profile()
        if chosen.profile and number == chosen.rounds:
            profile.enable()
        started, worked = time.perf_counter(), time.process_time()
        perturb(source, texts, to=folder / "out.csv", columns="text", overwrite=True)
        seconds.append(time.perf_counter() - started)
        busy.append(time.process_time() - worked)
        profile.disable()
        print(
            f"round {number}: {tokens:,} words in {seconds[-1]:.2f} s, {tokens / seconds[-1]:,.0f} words/s; "
            f"{busy[-1]:.2f} s of processor time"
        )
        if chosen.profile and number == chosen.rounds:
            pstats.Stats(profile).sort_stats("tottime").print_stats(12)
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
    size, rate = texts.words.inputs.size or 0, words.guarantee.epsilon
    for kind, taken, worked in (("with", seconds[0], busy[0]), ("after", min(seconds[1:]), min(busy[1:]))):
        keep(
            "texts",
            f"SST-2, {tokens:,} words, CSV to CSV, {size:,} words to choose from, epsilon {rate:g}, {kind} warm-up",
            asked=ASKED[kind],
            measured=f"{tokens / taken:,.0f} words/s, {worked:.2f} s of processor time, {peak:.1f} GB at most",
            seconds=round(taken, 3),
            processor=round(worked, 3),
            words=tokens,
        )


if __name__ == "__main__":
    parser = arguments(__doc__)
    parser.add_argument("--mechanism", default="")
    parser.add_argument("--epsilon", type=float, default=3.0)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--profile", action="store_true")
    with tempfile.TemporaryDirectory() as name:
        measure(parser.parse_args(), Path(name))
