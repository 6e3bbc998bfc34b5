"""Embeddings as secrets: lists in a table, three laws for unit vectors, and a public projection."""

import numpy as np
import pyarrow as pa

import metricdp as mdp

rng = np.random.default_rng(0)
vectors = rng.normal(size=(5, 64))
vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
table = pa.table({"id": range(5), "embedding": pa.array(vectors.tolist(), pa.list_(pa.float32()))})

laws = {
    "l2": mdp.laplace(mdp.Lp(2), 200.0, dimension=64),
    "angle": mdp.laplace(mdp.Angular(), 200.0, dimension=64),
    "von Mises-Fisher": mdp.von_mises_fisher(mdp.Lp(2), 200.0, dimension=64),
}
for name, law in laws.items():
    released = mdp.perturb(table, law, columns=["embedding"])
    reports = np.array(released["embedding"].to_pylist())
    cosines = (reports * vectors).sum(axis=1) / np.linalg.norm(reports, axis=1)
    print(f"{name}: {law.guarantee}; mean cosine of report and truth {cosines.mean():.2f}")

matrix = np.linalg.qr(rng.normal(size=(64, 8)))[0].T  # public: made without looking at the table
shorter = mdp.laplace(mdp.Lp(2), 200.0, projection=matrix)
print("noise", laws["l2"].certificate.loss, "in 64 dimensions,", shorter.certificate.loss, "in 8, for the same promise")
