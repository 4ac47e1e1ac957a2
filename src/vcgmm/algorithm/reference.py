"""The specification: every step in slow, plain NumPy, one function per equation.

Nothing here is fast and nothing else calls it but the tests, which hold the kernels to it.  Letters are the
paper's: Y (N', D) points, gamma (N',) weights, mu (C, D) means, K (N', C') winners, G (C, G) neighbours,
sigma2 the variance.
"""

from __future__ import annotations

import numpy as np
from scipy.special import logsumexp


def squared_distances(Y: np.ndarray, mu: np.ndarray) -> np.ndarray:
    """||y_n - mu_c||^2 for all pairs, (N', C)."""
    return np.array([[np.sum((y - m) ** 2) for m in mu] for y in Y], dtype=np.float64)


# ------------------------------------------------------------------------------------------------------- coreset


def coreset_probabilities(Y: np.ndarray, w: np.ndarray) -> np.ndarray:
    """q(n) = w / (2 sum w) + w d^2 / (2 sum w d^2), d the distance to the weighted mean (lightweight coreset)."""
    mean = (w[:, None] * Y).sum(axis=0) / w.sum()
    d2 = ((Y - mean) ** 2).sum(axis=1)
    if (w * d2).sum() == 0:
        return w / w.sum()
    return 0.5 * w / w.sum() + 0.5 * w * d2 / (w * d2).sum()


def coreset_weights(w: np.ndarray, q: np.ndarray, size: int) -> np.ndarray:
    """Gamma = w / (N' q) of a row that is drawn once."""
    return w / (size * q)


# ------------------------------------------------------------------------------------------------------- seeding


def d2_probabilities(Y: np.ndarray, gamma: np.ndarray, centers: np.ndarray) -> np.ndarray:
    """Probability of each point to be the next centre: gamma d^2 / sum gamma d^2 to the nearest centre so far."""
    mass = gamma * squared_distances(Y, centers).min(axis=1)
    return mass / mass.sum()


def afkmc2_proposal(Y: np.ndarray, gamma: np.ndarray, first: int) -> np.ndarray:
    """q(n) = gamma d_1^2 / (2 sum gamma d_1^2) + gamma / (2 sum gamma), d_1 the distance to the first centre."""
    return 0.5 * d2_probabilities(Y, gamma, Y[first : first + 1]) + 0.5 * gamma / gamma.sum()


def afkmc2_chain(
    Y: np.ndarray, gamma: np.ndarray, q: np.ndarray, centers: np.ndarray, proposals: np.ndarray, u: np.ndarray
) -> int:
    """Last state of one Markov chain: y replaces x if u < (gamma_y d_y^2 / q_y) / (gamma_x d_x^2 / q_x)."""
    d2 = squared_distances(Y[proposals], centers).min(axis=1)
    x = 0
    for y in range(1, len(proposals)):
        new = gamma[proposals[y]] * d2[y] / q[proposals[y]]
        old = gamma[proposals[x]] * d2[x] / q[proposals[x]]
        if d2[x] == 0 or u[y] * old < new:
            x = y
    return int(proposals[x])


def removal_losses(Y: np.ndarray, gamma: np.ndarray, mu: np.ndarray) -> np.ndarray:
    """L_c: by how much the error grows if cluster c is taken away and its points go to their second nearest."""
    error = quantization_error(Y, gamma, mu)
    return np.array([quantization_error(Y, gamma, np.delete(mu, c, axis=0)) - error for c in range(len(mu))])


# -------------------------------------------------------------------------------------------------------- E-step


def search_space(winners: np.ndarray, G: np.ndarray, explored: np.ndarray) -> np.ndarray:
    """G(n), the union of G_c over c in K(n), and the explored clusters, of one point."""
    return np.unique(np.concatenate([G[winners].ravel(), explored]))


def nearest_of(y: np.ndarray, mu: np.ndarray, space: np.ndarray, size: int) -> np.ndarray:
    """K(n): the `size` clusters of a search space nearest to y, nearest first."""
    d2 = squared_distances(y[None], mu[space])[0]
    return space[np.argsort(d2, kind="stable")[:size]]


