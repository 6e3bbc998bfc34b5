"""Small images and series as vectors: principal components, singular values, and outlines under Frechet."""

import numpy as np
from sklearn.datasets import load_digits

import metricdp as mdp

images = load_digits().data / 16.0  # real pixels, 8 x 8, that come with scikit-learn
public, secret = images[:900], images[900:]

# Principal components of public images: eight numbers instead of 64, and the guarantee still holds for pixels.
middle = public.mean(axis=0)
components = np.linalg.svd(public - middle, full_matrices=False)[2][:8]
noise = mdp.laplace(mdp.Lp(2), 10.0, projection=components)
reports = noise.sample(secret[:3])
shown = middle + (reports - middle @ components.T) @ components  # post-processing: pictures of the reports
print(noise.guarantee, shown.reshape(-1, 8, 8).shape)

# Singular values move by no more than the pixels do. Only they are released, never the singular vectors.
values = np.linalg.svd(secret[:3].reshape(-1, 8, 8), compute_uv=False)
print(mdp.laplace(mdp.Lp(2), 10.0, dimension=8).sample(values).round(2))

# A series under the Frechet distance: the outline with noise, start, end, least and largest.
speeds = np.array([[0.0, 12.0, 30.0, 31.0, 28.0, 9.0, 0.0], [0.0, 0.0, 12.0, 30.0, 31.0, 28.0, 0.0]])
frechet = mdp.Frechet(mdp.Lp(1), 1)
print("largest gap", np.abs(speeds[0] - speeds[1]).max(), "Frechet", frechet(speeds[0], speeds[1]))
outline = mdp.laplace(frechet, 0.5, dimension=7)
print(outline.guarantee, outline.sample(speeds))

# Or one of finitely many public series, by any builder.
best = mdp.optimal(
    mdp.Problem(mdp.FiniteSpace(np.vstack([speeds, 0.5 * speeds, speeds + 5.0]), frechet), 0.2), gap=0.01
)
print(best.certificate)
