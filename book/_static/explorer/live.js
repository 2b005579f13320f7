/* The animation: a Chain that runs at the reader's pace, drawn on two canvases. */
(function (root) {
  "use strict";

  const { Chain, formulas, shown } = root;
  const ROUTERS = ["random", "marginal", "jsq"];
  const WORK_MS = 10; // of each frame, so that the page stays responsive
  const KEPT = 500; // points of the curves

  /* The least of 100, 400, 1600, … at which at most half of the jobs are ranked or missing. */
  function sizeFor({ K, upsilon, c }) {
    let n = 100;
    while (K * Math.sqrt(n) < 2 * (upsilon + c)) n *= 4;
    return n;
  }

  class Live {
    /* `pace` returns jobs per second, `seed` the seed, `empty` whether to start with empty queues. */
    constructor({ pace, seed, empty }) {
      Object.assign(this, { pace, seed, empty, running: false, owed: 0, history: [], scale: 1 });
      this.bars = document.getElementById("rx-queues");
      this.strip = document.getElementById("rx-history");
      this.cells = [...document.querySelectorAll(".rx-table tbody tr")].map((row) => [...row.cells].slice(1));
      document.getElementById("rx-run").addEventListener("click", () => this.toggle());
      document.getElementById("rx-one").addEventListener("click", () => this.one());
      document.getElementById("rx-reset").addEventListener("click", () => this.reset());
      new ResizeObserver(() => this.draw()).observe(this.bars);
    }

    /* Watch another system: the queues stay if their number and the speed do. */
    show(system) {
      const watched = ["mjsq", "marginal"].includes(system.policy) ? system : { ...system, policy: "mjsq" };
      this.name = root.charts.nameOf(watched);
      const { K, upsilon, c } = watched;
      const d = watched.policy === "marginal" ? watched.d : K;
      this.rates = { K, n: sizeFor(watched), upsilon, c, d };
      this.systems = { random: { ...watched, policy: "random" }, marginal: watched, jsq: { ...watched, policy: "jsq" } };
      this.means = this.ofEach(formulas.meanTotal);
      document.getElementById("rx-middle").textContent = this.name;
      document.getElementById("rx-live-n").textContent =
        `n = ${shown(this.rates.n)}, where ${shown(c * Math.sqrt(this.rates.n))} of ` +
        `${shown(this.rates.n * K - upsilon * Math.sqrt(this.rates.n))} jobs per unit time are ranked by ${this.name}`;
      if (this.chain && this.chain.K === K && this.chain.n === this.rates.n) {
        this.chain.tune(this.rates);
        this.draw();
      } else this.reset();
    }

    /* A formula for each router. */
    ofEach(formula) {
      return Object.fromEntries(ROUTERS.map((router) => [router, formula(this.systems[router])]));
    }

    reset() {
      const gapRates = this.empty() ? null : this.ofEach(formulas.gapRates);
      this.chain = new Chain({ ...this.rates, seed: this.seed(), gapRates });
      this.clock = 0;
      this.history = [];
      this.owed = 0;
      this.scale = 1;
      this.draw();
    }

    toggle(running = !this.running) {
      this.running = running;
      document.getElementById("rx-run").textContent = running ? "Pause" : "Run";
      if (running) {
        this.before = null;
        requestAnimationFrame((now) => this.frame(now));
      }
    }

    one() {
      this.toggle(false);
      this.advance(1, Infinity);
      this.draw();
    }

    /* Let jobs arrive, for at most so many milliseconds; returns how many did. */
    advance(jobs, milliseconds) {
      const { chain } = this;
      const [from, steps, end] = [chain.arrived, chain.steps, performance.now() + milliseconds];
      while (chain.arrived - from < jobs && performance.now() < end) chain.run(Math.min(jobs - (chain.arrived - from), 500));
      this.clock += (chain.steps - steps) / chain.eventRate;
      this.history.push({ time: this.clock, totals: ROUTERS.map((router) => chain[router].total) });
      if (this.history.length > KEPT) this.history.shift();
      return chain.arrived - from;
    }

    frame(now) {
      if (!this.running) return;
      const elapsed = this.before === null ? 0 : Math.min(now - this.before, 100) / 1000;
      this.before = now;
      this.owed = Math.min(this.owed + elapsed * this.pace(), this.pace());
      const whole = Math.floor(this.owed);
      if (whole > 0) {
        const done = this.advance(whole, WORK_MS);
        this.owed = done < whole ? 0 : this.owed - whole; // what could not be done in time is let go
        this.draw();
      }
      requestAnimationFrame((next) => this.frame(next));
    }

    // ---- Drawing ----------------------------------------------------------------------------------

    draw() {
      if (!this.chain) return;
      const style = getComputedStyle(document.getElementById("rx"));
      const colour = (name) => style.getPropertyValue(name).trim();
      this.colours = { random: colour("--rx-random"), marginal: colour("--rx-middle"), jsq: colour("--rx-jsq") };
      this.ink = colour("--pst-color-text-base");
      this.faint = colour("--pst-color-border");
      this.font = `13px ${style.fontFamily}`;
      this.drawQueues();
      this.drawHistory();
      this.fillTable();
    }

    /* A cleared canvas in units of CSS pixels. */
    canvas(element) {
      const ratio = window.devicePixelRatio || 1;
      const [width, height] = [element.clientWidth, element.clientHeight];
      if (element.width !== Math.round(width * ratio)) element.width = Math.round(width * ratio);
      if (element.height !== Math.round(height * ratio)) element.height = Math.round(height * ratio);
      const context = element.getContext("2d");
      context.setTransform(ratio, 0, 0, ratio, 0, 0);
      context.clearRect(0, 0, width, height);
      context.font = this.font;
      return { context, width, height };
    }

    drawQueues() {
      const { context, width, height } = this.canvas(this.bars);
      const longest = Math.max(...ROUTERS.map((router) => Math.max(...this.chain[router].lengths)));
      this.scale = Math.max(longest, 0.99 * this.scale, 4); // grows at once, shrinks slowly
      const [left, top, bottom, gap] = [34, 22, height - 12, 14];
      const panel = (width - left - 2 * gap) / 3;
      const y = (jobs) => bottom - ((bottom - top) * jobs) / this.scale;
      this.grid(context, left, width, y, this.scale, 4);
      ROUTERS.forEach((router, index) => {
        const from = left + index * (panel + gap);
        const { lengths, last } = this.chain[router];
        const each = panel / lengths.length;
        const bar = Math.max(each * 0.8, 0.7);
        context.fillStyle = this.ink;
        context.textAlign = "center";
        context.fillText(router === "marginal" ? this.name : { random: "Random", jsq: "JSQ" }[router], from + panel / 2, 14, panel);
        context.fillStyle = this.colours[router];
        lengths.forEach((jobs, server) => {
          const x = from + server * each + (each - bar) / 2;
          if (jobs > 0) context.fillRect(x, y(jobs), bar, bottom - y(jobs));
          else context.fillRect(x, bottom + 4, bar, 4);
        });
        if (last >= 0 && this.pace() <= 60) {
          context.beginPath();
          context.arc(from + (last + 0.5) * each, y(lengths[last]) - 5, 4, 0, 2 * Math.PI);
          if (router === "jsq" || (router === "marginal" && this.chain.lastRanked)) context.fill();
          context.strokeStyle = this.colours[router];
          context.stroke();
        }
        context.fillStyle = this.ink;
        context.fillRect(from, bottom, panel, 1);
      });
    }

    /* Lines at round numbers of jobs. */
    grid(context, left, width, y, top, most) {
      const raw = top / most;
      const power = 10 ** Math.floor(Math.log10(raw));
      const step = Math.max(1, power * [1, 2, 5, 10].find((one) => one * power >= raw));
      context.textAlign = "right";
      for (let jobs = 0; jobs <= top; jobs += step) {
        context.fillStyle = this.faint;
        context.fillRect(left, y(jobs), width - left, 1);
        context.fillStyle = this.ink;
        context.fillText(jobs >= 10000 ? `${jobs / 1000}k` : String(jobs), left - 5, y(jobs) + 4, left - 5);
      }
    }

    drawHistory() {
      const { context, width, height } = this.canvas(this.strip);
      const [left, top, bottom] = [34, 8, height - 20];
      const limits = ROUTERS.map((router) => this.means[router] * Math.sqrt(this.chain.n));
      const highest = 1.15 * Math.max(...limits, ...this.history.flatMap(({ totals }) => totals));
      const y = (jobs) => bottom - ((bottom - top) * jobs) / highest;
      this.grid(context, left, width, y, highest, 3);
      const from = this.history.length ? this.history[0].time : 0;
      const span = Math.max(this.clock - from, 1e-9);
      const x = (time) => left + ((width - left) * (time - from)) / span;
      context.lineWidth = 1.5;
      ROUTERS.forEach((router, index) => {
        context.strokeStyle = this.colours[router];
        context.setLineDash([5, 5]);
        context.beginPath();
        context.moveTo(left, y(limits[index]));
        context.lineTo(width, y(limits[index]));
        context.stroke();
        context.setLineDash([]);
        context.beginPath();
        for (const { time, totals } of this.history) context.lineTo(x(time), y(totals[index]));
        context.stroke();
      });
      context.lineWidth = 1;
      context.fillStyle = this.ink;
      context.textAlign = "left";
      context.fillText(`${shown(from)}`, left, height - 5);
      context.textAlign = "right";
      context.fillText(`${shown(this.clock)} units of time`, width, height - 5);
    }

    fillTable() {
      ROUTERS.forEach((router, index) => {
        const [now, average, limit] = this.cells[index];
        now.textContent = shown(this.chain[router].total);
        average.textContent = this.chain.steps > 0 ? shown(this.chain.average(router)) : "–";
        limit.textContent = shown(this.means[router] * Math.sqrt(this.chain.n));
      });
    }
  }

  root.Live = Live;
})((globalThis.rankrouting ??= {}));
