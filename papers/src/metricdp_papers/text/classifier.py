"""The fixed classifier: the mean vector of a sentence's words, standardised, and logistic regression on it."""

from __future__ import annotations

import numpy as np

from metricdp.arrays import Floats, Integers
from metricdp_papers.text.corpora import Corpus

PENALTY = 1e-3  # on the squared coefficients, beside the mean loss; the same in every run


def accuracy(text: Corpus, codes: Integers) -> float:
    """Learn from the protected training sentences and return the share of protected test sentences that are right."""
    features = mean_vectors(text, codes)
    middle, width = features[text.train].mean(axis=0), features[text.train].std(axis=0)
    features = (features - middle) / np.where(width > 0, width, 1.0)
    features = np.hstack([features, np.ones((len(features), 1))])
    coefficients = fit_weights(features[text.train], text.labels[text.train])
    said = features[text.test] @ coefficients > 0
    return float(np.mean(said == (text.labels[text.test] == 1)))


def mean_vectors(text: Corpus, codes: Integers) -> Floats:
    """Return the mean vector of every sentence; zeros where no word has one."""
    from scipy.sparse import csr_array

    shape = (len(text.labels), len(text.words))
    counted = csr_array((np.ones(len(codes)), (text.sentences, codes)), shape=shape)
    lengths = np.bincount(text.sentences, minlength=shape[0])
    return np.asarray((counted @ text.vectors.astype(float)) / np.maximum(lengths, 1)[:, None])


def fit_weights(features: Floats, labels: Integers) -> Floats:
    """Return the coefficients that minimise the mean logistic loss with the fixed penalty."""
    from scipy.optimize import minimize
    from scipy.special import expit

    signs = np.where(labels == 1, 1.0, -1.0)

    def loss(coefficients: Floats) -> tuple[float, Floats]:
        margins = signs * (features @ coefficients)
        value = np.logaddexp(0.0, -margins).mean() + PENALTY * (coefficients @ coefficients)
        slope = -(features.T @ (signs * expit(-margins))) / len(signs) + 2.0 * PENALTY * coefficients
        return float(value), slope

    return np.asarray(minimize(loss, np.zeros(features.shape[1]), jac=True, method="L-BFGS-B").x)
