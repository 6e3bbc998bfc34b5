"""Texts: vectors from a file, public rules for every token, sentences in and sentences out."""

from pathlib import Path

import numpy as np

import metricdp as mdp
from metricdp.text import Numeric, Rules, TextMechanism, read_vectors, tokenise

# A small file as GloVe writes it; take glove.6B.100d.txt or your own vectors in earnest.
topics = {"monday tuesday friday": 0, "beer wine juice": 1, "doctor nurse surgeon": 2, "the a met at for paid": 3}
rng = np.random.default_rng(0)
lines = [
    " ".join([word, *(f"{x:.4f}" for x in 3.0 * np.eye(4)[topic] + 0.4 * rng.normal(size=4))])
    for words, topic in topics.items()
    for word in words.split()
]
Path("glove.txt").write_text("\n".join(lines) + "\n")

vectors = read_vectors("glove.txt")  # word2vec, fastText, NumPy, safetensors and Parquet too
words = mdp.exponential(vectors.space(), 2.0)
rules = Rules("mask", numbers=Numeric(1.0, scale=10.0, least=0.0), dates=Numeric(1.0, scale=30.0))
texts = TextMechanism(words, rules)

secret = "On 2024-05-17 the Doctor paid $12.50 for Beer, see bob@example.com!"
print([token.kind for token in tokenise(secret) if token.kind != "space"])
print(texts.protect([secret, "A nurse met the surgeon."]))
print(*rules.sentences(), *texts.promise(), sep="\n")

try:
    TextMechanism(words).protect(["the doctor", "the zookeeper"])  # unknown="refuse" unless said otherwise
except mdp.MetricdpError as error:
    print(error)  # the row, never the word

# A budget for each text: long ones get the smaller epsilon, what even that does not pay for is masked.
spread = Rules("mask", budget=8.0, beyond="mask")
print(TextMechanism(words, spread, lower=[mdp.exponential(vectors.space(), 1.0)]).protect(["the beer " * 6]))
