"""Documents as bags of word vectors, and voices as directions."""

import numpy as np

import metricdp as mdp
from metricdp.text import read_vectors
from metricdp.text.bundled import bundled_vectors

known = read_vectors(bundled_vectors())
index = {word: k for k, word in enumerate(known.words)}
vectors = np.asarray(known.array, dtype=float)[:, :10]  # the first ten coordinates, to keep the noise small

documents = ["doctor nurse hospital very kind", "good hospital staff very kind", "food here always very bad"]
bags = np.array([[vectors[index[word]] for word in text.split()] for text in documents])
rows = bags.reshape(len(documents), -1)  # one row a document: five words of ten numbers

noise = mdp.laplace(mdp.metrics.Bags(mdp.Lp(2), 10), 8.0, dimension=rows.shape[1])
print(noise.guarantee)  # epsilon times the total distance of the best pairing
movers = noise.guarantee.metric(rows[:1], rows[1:]) / 5
print("word mover's distances:", movers, "each costs", 5 * noise.epsilon, "per unit: N words cost N epsilon")

reports = noise.sample(rows).reshape(len(documents), 5, 10)
names = list(index)
for bag in reports:  # the nearest words are post-processing; nobody learns which came first
    nearest = ((bag[:, None] - vectors[None]) ** 2).sum(axis=2).argmin(axis=1)
    print(" ".join(names[k] for k in nearest))

# A voice as a direction. No voiceprints come with this package: directions of real GloVe words, 2,161 of 100 numbers,
# stand in for those of a speaker recognition system. An attacker who knows all of them takes the nearest to a report.
enrolled = np.asarray(known.array, dtype=float)
enrolled /= np.linalg.norm(enrolled, axis=1, keepdims=True)
for epsilon in (30.0, 60.0, 100.0):
    angular = mdp.laplace(mdp.Angular(), epsilon, dimension=100, normalise=True)
    heard = angular.sample(enrolled[:300])
    heard /= np.linalg.norm(heard, axis=1, keepdims=True)
    cosine = (heard * enrolled[:300]).sum(axis=1).mean()
    found = np.mean((heard @ enrolled.T).argmax(axis=1) == np.arange(300))
    print(angular.guarantee, f"cosine {cosine:.2f}, found among {len(enrolled):,}: {found:.0%}")

# Or one of finitely many directions, as voice-indistinguishability draws them; the best with that guarantee beside it.
some = mdp.FiniteSpace(enrolled[:40], mdp.Angular())
print(mdp.exponential(some, 5.0).certificate.loss, mdp.optimal(mdp.Problem(some, 5.0), gap=0.02).certificate)
