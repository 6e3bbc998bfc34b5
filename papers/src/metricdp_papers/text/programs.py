"""Small programs that let packages of others protect the same sentences, in environments of their own.

Called with a file of vectors (word2vec's text format), a file of sentences, epsilon and how many seconds they may take.
Each prints one line: words handled, seconds of the wall, seconds of processors, and how many words came back unchanged.
Getting ready (reading vectors, building an index) is not counted. They hold nothing but calls of public names.
"""

from __future__ import annotations

_CLOCK = """
import os, sys, time
vectors, sentences, epsilon, longest = sys.argv[1], sys.argv[2], float(sys.argv[3]), float(sys.argv[4])
lines = [line.split() for line in open(sentences, encoding="utf-8")]
def processors():
    taken = os.times()
    return taken.user + taken.system + taken.children_user + taken.children_system
def report(protect):
    protect(lines[0])
    began, before, words, same = time.perf_counter(), processors(), 0, 0
    for line in lines:
        after = protect(line)
        words += len(line)
        same += sum(one == other for one, other in zip(line, after))
        if time.perf_counter() - began > longest:
            break
    print("RACE", words, time.perf_counter() - began, processors() - before, same, flush=True)
"""

_MLDP = (
    _CLOCK
    + """
import gensim.models, nltk
nltk.data.find = lambda *names: None  # a word net, which only another of its mechanisms needs
import mldp_text
words = gensim.models.KeyedVectors.load_word2vec_format(vectors)
chosen = mldp_text.get_mechanism("NAME", epsilon=epsilon, embedding_matrix=words, dim=words.vector_size)
report(lambda line: [chosen.replace_word(word) for word in line])
"""
)
MLDP_NOISE = _MLDP.replace("NAME", "multivariate_calibrated")
MLDP_VICKREY = _MLDP.replace("NAME", "vickrey")
MLDP_TRUNCATED = _MLDP.replace("NAME", "tem")
MLDP_MAHALANOBIS = _MLDP.replace("NAME", "mahalanobis")


def _pantera(way: str, module: str, name: str, call: str = "chosen.processText(line)") -> str:
    """Return the program for a mechanism of pypantera; its reader knows no head, and leaves out the last line."""
    return f"""{_CLOCK}
import tempfile
if __name__ == "__main__":
    from src.{way}.{module} import {name}
    place = os.path.join(tempfile.mkdtemp(), "vectors.txt")
    with open(vectors, encoding="utf-8") as told, open(place, "w", encoding="utf-8") as file:
        next(told)
        file.writelines(told)
        file.write("endofvectors " + " ".join(["99"] * 100) + "\\n")
    chosen = {name}({{"embPath": place, "epsilon": epsilon, "beta": 0.001}})
    report(lambda line: {call}.split())
"""


PANTERA_NOISE = _pantera("EmbeddingPerturbationMechanism", "cmp", "CMP", "chosen.processText(chosen.noisyEmb(line))")
PANTERA_SANTEXT = _pantera("SamplingPerturbationMechanism", "santext", "SanText")
PANTERA_TRUNCATED = _pantera("SamplingPerturbationMechanism", "tem", "TEM")

DIFFRACTOR_GEOMETRIC = (
    """
import pathlib, shutil, tempfile
home = pathlib.Path(tempfile.mkdtemp())
"""
    + _CLOCK
    + """
if __name__ == "__main__":
    import nltk
    folder = home / ".cache" / "diffractor"  # its lists are not to be had here: it makes one of ours
    folder.mkdir(parents=True)
    shutil.copyfile(vectors, folder / "glove-wiki-gigaword-300.txt")
    (home / "corpora" / "stopwords").mkdir(parents=True)
    (home / "corpora" / "stopwords" / "english").write_text("the\\nof\\nand\\nto\\nin\\nis\\nit\\nthat\\nfor\\nwith\\n")
    nltk.data.path.insert(0, str(home))
    nltk.word_tokenize = str.split  # the sentences are in words already
    os.environ["HOME"] = str(home)
    import diffractor
    settings = diffractor.DiffractorConfig(epsilon=epsilon, verbose=False)
    with diffractor.Diffractor(settings, ["glove-wiki-gigaword-300"]) as chosen:
        report(lambda line: chosen.rewrite(" ".join(line))[0].split())
"""
)
