"""What a word becomes: the probabilities of its reports, at three epsilons."""

import matplotlib.pyplot as plt
import numpy as np

import metricdp as mdp
from metricdp.text import read_vectors
from metricdp.text.bundled import bundled_vectors

vectors = read_vectors(bundled_vectors(), limit=400)
space = vectors.space()
word = list(vectors.words).index("city")

figure, panels = plt.subplots(1, 3, figsize=(8, 3.2))
for axes, epsilon in zip(panels, (0.6, 0.9, 1.2), strict=True):
    row = mdp.exponential(space, epsilon).matrix[word]
    likely = np.argsort(row)[::-1][:8]
    axes.barh([vectors.words[one] for one in likely][::-1], row[likely][::-1], color="teal")
    axes.set_title(f'"city" at epsilon {epsilon:g}', fontsize=10)
figure.tight_layout()
figure.savefig("a_word_and_its_reports.png", dpi=80)