def cluster_distances(Y: np.ndarray, mu: np.ndarray, spaces: list[np.ndarray], nearest: np.ndarray) -> np.ndarray:
    """d_cc', the mean of ||y_n - mu_c'|| over the n in I_c that evaluated c'; else infinite; d_cc = 0."""
    C = len(mu)
    total, count = np.zeros((C, C)), np.zeros((C, C))
    for n, space in enumerate(spaces):
        d = np.sqrt(squared_distances(Y[n : n + 1], mu[space])[0])
        total[nearest[n], space] += d
        count[nearest[n], space] += 1
    d_cc = np.full((C, C), np.inf)
    d_cc[count > 0] = total[count > 0] / count[count > 0]
    np.fill_diagonal(d_cc, 0.0)
    return d_cc


def update_neighbors(d_cc: np.ndarray, old: np.ndarray) -> np.ndarray:
    """G_c: the G clusters with the smallest d_cc', itself first; the old ones fill up where too few are known."""
    new = np.empty_like(old)
    for c, row in enumerate(d_cc):
        row = np.where(np.arange(len(row)) == c, -1.0, row)  # itself leads, also before a neighbour at distance 0
        known = [int(k) for k in np.argsort(row, kind="stable") if np.isfinite(row[k])]
        known += [int(k) for k in old[c] if int(k) not in known]
        new[c] = known[: old.shape[1]]
    return new


def variational_e_step(
    Y: np.ndarray, mu: np.ndarray, K: np.ndarray, G: np.ndarray, explored: np.ndarray
) -> tuple[np.ndarray, np.ndarray, int]:
    """Algorithm 2: new K, new G, and the number of distances evaluated."""
    spaces = [search_space(K[n], G, explored[n]) for n in range(len(Y))]
    new_K = np.array([nearest_of(y, mu, space, K.shape[1]) for y, space in zip(Y, spaces, strict=True)])
    d_cc = cluster_distances(Y, mu, spaces, new_K[:, 0])
    return new_K, update_neighbors(d_cc, G), sum(len(space) for space in spaces)


def log_joint(Y: np.ndarray, mu: np.ndarray, sigma2: float) -> np.ndarray:
    """Log p(c, y_n) = -log C - D/2 log(2 pi sigma^2) - ||y_n - mu_c||^2 / (2 sigma^2), (N', C)."""
    C, D = mu.shape
    normaliser = np.log(C) + 0.5 * D * np.log(2 * np.pi * sigma2)
    return -normaliser - squared_distances(Y, mu) / (2 * sigma2)


def responsibilities(Y: np.ndarray, mu: np.ndarray, sigma2: float, K: np.ndarray) -> np.ndarray:
    """s_c(n) = p(c, y_n) / sum_{c' in K(n)} p(c', y_n) for c in K(n), else 0: (N', C), Eq. (3)."""
    joint = log_joint(Y, mu, sigma2)
    inside = np.zeros(joint.shape, bool)
    np.put_along_axis(inside, K.astype(np.int64), True, axis=1)
    joint = np.where(inside, joint, -np.inf)
    s: np.ndarray = np.exp(joint - logsumexp(joint, axis=1, keepdims=True))
    return s


# ------------------------------------------------------------------------------------------- M-step and objective


def initial_variance(Y: np.ndarray, gamma: np.ndarray, mu: np.ndarray, K: np.ndarray) -> float:
    """sigma^2_init = sum gamma min_{c in K(n)} ||mu_c - y_n||^2 / (D sum gamma), Eq. (8)."""
    d2 = np.take_along_axis(squared_distances(Y, mu), K.astype(np.int64), axis=1).min(axis=1)
    return float((gamma * d2).sum() / (Y.shape[1] * gamma.sum()))


def m_step(Y: np.ndarray, gamma: np.ndarray, s: np.ndarray, mu: np.ndarray) -> tuple[np.ndarray, float]:
    """Weighted means and shared variance, Eq. (6); a cluster without weight stays where it is."""
    mass = (gamma[:, None] * s).sum(axis=0)
    new = mu.astype(np.float64).copy()
    for c in np.flatnonzero(mass > 0):
        new[c] = (gamma[:, None] * s[:, [c]] * Y).sum(axis=0) / mass[c]
    scatter = (gamma[:, None] * s * squared_distances(Y, new)).sum()
    return new, float(scatter / (Y.shape[1] * gamma.sum()))


