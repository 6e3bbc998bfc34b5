"""Embeddings as secrets: lists in a table, three distributions for unit vectors, and a public projection."""

import numpy as np
import pyarrow as pa

import metricdp as mdp

rng = np.random.default_rng(0)
vectors = rng.normal(size=(5, 64))
vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
table = pa.table({"id": range(5), "embedding": pa.array(vectors.tolist(), pa.list_(pa.float32()))})

mechanisms = {
    "l2": mdp.laplace(mdp.Lp(2), 200.0, dimension=64),
    "angle": mdp.laplace(mdp.Angular(), 200.0, dimension=64),
    "von Mises-Fisher": mdp.von_mises_fisher(mdp.Lp(2), 200.0, dimension=64),
}
for name, mechanism in mechanisms.items():
    released = mdp.perturb(table, mechanism, columns=["embedding"])
    reports = np.array(released["embedding"].to_pylist())
    cosines = (reports * vectors).sum(axis=1) / np.linalg.norm(reports, axis=1)
    print(f"{name}: {mechanism.guarantee}; mean cosine of report and truth {cosines.mean():.2f}")

matrix = np.linalg.qr(rng.normal(size=(64, 8)))[0].T  # public: made without looking at the table
shorter = mdp.laplace(mdp.Lp(2), 200.0, projection=matrix)
losses = mechanisms["l2"].certificate.loss, shorter.certificate.loss
print("noise", losses[0], "in 64 dimensions,", losses[1], "in 8, for the same guarantee")
