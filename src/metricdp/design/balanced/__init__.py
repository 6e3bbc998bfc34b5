"""Kernels in balance: weights that make all normalisers one, and the proof that hardly any mechanism is better."""

from metricdp.design.balanced.build import balanced_weights, has_separate_kernels, optimal_kernel

__all__ = ["balanced_weights", "has_separate_kernels", "optimal_kernel"]
