"""Weights of a linear value function from explicit matrices, the intercept without ridge; no code of valuate in it."""

import numpy as np


def weights(phi, next_phi, rewards, discounts, ridge=0.0, ratios=None, multiplicities=None, intercept=True):
    """Weights and intercept: A theta = b with the ridge on all but the last coordinate, by lstsq in float64."""
    phi, next_phi = np.asarray(phi, dtype=np.float64), np.asarray(next_phi, dtype=np.float64)
    n = len(phi)
    rho = np.ones(n) if ratios is None else np.asarray(ratios, dtype=np.float64)
    w = np.ones(n) if multiplicities is None else np.asarray(multiplicities, dtype=np.float64)
    w = w / w.sum()
    if intercept:
        phi, next_phi = np.column_stack([phi, np.ones(n)]), np.column_stack([next_phi, np.ones(n)])
    delta = phi - np.asarray(discounts)[:, None] * next_phi
    a = phi.T @ ((w * rho)[:, None] * delta)
    b = phi.T @ (w * rho * np.asarray(rewards))
    penalty = np.full(len(b), ridge)
    if intercept:
        penalty[-1] = 0.0
    theta = np.linalg.lstsq(a + np.diag(penalty), b, rcond=1e-13)[0]
    return (theta[:-1], theta[-1]) if intercept else (theta, 0.0)
