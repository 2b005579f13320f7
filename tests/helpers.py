"""How a stochastic test decides: the error in units of its Monte Carlo standard error."""

import numpy as np
import pytest
from rankrouting import System, mjsq
from scipy import stats


def assert_within(estimate, target, sigmas=4.5, allowance=0.0):
    """Every entry of an Estimate is within `sigmas` standard errors, plus a known bias, of its target."""
    value, error = np.asarray(estimate.value), np.asarray(estimate.standard_error)
    difference = np.abs(value - target)
    assert np.all(np.isfinite(difference)) and np.all(np.isfinite(error)), "not a finite estimate"
    assert np.all(difference <= sigmas * error + allowance), (
        f"{value} ± {error} is not {target}: off by {difference / error} standard errors"
    )


def assert_detects(estimate, wrong, sigmas=4.5, allowance=0.0):
    """The same check refuses this wrong target: it is sharp enough to fail."""
    with pytest.raises(AssertionError, match="standard errors"):
        assert_within(estimate, wrong, sigmas, allowance)


def assert_law(rows, states, probabilities, level=1e-4):
    """Independent integer rows (N, K) have this law on states (S, K), by a chi-square test.

    States expected fewer than ten times are pooled; rows outside the states count with the pool.
    """
    rows, states = np.asarray(rows), np.asarray(states)
    expected = len(rows) * np.asarray(probabilities, dtype=float)
    index = {tuple(state): i for i, state in enumerate(states.tolist())}
    counts = np.zeros(len(states) + 1)
    np.add.at(counts, [index.get(tuple(row), len(states)) for row in rows.tolist()], 1)
    common = expected >= 10
    observed = np.append(counts[:-1][common], len(rows) - counts[:-1][common].sum())
    wanted = np.append(expected[common], len(rows) - expected[common].sum())
    if wanted[-1] < 10:
        observed[-2], wanted[-2] = observed[-2:].sum(), wanted[-2:].sum()
        observed, wanted = observed[:-1], wanted[:-1]
    assert len(wanted) > 3, "too few cells to tell"
    p_value = stats.chisquare(observed, wanted, sum_check=False).pvalue
    assert p_value > level, f"not this law: chi-square p = {p_value:.2g}"


def assert_same_law(rows, others, level=1e-4):
    """Two sets of independent integer rows have the same law, by a chi-square test of homogeneity."""
    values, place = np.unique(np.concatenate([rows, others]), axis=0, return_inverse=True)
    place = place.ravel()
    table = np.array([np.bincount(part, minlength=len(values)) for part in (place[: len(rows)], place[len(rows) :])])
    common = table.sum(axis=0) >= 40
    table = np.column_stack([table[:, common], table[:, ~common].sum(axis=1)])
    table = table[:, table.sum(axis=0) > 0]
    assert table.shape[1] > 2, "too few cells to tell"
    p_value = stats.chi2_contingency(table).pvalue
    assert p_value > level, f"not the same law: chi-square p = {p_value:.2g}"


def assert_pinned(value, independent, rtol=1e-9):
    """The value is the independent one, and would not be if it were 5 % larger."""
    np.testing.assert_allclose(value, independent, rtol=rtol)
    with pytest.raises(AssertionError):
        np.testing.assert_allclose(1.05 * np.asarray(value), independent, rtol=rtol)


def mjsq_system(n=10_000, K=5, upsilon=1.0, c=3.0):
    return System(n=n, K=K, upsilon=upsilon, policy=mjsq(c))
