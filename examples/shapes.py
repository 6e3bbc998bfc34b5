"""Noise with a shape: ellipses on a map, the covariance of words, and hyperbolic space."""

import numpy as np

import metricdp as mdp

# On a map: 2 km along the street that runs north-north-east hide as much as 0.5 km across it.
street = mdp.Mahalanobis.ellipse(2.0, 0.5, bearing=25.0, at=(41.15, -8.61))
noise = mdp.laplace(street, 4.0)
print(noise.guarantee)
print(noise.sample([[41.15, -8.61], [41.16, -8.60]]))  # latitude and longitude, in degrees

# The shape of a community, of public places: crossings of Porto, half of their covariance, half a circle.
crossings = mdp.road_network("porto", nodes=300).coordinates
shape = mdp.Mahalanobis.regularised(np.cov(crossings.T), 0.5, at=(41.15, -8.61))
print(mdp.audit(mdp.laplace(shape, 4.0)))

# Vectors of any length, with their correlations: a public set of vectors gives the covariance.
public = np.random.default_rng(0).normal(size=(500, 20)) @ np.diag(np.linspace(0.2, 3.0, 20))
words = mdp.Mahalanobis.regularised(np.cov(public.T), 0.3)
print(mdp.laplace(words, 10.0).sample(public[:1]).shape)

# The Poincare ball: words of a hierarchy, the general ones in the middle. Epsilon must exceed the dimension less one.
tree = np.array([[0.0, 0.0], [0.5, 0.0], [-0.4, 0.3], [0.7, 0.2], [0.7, -0.2]])
ball = mdp.laplace(mdp.Hyperbolic(), 3.0, dimension=2)
print(ball.certificate.loss, ball.sample(tree))
nearest = mdp.madlib(mdp.FiniteSpace(tree, mdp.Hyperbolic()), 3.0)
print(nearest.sample([3, 3, 3, 4, 4, 4]))
