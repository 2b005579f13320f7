/*
 * The formulas of the explorer. Each comment opens with the label of its theorem in the book, as the
 * docstrings of rankrouting.analytic do, and tests/browser/test_explorer.py compares the two.
 *
 * A system is {K, upsilon, policy, c, d}: K queues with slack upsilon > 0, routed by policy "random", "mjsq",
 * "marginal" (marginal JSQ(d)) or "jsq"; c >= 0 is the rate of the ranked stream over √n, for "mjsq" and
 * "marginal", and d the number of queues that "marginal" samples, 1 to K. Lengths are in limit units, jobs
 * divided by √n. Rank k is at index k − 1, the shortest first; m = K − k + 1 queues are at rank k or above.
 */
(function (root) {
  "use strict";

  const sum = (values) => values.reduce((total, value) => total + value, 0);

  /* The rate of the ranked stream over √n, and how many queues a ranked job looks at. */
  function ranking({ K, policy, c, d }) {
    if (policy === "random") return { c: 0, d: K };
    return { c, d: policy === "marginal" ? d : K };
  }

  /*
   * thm-gap-law: the stationary gaps are independent and exponential with rates θ_k = −Σ_{j≥k} δ_j.
   *
   * With δ_k = c p_k − (υ+c)/K and p_k = C(K−k, d−1)/C(K, d) this is (m/K)(υ + c(1 − Π_{0<i<d} (m−i)/(K−i))):
   * all m queues are sampled with probability C(m, d)/C(K, d). MJSQ is d = K, where the product is 0 for k > 1.
   * Under JSQ all queues are equal: the rates beyond the first are infinite.
   */
  function gapRates(system) {
    const { K, upsilon } = system;
    if (system.policy === "jsq") return Array.from({ length: K }, (_, index) => (index === 0 ? upsilon : Infinity));
    const { c, d } = ranking(system);
    return Array.from({ length: K }, (_, index) => {
      const m = K - index;
      let product = 1;
      for (let i = 1; i < d; i += 1) product *= Math.max(m - i, 0) / (K - i);
      return (m / K) * (upsilon + c * (1 - product));
    });
  }

  /* thm-gap-law: E Z_k = 1/θ_k. */
  const gapMeans = (system) => gapRates(system).map((rate) => 1 / rate);

  /* thm-gap-law: E x_(1) = 1/θ_1, which is 1/υ under every policy. */
  const meanMin = (system) => gapMeans(system)[0];

  /* thm-gap-law: E x_(K) = Σ_k 1/θ_k; under MJSQ 1/υ + K·H_{K−1}/(υ+c), H the harmonic numbers. */
  const meanMax = (system) => sum(gapMeans(system));

  /* thm-total-law: E ΣX = Σ_k (K−k+1)/θ_k; under MJSQ K/υ + K(K−1)/(υ+c). */
  const meanTotal = (system) => sum(gapMeans(system).map((mean, index) => (system.K - index) * mean));

  /* thm-total-law: the variance of the total is Σ_k (K−k+1)²/θ_k². */
  const varianceTotal = (system) => sum(gapMeans(system).map((mean, index) => ((system.K - index) * mean) ** 2));

  /* thm-total-law: the total is a sum of independent exponentials with rates θ_k/(K−k+1). */
  const totalLaw = (system) => sumOfExponentials(gapRates(system).map((rate, index) => rate / (system.K - index)));

  /* thm-gap-law: the shortest queue is the first gap, exponential with rate θ_1. */
  const minLaw = (system) => sumOfExponentials([gapRates(system)[0]]);

  /* thm-gap-law: the longest queue is the sum of all gaps. */
  const maxLaw = (system) => sumOfExponentials(gapRates(system));

  /* thm-workload-factor: mean total over K/υ, that of JSQ; under MJSQ 1 + (K−1)υ/(υ+c). */
  const workloadFactor = (system) => (meanTotal(system) * system.upsilon) / system.K;

  /*
   * thm-workload-factor: the least c for which the factor is at most 1 + excess.
   *
   * For MJSQ υ((K−1)/excess − 1), or 0 if that is negative. For marginal JSQ(d), d ≥ 2, the factor falls from K to
   * 1 as c grows and the equation is solved by bisection. Infinite for d = 1, which is random routing.
   */
  function requiredC({ K, upsilon, policy, d }, excess) {
    const least = upsilon * Math.max((K - 1) / excess - 1, 0);
    if (policy !== "marginal" || d >= K || least === 0) return least;
    if (d < 2) return Infinity;
    const tooFar = (c) => workloadFactor({ K, upsilon, policy, c, d }) > 1 + excess;
    let [low, high] = [least / 2, least];
    while (tooFar(high)) [low, high] = [high, 2 * high];
    for (let step = 0; step < 60; step += 1) {
      const middle = (low + high) / 2;
      if (tooFar(middle)) low = middle;
      else high = middle;
    }
    return high;
  }

  /*
   * def-system: what the n-th system adds, for servers of n jobs per unit time: arrivals λ_n = nK − υ√n and ranked
   * jobs c√n per unit time, load λ_n/(nK), and whether there is such a system: λ_n > c√n, or all jobs were ranked.
   */
  function nthSystem(system, n) {
    const arrivalRate = n * system.K - system.upsilon * Math.sqrt(n);
    const rankedRate = system.policy === "jsq" ? arrivalRate : ranking(system).c * Math.sqrt(n);
    const load = arrivalRate / (n * system.K);
    const exists = arrivalRate > 0 && (system.policy === "jsq" || arrivalRate > rankedRate);
    return { arrivalRate, rankedRate, load, exists };
  }

  /*
   * prop-communication: queue lengths asked for per unit time, exact at every n: cK√n under MJSQ, cd√n under
   * marginal JSQ(d) with d ≥ 2, Kλ_n under JSQ and none under random routing.
   */
  function communicationRate(system, n) {
    const { d } = ranking(system);
    return nthSystem(system, n).rankedRate * (system.policy === "marginal" && d === 1 ? 0 : d);
  }

  // ---- The law of a sum of independent exponentials ------------------------------------------------

  // The contour z(u) = μ(sin α (1 − cosh u) + i cos α sinh u) and the trapezoidal rule on it.
  const ANGLE = Math.PI / 6;
  const STEP = 1 / 16;
  const NODES = Array.from({ length: 112 }, (_, index) => {
    const u = index * STEP;
    return {
      re: Math.sin(ANGLE) * (1 - Math.cosh(u)),
      im: Math.cos(ANGLE) * Math.sinh(u),
      speedRe: Math.cos(ANGLE) * Math.cosh(u),
      speedIm: Math.sin(ANGLE) * Math.sinh(u),
      weight: ((index === 0 ? 0.5 : 1) * STEP) / Math.PI,
    };
  });

  /*
   * thm-total-law: the law of Σ E_i, E_i independent and exponential with the given rates, equal or not.
   *
   * The textbook sum of signed exponentials cancels when rates are close and does not exist when they are equal.
   * Here the Laplace transform Π r/(r+s) is inverted along a hyperbola through its saddle point, as in
   * rankrouting.analytic.Hypoexponential: no cancellation in either tail. Terms of infinite rate are 0.
   */
  function sumOfExponentials(rates) {
    const counts = new Map();
    for (const rate of rates) if (Number.isFinite(rate)) counts.set(rate, (counts.get(rate) || 0) + 1);
    const poles = [...counts].map(([rate, count]) => ({ rate, count }));
    const size = sum(poles.map(({ count }) => count));
    const mean = sum(poles.map(({ rate, count }) => count / rate));
    const variance = sum(poles.map(({ rate, count }) => count / rate ** 2));
    const only = size === 1 ? poles[0].rate : null;

    const tail = (x, kind) => Math.exp(logInverse(x, poles, size, kind));
    const sf = (x) => {
      if (x <= 0) return 1;
      if (only !== null) return Math.exp(-only * x);
      return x <= mean ? 1 - tail(x, "cdf") : tail(x, "sf");
    };
    const cdf = (x) => {
      if (x <= 0) return 0;
      if (only !== null) return -Math.expm1(-only * x);
      return x <= mean ? tail(x, "cdf") : 1 - tail(x, "sf");
    };
    const pdf = (x) => {
      if (x < 0) return 0;
      if (only !== null) return only * Math.exp(-only * x);
      return x === 0 ? 0 : tail(x, "pdf");
    };
    return { mean, variance, sf, cdf, pdf };
  }

  /* The log of the pdf, cdf or sf at x > 0: the integral of exp(sx) Π r/(r+s), for the cdf times 1/s, for the sf −1/s. */
  function logInverse(x, poles, size, kind) {
    // The contour crosses the real axis at a distance of the nearest pole to its left: 0 for the cdf, −min r
    // otherwise. The sf has the pole 0 on its right.
    const nearest = kind === "cdf" ? 0 : Math.min(...poles.map(({ rate }) => rate));
    const offsets = poles.map(({ rate, count }) => ({ offset: rate - nearest, count }));
    if (kind === "cdf") offsets.push({ offset: 0, count: 1 });
    const all = kind === "cdf" ? size + 1 : size;
    let low = Math.log(kind === "sf" ? nearest / (2 + x * nearest) : 1 / x);
    let high = Math.log(kind === "sf" ? Math.min(all / x, (nearest * all) / (all + 1)) : all / x);
    for (let step = 0; step < 16; step += 1) {
      const distance = Math.exp((low + high) / 2);
      let pull = 0;
      for (const { offset, count } of offsets) pull += count / (distance + offset);
      if (pull > (kind === "sf" ? x + 1 / (nearest - distance) : x)) low = Math.log(distance);
      else high = Math.log(distance);
    }
    const distance = Math.exp((low + high) / 2);
    const right = nearest - distance;
    const terms = offsets.map(({ offset, count }) => ({ length: distance + offset, count }));
    let curvature = sum(terms.map(({ length, count }) => count * (distance / length) ** 2));
    let height = (distance - nearest) * x;
    poles.forEach(({ rate, count }, index) => {
      height += count * Math.log(rate / terms[index].length);
    });
    if (kind === "cdf") height -= Math.log(distance);
    if (kind === "sf") {
      curvature += (distance / right) ** 2;
      height -= Math.log(right);
    }
    const mu = distance / Math.sqrt(curvature) / Math.cos(ANGLE);
    return height + Math.log(mu) + Math.log(contourIntegral(x, mu, terms, kind === "sf" ? right : null));
  }

  /* The real part of Σ weight·speed·exp(xz) Π (l/(l+z))^count, with a factor right/(right−z) if there is one. */
  function contourIntegral(x, mu, terms, right) {
    let integral = 0;
    for (const node of NODES) {
      const re = mu * node.re;
      const im = mu * node.im;
      let logSize = x * re;
      let angle = x * im;
      if (logSize < -60) break; // no later node adds a digit
      for (const { length, count } of terms) {
        const a = 1 + re / length;
        const b = im / length;
        logSize -= 0.5 * count * Math.log(a * a + b * b);
        angle -= count * Math.atan2(b, a);
      }
      if (right !== null) {
        const a = 1 - re / right;
        const b = -im / right;
        logSize -= 0.5 * Math.log(a * a + b * b);
        angle -= Math.atan2(b, a);
      }
      const size = Math.exp(logSize);
      integral += node.weight * size * (node.speedRe * Math.cos(angle) - node.speedIm * Math.sin(angle));
    }
    return integral;
  }

  root.formulas = {
    gapRates,
    gapMeans,
    meanMin,
    meanMax,
    meanTotal,
    varianceTotal,
    totalLaw,
    minLaw,
    maxLaw,
    workloadFactor,
    requiredC,
    nthSystem,
    communicationRate,
    sumOfExponentials,
  };
})((globalThis.rankrouting ??= {}));
