"""Words as secrets: a vocabulary with vectors, two mechanisms with the same guarantee, a table of words."""

import numpy as np
import pyarrow as pa

import metricdp as mdp

words = ["monday", "tuesday", "friday", "beer", "wine", "juice", "doctor", "nurse", "surgeon"]
rng = np.random.default_rng(0)
topics = np.repeat(3.0 * np.eye(3), 3, axis=0)  # days, drinks, people: take GloVe or word2vec for words in earnest
vectors = topics + 0.4 * rng.normal(size=(9, 3))

space = mdp.vocabulary(words, vectors)  # distances are those of the vectors, in l2
kernel = mdp.exponential(space, 2.0)  # a table over all words, audited exactly
noise = mdp.madlib(space, 2.0)  # noise on the vector, then the nearest word

for name, mechanism in {"exponential": kernel, "madlib": noise}.items():
    print(name, mechanism.guarantee)
print("expected distance", mdp.expected_loss(kernel))

table = pa.table({"word": ["beer", "nurse", "friday"], "shop": [1, 2, 3]})
print(mdp.perturb(table, kernel, columns=["word"]).to_pydict())

try:
    mdp.perturb(pa.table({"word": ["beer", "gin"]}), kernel, columns=["word"])
except mdp.MetricdpError as error:
    print(error)  # a word outside the vocabulary is an error, never passed through
