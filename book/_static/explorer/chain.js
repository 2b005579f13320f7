/*
 * The n-th system, simulated exactly under three routers at once: random routing, a marginal policy and JSQ.
 *
 * def-system: servers of n jobs per unit time, arrivals nK − υ√n of which c√n are ranked. The chain is uniformized:
 * each step is an arrival or the service of one server, which does nothing if that server is idle. So an average
 * over steps is an average over time. The three routers see the same arrivals, the same services and the
 * same blind choices (common random numbers); what differs is only where they send a job.
 */
(function (root) {
  "use strict";

  /* A generator of uniform numbers in [0, 1) with 32 bits: sfc32, seeded through its own first outputs. */
  function generator(seed, stream) {
    let [a, b, c, counter] = [seed | 0, Math.floor(seed / 2 ** 32) | 0, stream | 0, 1];
    const next = () => {
      const value = (a + b + counter) | 0;
      counter = (counter + 1) | 0;
      a = b ^ (b >>> 9);
      b = (c + (c << 3)) | 0;
      c = (((c << 21) | (c >>> 11)) + value) | 0;
      return (value >>> 0) / 2 ** 32;
    };
    for (let i = 0; i < 16; i += 1) next();
    return next;
  }

  /* The queues behind one router: their lengths, the total, its sum over all steps, where the last job went. */
  class Router {
    constructor(K) {
      this.lengths = new Int32Array(K);
      this.total = 0;
      this.sum = 0;
      this.last = -1;
    }

    fill(queue, jobs) {
      this.total += jobs - this.lengths[queue];
      this.lengths[queue] = jobs;
    }

    arrive(queue) {
      this.lengths[queue] += 1;
      this.total += 1;
      this.last = queue;
    }

    serve(queue) {
      if (this.lengths[queue] === 0) return;
      this.lengths[queue] -= 1;
      this.total -= 1;
    }
  }

  /* The shortest of the first `count` of some queues, ties broken uniformly by one uniform number. */
  function shortest(lengths, among, count, tie) {
    let least = Infinity;
    let tied = 0;
    for (let i = 0; i < count; i += 1) {
      const length = lengths[among[i]];
      if (length < least) {
        least = length;
        tied = 1;
      } else if (length === least) tied += 1;
    }
    let left = Math.floor(tie * tied);
    for (let i = 0; i < count; i += 1) {
      if (lengths[among[i]] === least) {
        if (left === 0) return among[i];
        left -= 1;
      }
    }
    throw new Error("no queue is the shortest");
  }

  class Chain {
    /*
     * All queues start empty, or, if `gapRates` has the rates of the gaps under each router, near the stationary law of
     * the limit (thm-gap-law): with the same exponentials and the same order of the queues under all three.
     */
    constructor({ K, n, upsilon, c, d, seed, gapRates }) {
      this.K = K;
      this.n = n;
      this.events = generator(seed, 1);
      this.samples = generator(seed, 2); // of JSQ(d), on its own so that the events are the same for every d
      this.all = Int32Array.from({ length: K }, (_, index) => index);
      this.drawn = this.all.slice(); // in the order in which the last sample left it
      this.lastRanked = false;
      this.random = new Router(K);
      this.marginal = new Router(K);
      this.jsq = new Router(K);
      if (gapRates) this.spread(gapRates, generator(seed, 3));
      this.tune({ upsilon, c, d });
    }

    /* Lengths √n Σ_{j≤k} E_j/θ_j, rounded, for the queues in a random order k = 1, …, K. */
    spread(gapRates, uniform) {
      const exponentials = Array.from({ length: this.K }, () => -Math.log1p(-uniform()));
      const order = this.all.slice();
      for (let i = this.K - 1; i > 0; i -= 1) {
        const j = Math.floor(uniform() * (i + 1));
        [order[i], order[j]] = [order[j], order[i]];
      }
      for (const [name, rates] of Object.entries(gapRates)) {
        let length = 0;
        rates.forEach((rate, k) => {
          length += (exponentials[k] / rate) * Math.sqrt(this.n);
          this[name].fill(order[k], Math.round(length));
        });
      }
    }

    /* Other rates from now on; the queues stay as they are and the averages start anew. */
    tune({ upsilon, c, d }) {
      const { K, n } = this;
      const arrivals = n * K - upsilon * Math.sqrt(n);
      if (!(arrivals > c * Math.sqrt(n))) throw new RangeError(`n = ${n}: nK must be above (upsilon + c)√n`);
      this.d = d; // how many queues a ranked job of the marginal policy looks at: K for MJSQ
      this.arrivalProbability = arrivals / (arrivals + n * K);
      this.rankedProbability = (c * Math.sqrt(n)) / arrivals;
      this.eventRate = arrivals + n * K;
      this.steps = 0;
      this.arrived = 0;
      for (const router of [this.random, this.marginal, this.jsq]) router.sum = 0;
    }

    /* Units of time since then: each step lasts one over the rate of all events on average. */
    get time() {
      return this.steps / this.eventRate;
    }

    /* One arrival or service. */
    step() {
      const { random, marginal, jsq, K } = this;
      if (this.events() < this.arrivalProbability) {
        const blind = Math.floor(this.events() * K);
        const ranked = this.events() < this.rankedProbability;
        const tie = this.events();
        random.arrive(blind);
        marginal.arrive(ranked ? this.shortestOfSample(marginal.lengths, tie) : blind);
        jsq.arrive(shortest(jsq.lengths, this.all, K, tie));
        this.lastRanked = ranked;
        this.arrived += 1;
      } else {
        const server = Math.floor(this.events() * K);
        random.serve(server);
        marginal.serve(server);
        jsq.serve(server);
      }
      this.steps += 1;
      random.sum += random.total;
      marginal.sum += marginal.total;
      jsq.sum += jsq.total;
    }

    /* Steps until so many more jobs have arrived, at most `most` of them. */
    run(arrivals, most = Infinity) {
      const wanted = this.arrived + arrivals;
      for (let i = 0; this.arrived < wanted && i < most; i += 1) this.step();
    }

    /* The mean total of one router since then, in jobs. */
    average(router) {
      return this[router].sum / this.steps;
    }

    /* The shortest of d queues drawn without replacement: the first d of a random order. */
    shortestOfSample(lengths, tie) {
      const { K, d, drawn } = this;
      if (d === K) return shortest(lengths, this.all, K, tie);
      for (let i = 0; i < d; i += 1) {
        const j = i + Math.floor(this.samples() * (K - i));
        const queue = drawn[j];
        drawn[j] = drawn[i];
        drawn[i] = queue;
      }
      return shortest(lengths, drawn, d, tie);
    }
  }

  root.Chain = Chain;
})((globalThis.rankrouting ??= {}));
