"""Shared parts: the tables, the robust fit with priors, and the variance components."""
import math
import os

os.environ.setdefault('OMP_NUM_THREADS', '1')
import numpy as np
import pandas as pd
from scipy.optimize import least_squares, minimize
from scipy.stats import t as student

import nets

# The published tables and measurements; they are not part of the repository.
DATA = os.environ.get('STEPCAST_DATA', os.path.join(os.path.dirname(__file__), '../../../shared/data'))


class Cols:
    """Columns of a table as arrays, so that a formula reads as in docs/priors.md."""

    def __init__(self, frame, numbers, flags):
        for k in numbers:
            setattr(self, k, frame[k].to_numpy(dtype=float))
        for k in flags:
            setattr(self, k, frame[k].to_numpy(dtype=bool))
        self.n = len(frame)


class Model:
    """Constants with priors {name: (median, sigma of ln, unit, where the prior comes from)} and a formula."""

    def __init__(self, priors, predict, groups):
        self.priors, self.formula, self.groups = priors, predict, groups
        self.names = list(priors)
        self.mu = np.log([priors[k][0] for k in self.names])
        self.sg = np.array([priors[k][1] for k in self.names])

    def values(self, x):
        return dict(zip(self.names, np.exp(x)))

    def predict(self, x, c):
        return self.formula(self.values(x), c)

    def fit(self, c, T, w, sd, curvature=False):
        """Least squares on ln(T / predicted) with soft-L1 loss, plus the priors. All logarithmic."""
        def res(x):
            r = np.log(T / self.predict(x, c)) / sd
            r = np.sign(r) * np.sqrt(2 * (np.sqrt(1 + r * r) - 1))
            return np.concatenate([w * r, (x - self.mu) / self.sg])
        s = least_squares(res, self.mu, max_nfev=60)
        if curvature:
            return s.x, np.sqrt(np.diag(np.linalg.inv(s.jac.T @ s.jac)))
        return s.x

    def sensitivities(self, x, c):
        """d ln(step) / d ln(constants of a group), one column for each group."""
        eps = 0.02
        out = []
        for members in self.groups.values():
            up, down = x.copy(), x.copy()
            for k in members:
                sign = -1 if k.startswith('-') else 1
                i = self.names.index(k.lstrip('-'))
                up[i] += eps * sign
                down[i] -= eps * sign
            out.append((np.log(self.predict(up, c)) - np.log(self.predict(down, c))) / (2 * eps))
        return np.array(out).T


def capped(keys, most):
    """Weights such that all rows of one key count as at most `most` rows."""
    _, i, n = np.unique(np.asarray(keys, dtype=str), return_inverse=True, return_counts=True)
    return np.sqrt(np.minimum(n, most) / n)[i]


def components(r, J, cellJ, family, cell, start=0.15, width=1.0, cap=120, seed=0, floor=0.02, clip=0.6):
    """Standard deviations by maximum likelihood: of each group of constants between families, of the cells of a
    family (times the share of the step that is not plain computing), and of rows. r: residuals ln(measured /
    predicted)."""
    rng = np.random.default_rng(seed)
    r = np.clip(r, -clip, clip)
    start, width = np.broadcast_to(start, J.shape[1] + 2), np.broadcast_to(width, J.shape[1] + 2)
    blocks = []
    for f in np.unique(family):
        i = np.flatnonzero(family == f)
        if len(i) > cap:
            i = rng.choice(i, cap, replace=False)
        same = (cell[i][:, None] == cell[i][None, :]) * np.outer(cellJ[i], cellJ[i])
        blocks.append((r[i], J[i], same, np.sqrt(min(len(i), 40) / len(i))))
    k = J.shape[1]

    def nll(p):
        s = np.exp(p)
        total = 0.5 * np.sum(((p - np.log(start)) / width) ** 2)
        for ri, Ji, same, w in blocks:
            V = (Ji * s[:k] ** 2) @ Ji.T + s[k] ** 2 * same + (s[k + 1] ** 2 + floor ** 2 / 4) * np.eye(len(ri))
            L = np.linalg.cholesky(V)
            z = np.linalg.solve(L, ri)
            total += w * w * (0.5 * z @ z + np.log(np.diag(L)).sum())
        return total
    s = minimize(nll, np.log(start), method='L-BFGS-B', bounds=[(-5, 1)] * (k + 2), options=dict(maxiter=60))
    return np.exp(s.x)


def spread(s, J, cellJ, floor=0.02):
    k = J.shape[1]
    return np.sqrt((J ** 2 * s[:k] ** 2).sum(1) + (s[k] * cellJ) ** 2 + s[k + 1] ** 2 + floor ** 2)


def coverage(lr, half, family):
    hit = np.abs(lr) <= half
    by = pd.Series(hit).groupby(np.asarray(family)).mean()
    return hit.mean(), by
