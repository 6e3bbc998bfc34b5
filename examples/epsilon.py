"""From what is wanted to epsilon, and back."""

import math

import metricdp as mdp

epsilon = mdp.epsilon_for(2, 0.2)  # a factor of two at 0.2 km
print(f"epsilon {epsilon:.3f} per km")
for metres in (50, 100, 200, 500, 1000):
    print(f"{metres:5d} m apart: at most a factor of {math.exp(epsilon * metres / 1000):.2f}")

# Laplace noise is drawn exactly and adds no slack of its own.
noise = mdp.laplace(mdp.Haversine(), epsilon)
print(f"{noise.guarantee}; at 200 m a factor of {math.exp(noise.guarantee.bound(0.2)):.6f}")
