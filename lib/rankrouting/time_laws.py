"""Laws of service times and of times between arrivals, each scaled to mean 1.

A law is chosen by its squared coefficient of variation (SCV), variance over squared mean, where it has such a
parameter. The n-th system divides a service time by n, and a time between arrivals by the rate of the stream.
`general` simulates with them. Chapter: service_times.

>>> erlang(4).scv, deterministic().scv, pareto(2.5).scv
(0.25, 0.0, 0.8)
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field, replace

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from . import checks
from .kernels import service

_LARGEST_SCV = 1e6  # of a mixture of exponentials, whose rarer part has about a share of half of one over it


@dataclass(frozen=True)
class TimeLaw:
    """A law of positive times with mean 1; make one with `exponential`, `deterministic`, `erlang` and so on.

    Attributes
    ----------
    name : str
        Short name for tables and figures.
    scv : float
        The variance, which is the squared coefficient of variation.
    third_moment : float
        E T³, infinite for some laws.
    sampler : kernels.service.Sampler
        What the kernel draws from.
    """

    name: str
    scv: float
    third_moment: float
    sampler: service.Sampler
    _transform: Callable[[float], float] = field(repr=False, compare=False)

    def complement(self, s: float) -> float:
        """Return 1 − E exp(−sT) for s ≥ 0, the complement of the Laplace transform, without loss of digits.

        Examples
        --------
        >>> exponential().complement(1.0)
        0.5
        """
        return float(self._transform(checks.real("s", s, at_least=0)))

    def sample(self, size: int, rng: Generator) -> NDArray[np.float64]:
        """Draw `size` independent times.

        Examples
        --------
        >>> deterministic().sample(2, np.random.default_rng(1))
        array([1., 1.])
        """
        size = checks.whole("size", size)
        checks.result_fits(size, name="size")
        out = np.empty(size)
        service.sample_kernel(out, self.sampler, checks.generator(rng))
        return out


def exponential() -> TimeLaw:
    """Return the exponential law, SCV 1: services of the paper's model, and a Poisson stream."""
    return TimeLaw("exponential", 1.0, 6.0, service.Sampler(service.EXPONENTIAL, 0.0, 0.0), lambda s: s / (1 + s))


def deterministic() -> TimeLaw:
    """Return the constant 1, SCV 0."""
    return TimeLaw(
        "deterministic", 0.0, 1.0, service.Sampler(service.DETERMINISTIC, 0.0, 0.0), lambda s: -math.expm1(-s)
    )


def gamma(scv: float) -> TimeLaw:
    """Return the gamma law with this SCV, above 0.

    Raises
    ------
    ValueError
        If `scv` is not above 0.
    """
    scv = checks.real("scv", scv, above=0)
    return TimeLaw(
        f"gamma({scv:g})",
        scv,
        (1 + scv) * (1 + 2 * scv),
        service.Sampler(service.GAMMA, 1 / scv, 0.0),
        lambda s: -math.expm1(-math.log1p(scv * s) / scv),
    )


def erlang(phases: int) -> TimeLaw:
    """Return the law of a sum of so many exponentials, SCV 1/phases: the gamma law of that SCV.

    Raises
    ------
    ValueError
        If `phases` is not a whole number of at least 1.
    """
    m = checks.whole("phases", phases)
    return replace(gamma(1 / m), name=f"Erlang({m})")


def with_scv(scv: float) -> TimeLaw:
    """Return a law with this SCV: deterministic at 0, gamma below 1, exponential at 1, hyperexponential above.

    Raises
    ------
    ValueError
        If `scv` is negative or above 10⁶.

    Examples
    --------
    >>> [with_scv(scv).name for scv in (0.0, 0.5, 1.0, 4.0)]
    ['deterministic', 'gamma(0.5)', 'exponential', 'hyperexponential']
    """
    scv = checks.real("scv", scv, at_least=0, at_most=_LARGEST_SCV)
    if scv == 0:
        return deterministic()
    if scv < 1:
        return gamma(scv)
    return exponential() if scv == 1 else hyperexponential(scv)


def lognormal(scv: float) -> TimeLaw:
    """Return the lognormal law with this SCV, above 0: all moments are finite, no exponential moment is.

    Raises
    ------
    ValueError
        If `scv` is not above 0.
    """
    scv = checks.real("scv", scv, above=0)
    sigma = math.sqrt(math.log1p(scv))

    def transform(s: float) -> float:
        # Gauss-Hermite's nodes would be too few where s is large; the trapezoidal rule is exact to rounding here.
        z = np.linspace(-9.0, 9.0, 2001)
        weights = np.exp(-(z**2) / 2)
        return float(weights @ -np.expm1(-s * np.exp(sigma * (z - sigma / 2))) / weights.sum())

    return TimeLaw(
        "lognormal", scv, (1 + scv) ** 3, service.Sampler(service.LOGNORMAL, -(sigma**2) / 2, sigma), transform
    )


def hyperexponential(scv: float) -> TimeLaw:
    """Return the mixture of two exponentials with this SCV of at least 1 whose parts have equal shares of the mean.

    Raises
    ------
    ValueError
        If `scv` is below 1 or above 10⁶.
    """
    scv = checks.real("scv", scv, at_least=1, at_most=_LARGEST_SCV)
    p = (1 + math.sqrt((scv - 1) / (scv + 1))) / 2
    third = 6 * sum(q / (2 * q) ** 3 for q in (p, 1 - p))
    return TimeLaw(
        "hyperexponential",
        scv,
        third,
        service.Sampler(service.HYPEREXPONENTIAL, p, 0.0),
        lambda s: sum(q * s / (2 * q + s) for q in (p, 1 - p)),
    )


def pareto(index: float) -> TimeLaw:
    """Return the Pareto law, P(T > t) = (t/t₀)^−index for t above t₀ = 1 − 1/index; SCV 1/(index·(index − 2)).

    The second moment is finite, the third only from index 3 on.

    Raises
    ------
    ValueError
        If `index` is not above 2: the limit needs a finite variance.
    """
    index = checks.real("index", index, above=2)
    least = 1 - 1 / index

    def transform(s: float) -> float:
        # 1 − E exp(−sT) = ∫ s exp(−st) P(T > t) dt; beyond t₀ with t = t₀·exp(y).
        from scipy import integrate

        def integrand(y: float) -> float:
            return s * least * math.exp((1 - index) * y - s * least * math.exp(y))

        end = math.log(1 + 745 / max(s * least, 1e-300))
        tail, _ = integrate.quad(integrand, 0, min(end, 40 / (index - 1)), epsabs=0, epsrel=1e-11, limit=200)
        return -math.expm1(-s * least) + tail

    third = index * least**3 / (index - 3) if index > 3 else math.inf
    return TimeLaw(
        f"Pareto({index:g})", 1 / (index * (index - 2)), third, service.Sampler(service.PARETO, index, least), transform
    )
