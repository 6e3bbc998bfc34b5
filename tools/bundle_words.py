"""Make the bundled word vectors from a larger file of GloVe vectors.

    python tools/bundle_words.py FOLDER_WITH_glove_6b_100d

Writes the most frequent words, and all words of the bundled sentences, to src/metricdp/data/words/vectors.npz, in the
order of their frequency. Vectors are those of GloVe rounded to sixteen bits: what is measured are the rounded ones.
"""

import re
import sys
from pathlib import Path

import numpy as np

FREQUENT = 2_000
HERE = Path(__file__).resolve().parents[1] / "src" / "metricdp" / "data" / "words"


def main(data: Path) -> None:
    with np.load(data / "glove_6b_100d" / "vectors.npz", allow_pickle=False) as held:
        words, vectors = held["words"], held["vectors"]
    sentences = "".join((HERE / name).read_text(encoding="utf-8") for name in ("sample.txt", "reviews.csv")).lower()
    used = set(re.findall(r"[a-z']+", sentences.replace("label,text", "")))
    missing = sorted(used - set(words.tolist()))
    if missing:
        raise SystemExit(f"no vector for {', '.join(missing)}: write the sentences with other words.")
    taken = np.array([row < FREQUENT or word in used for row, word in enumerate(words.tolist())])
    np.savez_compressed(HERE / "vectors.npz", words=words[taken], vectors=vectors[taken].astype(np.float16))
    print(f"{int(taken.sum()):,} words, {(HERE / 'vectors.npz').stat().st_size:,} bytes")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
