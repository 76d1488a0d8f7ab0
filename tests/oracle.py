"""What the library computes, written out with explicit d x d matrices in plain NumPy. Shares no code with it.

Every row t of a log has its own

    A_t = w rho phi delta' + e I,    b_t = w rho r phi,    C_t = w phi phi' + e I,    delta = phi - discount * phi',

with w = n * weight / sum of weights, so that A, b and C are plain means over rows. The paper's gradient of a row at
(theta, omega) is F_t = (-A_t' omega, A_t theta - b_t + C_t omega), and its methods are played as they are printed, on
row orders and batches that are given.
"""

from functools import cached_property

import numpy as np

#: Singular values below this share of the largest count as zero.
CUTOFF = 1e-11


class Oracle:
    """The rows of a log as matrices.

    Parameters
    ----------
    phi, next_phi : (n, d) array
    rewards, discounts : (n,) array
        A discount is 0 after termination.
    ratios, weights : (n,) array, optional
    ridge : float
    """

    def __init__(self, phi, next_phi, rewards, discounts, ratios=None, weights=None, ridge=0.0):
        self.phi = np.array(phi, dtype=np.float64)
        self.n, self.d = self.phi.shape
        self.r = np.array(rewards, dtype=np.float64)
        self.ridge = ridge
        self.direction = "saddle"
        self.rho = np.ones(self.n) if ratios is None else np.array(ratios, dtype=np.float64)
        weights = np.ones(self.n) if weights is None else np.array(weights, dtype=np.float64)
        self.w = self.n * weights / weights.sum()
        self.discounts = np.array(discounts, dtype=np.float64)
        ahead = np.where(self.discounts[:, None] > 0, np.array(next_phi, dtype=np.float64), 0.0)
        self.delta = self.phi - self.discounts[:, None] * ahead
        self.identity = np.eye(self.d)
        self.ridge_matrix = ridge * self.identity

    # ---- the matrices of every row, and their means

    @cached_property
    def data_A(self):
        """A_t of every row without the ridge: (n, d, d)."""
        return (self.w * self.rho)[:, None, None] * self.phi[:, :, None] * self.delta[:, None, :]

    @cached_property
    def data_b(self):
        """b_t of every row: (n, d)."""
        return (self.w * self.rho * self.r)[:, None] * self.phi

    @cached_property
    def data_C(self):
        """C_t of every row without the ridge: (n, d, d)."""
        return self.w[:, None, None] * self.phi[:, :, None] * self.phi[:, None, :]

    @property
    def A(self):
        """Mean of A_t."""
        return self.data_A.mean(axis=0) + self.ridge * self.identity

    @property
    def b(self):
        """Mean of b_t."""
        return self.data_b.mean(axis=0)

    @property
    def C(self):
        """Mean of C_t."""
        return self.data_C.mean(axis=0) + self.ridge * self.identity

    # ---- where a row moves a point: "saddle" is the paper's gradient field, the others are older methods

    def data_field(self, t, theta, omega):
        """The move of row t without the ridge's part: (2, d)."""
        a, c = self.data_A[t], self.data_C[t]
        towards = a @ theta - self.data_b[t]
        if self.direction == "td":
            return np.array([towards, 0 * omega])
        if self.direction == "tdc":
            # rho (error phi - discount phi' (phi omega)), as printed, with the sign of a descent
            ahead = self.phi[t] - self.delta[t]
            corrected = towards + self.w[t] * self.rho[t] * ahead * (self.phi[t] @ omega)
            return np.array([corrected, towards + c @ omega])
        return np.array([-a.T @ omega, towards + (omega if self.direction == "gtd" else c @ omega)])

    def ridge_field(self, theta, omega):
        """What the ridge, e I in A_t and in C_t, adds to the move of every row: (2, d)."""
        on_theta, on_omega = self.ridge_matrix @ theta, self.ridge_matrix @ omega
        return {
            "saddle": np.array([-on_omega, on_theta + on_omega]),
            "td": np.array([on_theta, 0 * omega]),
            "tdc": np.array([on_theta, on_theta + on_omega]),
            "gtd": np.array([-on_omega, on_theta]),
        }[self.direction]

    def field(self, t, theta, omega):
        """F_t: (2, d)."""
        return self.data_field(t, theta, omega) + self.ridge_field(theta, omega)

    def mean_field(self, theta, omega, batch=None):
        """Mean of F_t over the rows of ``batch``, or all: (2, d)."""
        batch = range(self.n) if batch is None else batch
        return sum(self.field(t, theta, omega) for t in batch) / len(batch)

    # ---- exact answers

    def solve(self):
        """The theta with A theta = b."""
        return np.linalg.solve(self.A, self.b)

    def mspbe(self, theta):
        """1/2 (b - A theta)' C^+ (b - A theta), by a projection on the rows: no matrix is inverted or squared.

        With X the rows of root(w) phi (and root(n e) I below), C = X'X / n and b - A theta = X't / n; so the MSPBE is
        half the squared length of t projected on the columns of X, over n.
        """
        target, slope, basis = self._projection()
        part = basis.T @ (target - slope @ np.asarray(theta, dtype=np.float64))
        return 0.5 * float(part @ part) / self.n

    def relative_residual(self, theta):
        """Root of the MSPBE over that at zero."""
        return float(np.sqrt(self.mspbe(theta) / self.mspbe(np.zeros(self.d))))

    def smallest_minimiser(self):
        """The minimiser of the MSPBE with the smallest norm, by least squares on the projected rows."""
        target, slope, basis = self._projection()
        return np.linalg.lstsq(basis.T @ slope, basis.T @ target, rcond=CUTOFF)[0]

    def _projection(self):
        root = np.sqrt(self.w)[:, None]
        below = np.sqrt(self.n * self.ridge) * self.identity
        x = np.vstack([root * self.phi, below])
        lengths = np.sqrt((x**2).sum(axis=0))
        u, sizes, _ = np.linalg.svd(x / np.where(lengths > 0, lengths, 1), full_matrices=False)
        basis = u[:, sizes > CUTOFF * sizes[0]]
        target = np.concatenate([root[:, 0] * self.rho * self.r, np.zeros(self.d)])
        slope = np.vstack([root * self.rho[:, None] * self.delta, below])
        return target, slope, basis

    # ---- the methods of the paper

    def plain(self, events, steps, start=None):
        """GTD2, TD, TDC and GTD, by direction: z <- z - s F_t(z). See `anchored` for the arguments."""
        z, s = self._begin(start, steps)
        for kind, order in events:
            assert kind == "steps"
            for t in order:
                z = z - s * self.field(t, *z)
        return z

    def anchored(self, events, steps, start=None):
        """SVRG, batching SVRG and SCSG: z <- z - s (F_t(z) - F_t(anchor) + mu).

        Parameters
        ----------
        events : list of ("mean", batch) and ("steps", order)
            ``batch`` is None for all rows. A mean makes the current point the anchor.
        steps : (step_theta, step_omega)
        start : (theta, omega), optional

        Returns
        -------
        (2, d) array, theta and omega
        """
        z, s = self._begin(start, steps)
        anchor = mu = None
        for kind, order in events:
            if kind == "mean":
                anchor, mu = z.copy(), self.mean_field(*z, order)
            else:
                for t in order:
                    z = z - s * (self.field(t, *z) - self.field(t, *anchor) + mu)
        return z

    def saga(self, events, steps, start=None):
        """SAGA with a table of every row's last gradient, without the ridge, whose part is taken where z is."""
        z, s = self._begin(start, steps)
        table = None
        for kind, order in events:
            if kind == "mean":
                assert table is None
                table = np.array([self.data_field(t, *z) for t in range(self.n)])
            else:
                for t in order:
                    fresh = self.data_field(t, *z)
                    z = z - s * (fresh - table[t] + table.mean(axis=0) + self.ridge_field(*z))
                    table[t] = fresh
        return z

    def _begin(self, start, steps):
        z = np.zeros((2, self.d)) if start is None else np.array(start, dtype=np.float64)
        return z, np.array(steps, dtype=np.float64)[:, None]