def sphere_m_step(Y: np.ndarray, gamma: np.ndarray, s: np.ndarray, mu: np.ndarray) -> tuple[np.ndarray, float]:
    """Rows of length 1: means mu_c = S_c / ||S_c|| with S_c = sum_n gamma s_c y_n, and the variance about them."""
    sums = (gamma[:, None] * s).T @ Y
    new = mu.astype(np.float64).copy()
    for c in np.flatnonzero(np.linalg.norm(sums, axis=1) > 0):
        new[c] = sums[c] / np.linalg.norm(sums[c])
    scatter = (gamma[:, None] * s * squared_distances(Y, new)).sum()
    return new, float(scatter / (Y.shape[1] * gamma.sum()))


def bound(Y: np.ndarray, gamma: np.ndarray, mu: np.ndarray, sigma2: float, K: np.ndarray) -> float:
    """F(K, Theta) = sum_n gamma_n log sum_{c in K(n)} p(c, y_n), the simplified bound."""
    joint = np.take_along_axis(log_joint(Y, mu, sigma2), K.astype(np.int64), axis=1)
    return float((gamma * logsumexp(joint, axis=1)).sum())


def bound_with_entropy(
    Y: np.ndarray, gamma: np.ndarray, mu: np.ndarray, sigma2: float, K: np.ndarray, s: np.ndarray
) -> float:
    """F(K, Theta^, Theta) = sum_n gamma_n sum_{c in K(n)} s_c log(p(c, y_n) / s_c), Eq. (4)."""
    joint = np.take_along_axis(log_joint(Y, mu, sigma2), K.astype(np.int64), axis=1)
    share = np.take_along_axis(s, K.astype(np.int64), axis=1)
    terms = np.where(share > 0, share * (joint - np.log(np.where(share > 0, share, 1.0))), 0.0)
    return float((gamma * terms.sum(axis=1)).sum())


def log_likelihood(Y: np.ndarray, gamma: np.ndarray, mu: np.ndarray, sigma2: float) -> float:
    """L_core(Theta) = sum_n gamma_n log p(y_n), Eq. (2)."""
    return float((gamma * logsumexp(log_joint(Y, mu, sigma2), axis=1)).sum())


def quantization_error(Y: np.ndarray, gamma: np.ndarray, mu: np.ndarray) -> float:
    """sum_n gamma_n min_c ||y_n - mu_c||^2."""
    return float((gamma * squared_distances(Y, mu).min(axis=1)).sum())


def vc_gmm(
    Y: np.ndarray, gamma: np.ndarray, mu: np.ndarray, K: np.ndarray, G: np.ndarray, n_iter: int
) -> tuple[np.ndarray, float, np.ndarray, np.ndarray, list[float]]:
    """The loop of Algorithm 1 from a given start: means, variance, K, G and F after each E-step."""
    none = np.empty((len(Y), 0), np.int64)
    sigma2, bounds = None, []
    for _ in range(n_iter):
        K, G, _ = variational_e_step(Y, mu, K, G, none)
        sigma2 = initial_variance(Y, gamma, mu, K) if sigma2 is None else sigma2
        bounds.append(bound(Y, gamma, mu, sigma2, K))
        mu, sigma2 = m_step(Y, gamma, responsibilities(Y, mu, sigma2, K), mu)
    return mu, float(sigma2 or np.nan), K, G, bounds


# ------------------------------------------------------------------------------------------------------- k-means


def k_means(
    Y: np.ndarray, gamma: np.ndarray, mu: np.ndarray, n_iter: int
) -> tuple[np.ndarray, np.ndarray, list[float]]:
    """Lloyd's algorithm as EM with one winner among all clusters: means, labels, and F after each assignment."""
    sigma2, bounds = None, []
    for _ in range(n_iter):
        K = squared_distances(Y, mu).argmin(axis=1)[:, None]
        sigma2 = initial_variance(Y, gamma, mu, K) if sigma2 is None else sigma2
        bounds.append(bound(Y, gamma, mu, sigma2, K))
        s = (np.arange(len(mu)) == K).astype(np.float64)
        mu, sigma2 = m_step(Y, gamma, s, mu)
    return mu, K[:, 0], bounds
