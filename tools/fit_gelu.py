#!/usr/bin/env python3
"""Prints the polynomials of src/kernels/activation_simd.h: minimax fits by Lawson's reweighted least squares.
Needs numpy and scipy. Weights turn the error of the polynomial into the error of the result."""
import numpy as np
from scipy.special import erfc

CLAMP = 5.7


def tail(t):
    return 0.5 * erfc(t / np.sqrt(2))


def density(t):
    return np.exp(-t * t / 2) / np.sqrt(2 * np.pi)


def sensitivity(t):
    """Of GELU and GELU' to the tail: t, and |1 - t hazard| (a little less, to balance the two)."""
    return np.maximum(t, 0.7 * np.abs(1 - t * density(t) / tail(t)))


def fit(function, weight, degree, points=2000, iterations=1000):
    t = 0.5 * CLAMP * (1 - np.cos(np.pi * (np.arange(points) + 0.5) / points))
    basis = np.polynomial.chebyshev.chebvander(2 * t / CLAMP - 1, degree)
    importance, best = np.ones(points), (np.inf, None)
    for _ in range(iterations):
        scale = np.sqrt(importance) * weight(t)
        c = np.linalg.lstsq(basis * scale[:, None], function(t) * scale, rcond=None)[0]
        error = np.abs((basis @ c - function(t)) * weight(t))
        if error.max() < best[0]:
            best = (error.max(), c)
        importance *= error / error.max() + 1e-12
        importance /= importance.sum()
    power = np.polynomial.chebyshev.Chebyshev(best[1], domain=[0, CLAMP]).convert(kind=np.polynomial.Polynomial)
    return best[0], power.coef


for name, function, weight, degree in (
    ("tail^(-1/4)", lambda t: tail(t) ** (-1 / 4), lambda t: 4 * sensitivity(t) * tail(t) ** (5 / 4), 10),
    ("hazard", lambda t: density(t) / tail(t), lambda t: t * tail(t), 7),
):
    error, coefficients = fit(function, weight, degree)
    print(f"{name}: error {error:.2e}, lowest power first")
    print("  " + ", ".join(f"{np.float32(c):.9g}f" for c in coefficients))
