"""The stationary law of a sparse chain: GMRES with an aggregation multigrid preconditioner.

The generator is scaled by the square root of a guessed law, which makes it nearly symmetric. A
coarser level halves every queue length (states with equal halves are merged, weighted by the
guess), so that slow modes of any length scale are solved on some level. Used by `exact`.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import scipy.linalg
import scipy.sparse as sp
from numpy.typing import NDArray

from ._chain import Floats, Index, States

DENSE_SIZE = 300
TOLERANCE = 1e-14
RESTART = 20
ROUNDS = 15
SWEEPS = 30


class NotConvergedError(RuntimeError):
    """An iteration did not reach its tolerance, so there is no answer to return."""


def stationary_law(matrix: sp.csr_array, states: States, guess: Floats) -> Floats:
    """Return the law annihilated by `matrix`, a transposed generator; raise if it was not reached."""
    scale = float(np.abs(matrix.diagonal()).max())
    best = np.inf
    damped_inverse = 0.7 / matrix.diagonal()
    for _ in range(ROUNDS):
        # The merged chains are good only if the guess is in balance locally.
        for _ in range(SWEEPS):
            guess = guess - damped_inverse * (matrix @ guess)
        root = np.sqrt(guess)
        root /= np.linalg.norm(root)
        scaled = (sp.diags_array(1 / root) @ matrix @ sp.diags_array(root)).tocsr()
        cycle = _Cycle.build(scaled, root, states)
        correction, residual = _gmres(scaled, cycle, -(scaled @ root), TOLERANCE * scale)
        law = (root + correction) * root
        law = np.maximum(law, 0) / np.maximum(law, 0).sum()
        if residual <= TOLERANCE * scale:
            return law
        # The guess was too far off: start again from what has been reached.
        if residual > 0.5 * best:
            break
        best = residual
        guess = np.maximum(law, 1e-12 * guess / guess.sum())
    raise NotConvergedError(
        f"the stationary law of {len(states)} states was not reached: residual {residual / scale:.1e}"
    )


@dataclass(frozen=True)
class _Level:
    matrix: sp.csr_array
    damped_inverse: Floats
    prolong: sp.csr_array
    restrict: sp.csr_array


@dataclass(frozen=True)
class _Cycle:
    """A W-cycle of damped Jacobi smoothing, with a dense solve at the coarsest level."""

    levels: list[_Level]
    coarsest: tuple[NDArray[np.float64], NDArray[np.int32]]

    @classmethod
    def build(cls, matrix: sp.csr_array, root: Floats, states: States) -> _Cycle:
        levels = []
        while len(root) > DENSE_SIZE:
            states = states // 2
            _, sample, merged = np.unique(Index.of(states).keys, return_index=True, return_inverse=True)
            states = states[sample]
            coarse_root = np.sqrt(np.bincount(merged, weights=root**2))
            rows = np.arange(len(root), dtype=np.int32)
            prolong = sp.csr_array((root / coarse_root[merged], (rows, merged.astype(np.int32))))
            restrict = prolong.T.tocsr()
            levels.append(_Level(matrix, 0.7 / matrix.diagonal(), prolong, restrict))
            matrix, root = (restrict @ matrix @ prolong).tocsr(), coarse_root
        dense = matrix.toarray()
        # The rank-one term moves the eigenvalue 0 away and leaves the others.
        dense -= np.abs(dense).max() * np.outer(root, root)
        return cls(levels, scipy.linalg.lu_factor(dense, check_finite=False))

    def __call__(self, residual: Floats, depth: int = 0) -> Floats:
        if depth == len(self.levels):
            return scipy.linalg.lu_solve(self.coarsest, residual, check_finite=False)
        level = self.levels[depth]
        matrix, damped_inverse = level.matrix, level.damped_inverse
        x = damped_inverse * residual
        x += damped_inverse * (residual - matrix @ x)
        coarse_residual = level.restrict @ (residual - matrix @ x)
        coarse = self(coarse_residual, depth + 1)
        if depth + 1 < len(self.levels):
            coarse += self(coarse_residual - self.levels[depth + 1].matrix @ coarse, depth + 1)
        # Piecewise constant corrections are too small for smooth errors; 1.6 was the best of a few.
        x += 1.6 * (level.prolong @ coarse)
        for _ in range(2):
            x += damped_inverse * (residual - matrix @ x)
        return x


def _gmres(matrix: sp.csr_array, cycle: _Cycle, target: Floats, tolerance: float) -> tuple[Floats, float]:
    """Solve matrix·x = target, preconditioned from the right; stop early when it no longer helps."""
    x = np.zeros_like(target)
    before = np.inf
    while True:
        residual = target - matrix @ x
        norm = float(np.linalg.norm(residual))
        if norm <= tolerance or norm > 0.1 * before:
            return x, norm
        before = norm
        basis = [residual / norm]
        hessenberg = np.zeros((RESTART + 1, RESTART))
        for j in range(RESTART):
            vector = matrix @ cycle(basis[j])
            for i, direction in enumerate(basis):
                hessenberg[i, j] = direction @ vector
                vector -= hessenberg[i, j] * direction
            hessenberg[j + 1, j] = np.linalg.norm(vector)
            right = np.zeros(j + 2)
            right[0] = norm
            small = hessenberg[: j + 2, : j + 1]
            y = np.linalg.lstsq(small, right, rcond=None)[0]
            if np.linalg.norm(right - small @ y) <= 0.5 * tolerance:
                break
            basis.append(vector / hessenberg[j + 1, j])
        combined = np.zeros_like(x)
        for weight, direction in zip(y, basis, strict=False):
            combined += weight * direction
        x += cycle(combined)
