"""The specification of mixtures with weights and variances of their own, in slow, plain NumPy.

Nothing here is fast and nothing else calls it but the tests.  Letters as in `algorithm.reference`; v (C, D) are
variances, whatever clusters or features share, and pi (C,) weights.
"""

from __future__ import annotations

import numpy as np
from scipy.special import logsumexp


def log_joint(Y: np.ndarray, mu: np.ndarray, v: np.ndarray, pi: np.ndarray) -> np.ndarray:
    """Log p(c, y_n) = log pi_c - 1/2 sum_d [log(2 pi v_cd) + (y_nd - mu_cd)^2 / v_cd], (N', C)."""
    logs = [
        np.log(pi[c]) - 0.5 * (np.log(2 * np.pi * v[c]) + (Y - mu[c]) ** 2 / v[c]).sum(axis=1)
        for c in range(len(mu))
    ]
    return np.array(logs).T


def winners_of(joints: np.ndarray, space: np.ndarray, size: int) -> np.ndarray:
    """K(n) of one point: the `size` clusters of a search space with the largest joints, the largest first."""
    return space[np.argsort(-joints[space], kind="stable")[:size]]


def responsibilities(joints: np.ndarray, K: np.ndarray) -> np.ndarray:
    """s_c(n) = p(c, y_n) / sum_{c' in K(n)} p(c', y_n) for c in K(n), else 0: (N', C)."""
    inside = np.zeros(joints.shape, bool)
    np.put_along_axis(inside, K.astype(np.int64), True, axis=1)
    joints = np.where(inside, joints, -np.inf)
    s: np.ndarray = np.exp(joints - logsumexp(joints, axis=1, keepdims=True))
    return s


def bound(joints: np.ndarray, gamma: np.ndarray, K: np.ndarray) -> float:
    """F = sum_n gamma_n log sum_{c in K(n)} p(c, y_n)."""
    return float((gamma * logsumexp(np.take_along_axis(joints, K.astype(np.int64), axis=1), axis=1)).sum())


def m_step(
    Y: np.ndarray, gamma: np.ndarray, s: np.ndarray, kind: str
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Weighted means (C, D), variances (C, D) and weights (C,) that maximise F for given s."""
    R = (gamma[:, None] * s).sum(axis=0)
    mu = np.array([(gamma * s[:, c]) @ Y / R[c] for c in range(len(R))])
    squares = np.array([(gamma * s[:, c]) @ (Y - mu[c]) ** 2 for c in range(len(R))])  # (C, D)
    v = squares / R[:, None]
    if kind in ("tied_diag", "isotropic"):
        v = np.tile(squares.sum(axis=0) / R.sum(), (len(R), 1))
    if kind in ("spherical", "isotropic"):
        v = np.tile(v.mean(axis=1, keepdims=True), (1, Y.shape[1]))
    return mu, v, R / R.sum()


def mean_costs(mu: np.ndarray, v: np.ndarray, pi: np.ndarray) -> np.ndarray:
    """-E[log p(c', y) | c] for all pairs (C, C): y has mean mu_c and variance v_c."""
    C = len(mu)
    costs = np.empty((C, C))
    for c in range(C):
        squares = (mu[c] - mu) ** 2 + v[c]
        costs[c] = 0.5 * (np.log(2 * np.pi * v) + squares / v).sum(axis=1) - np.log(pi)
    return costs
