"""Sums of independent exponential variables, against laws computed in other ways."""

from decimal import Decimal, localcontext
from math import prod

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from rankrouting.analytic.hypoexponential import Hypoexponential
from scipy import stats

LEVELS = np.array([1e-12, 1e-6, 0.01, 0.3, 0.6, 0.99, 1 - 1e-9])


def exact(rates, points):
    """Rows of cdf, sf and pdf by the signed sum of exponentials, in 350 digits; rates must differ."""
    with localcontext() as context:
        context.prec = 350
        r = [Decimal(float(rate)) for rate in rates]
        weights = [prod((b / (b - a) for b in r if b != a), start=Decimal(1)) for a in r]
        rows = []
        for x in points:
            terms = [w * (-a * Decimal(float(x))).exp() for w, a in zip(weights, r, strict=True)]
            sf, pdf = sum(terms), sum(t * a for t, a in zip(terms, r, strict=True))
            rows.append((float(1 - sf), float(sf), float(pdf)))
    return np.array(rows)


@pytest.mark.parametrize(
    "rates",
    [
        [0.3],
        [1.0, 1e-8],
        [0.1, *(0.3 + 1e-9 * np.arange(9))],
        np.arange(1.0, 31.0),
        np.exp(np.linspace(-20, 20, 25)),
        [1.0, *(100 + 0.01 * np.arange(25))],
        [*(1e-6 * (1 + np.arange(10))), *(1 + 0.1 * np.arange(15))],
    ],
    ids=["one", "two scales", "nearly equal", "linear", "log-uniform", "one slow", "two groups"],
)
def test_both_tails_to_nine_digits(rates):
    law = Hypoexponential(rates)
    points = np.concatenate([law.quantile(LEVELS), law.mean * np.array([1e-3, 0.999, 1.001, 3, 30])])
    values = np.column_stack([law.cdf(points), law.sf(points), law.pdf(points)])
    expected = exact(rates, points)
    np.testing.assert_allclose(values, expected, rtol=1e-11, atol=1e-300)
    np.testing.assert_allclose(expected[: len(LEVELS), 0], LEVELS, rtol=1e-11)


@pytest.mark.parametrize("m", [1, 2, 9, 200])
def test_equal_rates_are_gamma(m):
    law, gamma = Hypoexponential([0.7] * m), stats.gamma(m, scale=1 / 0.7)
    x = gamma.ppf(LEVELS)
    np.testing.assert_allclose(law.quantile(LEVELS), x, rtol=1e-8)
    np.testing.assert_allclose(law.cdf(x), gamma.cdf(x), rtol=1e-9)
    np.testing.assert_allclose(law.sf(x), gamma.sf(x), rtol=1e-9)
    np.testing.assert_allclose(law.pdf(x), gamma.pdf(x), rtol=1e-9)
    nearly = Hypoexponential(0.7 * (1 + 1e-12 * np.arange(m)))
    np.testing.assert_allclose(nearly.cdf(x), gamma.cdf(x), rtol=1e-7)


def test_coupon_collector():
    # The largest of m independent Exp(1) is a sum of Exp(1), …, Exp(m).
    law, x = Hypoexponential(np.arange(1, 151)), np.linspace(0.5, 20, 40)
    np.testing.assert_allclose(law.cdf(x), (-np.expm1(-x)) ** 150, rtol=1e-11)


NODES, WEIGHTS = np.polynomial.legendre.leggauss(40)


@settings(deadline=None, max_examples=30)
@given(st.lists(st.floats(1e-3, 1e3), min_size=1, max_size=12))
def test_moments_and_derivative(rates):
    law = Hypoexponential(rates)
    # The density has as many scales as there are rates: pieces of x of doubling length.
    ends = law.mean * np.append(0, 2.0 ** np.arange(-25, 6))
    half = np.diff(ends)[:, None] / 2
    x = ends[:-1, None] + half * (1 + NODES)
    moments = np.array([np.sum(half * WEIGHTS * law.pdf(x) * (x / law.mean) ** j) for j in range(3)])
    expected = [1, 1, 1 + law.variance / law.mean**2]
    np.testing.assert_allclose(moments, expected, rtol=1e-6)
    assert not np.allclose(1.05 * moments, expected, rtol=1e-6)

    x = law.quantile(np.linspace(0.02, 0.98, 25))
    h = 1e-4 * x
    np.testing.assert_allclose((law.cdf(x + h) - law.cdf(x - h)) / (2 * h), law.pdf(x), rtol=1e-4)
    assert np.all(np.diff(law.cdf(x)) > 0)
    np.testing.assert_allclose(law.cdf(x) + law.sf(x), 1, rtol=1e-13)
    np.testing.assert_allclose(law.cdf(x), np.linspace(0.02, 0.98, 25), rtol=1e-10)


def test_shapes_and_edges():
    law = Hypoexponential([2.0, np.inf, 1.0])
    assert law.rates.tolist() == [2.0, 1.0]
    assert isinstance(law.cdf(1.0), float) and isinstance(law.quantile(0.5), float)
    assert law.cdf([[1.0, 2.0]]).shape == law.pdf([[1.0, 2.0]]).shape == law.quantile([[0.2, 0.4]]).shape == (1, 2)
    assert law.cdf([]).shape == law.quantile([]).shape == (0,)
    np.testing.assert_array_equal(law.cdf([-1.0, 0.0]), 0)
    np.testing.assert_array_equal(law.sf([-1.0, 0.0]), 1)
    np.testing.assert_array_equal(law.pdf([-1.0, 0.0]), 0)
    assert Hypoexponential([2.0]).pdf(0.0) == 2.0
    assert law.sf(1e6) == 0 and law.cdf(1e6) == 1
    many = np.linspace(0.1, 5, 1500)
    np.testing.assert_array_equal(law.cdf(many)[-3:], law.cdf(many[-3:]))


def test_no_finite_rate_is_the_constant_zero():
    law = Hypoexponential([np.inf, np.inf])
    assert (law.mean, law.variance, law.quantile(0.3)) == (0, 0, 0)
    np.testing.assert_array_equal(law.cdf([-1.0, 0.0, 1.0]), [0, 1, 1])
    np.testing.assert_array_equal(law.sf([-1.0, 0.0, 1.0]), [1, 0, 0])
    with pytest.raises(ValueError, match="no density"):
        law.pdf(1.0)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: Hypoexponential([1.0, 0.0]), r"rates\[1\] = 0: must be above 0"),
        (lambda: Hypoexponential([np.nan]), r"rates\[0\] = nan: must be above 0"),
        (lambda: Hypoexponential([[1.0]]), r"rates of shape \(1, 1\): must be a vector"),
        (lambda: Hypoexponential([1.0]).quantile([0.5, 1.0]), "q = 1: must be a finite number, above 0, below 1"),
        (lambda: Hypoexponential([1.0]).cdf(np.nan), "x = nan: must be finite"),
    ],
)
def test_refuses(call, message):
    with pytest.raises(ValueError, match=message):
        call()
