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

noise = mdp.laplace(mdp.Bags(mdp.Lp(2), 10), 8.0, dimension=rows.shape[1])
print(noise.guarantee)  # epsilon times the total distance of the best pairing
movers = noise.guarantee.metric(rows[:1], rows[1:]) / 5
print("word mover's distances:", movers, "each costs", 5 * noise.epsilon, "per unit: N words cost N epsilon")

reports = noise.sample(rows).reshape(len(documents), 5, 10)
names = list(index)
for bag in reports:  # the nearest words are post-processing; nobody learns which came first
    nearest = ((bag[:, None] - vectors[None]) ** 2).sum(axis=2).argmin(axis=1)
    print(" ".join(names[k] for k in nearest))

# A voice as a direction: an x-vector, scaled to length one (made up here), under the angle.
voice = np.random.default_rng(0).normal(size=(1, 512))
angular = mdp.laplace(mdp.Angular(), 400.0, dimension=512, normalise=True)
report = angular.sample(voice)
cosine = float((report * voice).sum() / np.linalg.norm(report) / np.linalg.norm(voice))
print(angular.guarantee, "cosine of report and voice:", round(cosine, 2))
