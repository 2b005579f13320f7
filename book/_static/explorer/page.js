/* The page: what can be moved, and what follows from it. */
(function (root) {
  "use strict";

  const { formulas, charts, Control, Live, series, shown } = root;
  const byId = (id) => document.getElementById(id);
  const upTo = (K) => Array.from({ length: K }, (_, index) => index + 1);
  const chosen = (name) => document.querySelector(`input[name="rx-${name}"]:checked`).value;
  const Ks = [...upTo(20).slice(1), 22, 25, 30, 35, 40, 45, 50, 60, 70, 80, 90, 100];
  const cs = series(0.1, 1000);

  const add = (spec, onChange) => new Control(spec, onChange);
  const controls = {
    K: add({ name: "K", label: "Queues <i>K</i>", values: Ks, value: 10, whole: true, said: (v) => `${v} queues` }, update),
    upsilon: add(
      { name: "upsilon", label: "Slack <i>υ</i>", values: series(0.1, 100), value: 2, said: (v) => `slack ${shown(v)}` },
      update,
    ),
    c: add({ name: "c", label: "Ranked <i>c</i>", values: cs, value: 8, said: (v) => `c = ${shown(v)}` }, update),
    d: add({ name: "d", label: "Sample <i>d</i>", values: upTo(10), value: 2, whole: true, said: (v) => `${v} sampled` }, update),
    n: add(
      {
        name: "n",
        label: "<i>n</i>, jobs per unit time and server",
        values: series(100, 1e8), value: 10_000, whole: true,
        said: (v) => `n = ${shown(v)}`,
      },
      update,
    ),
    speed: add(
      {
        name: "speed",
        label: "Jobs per second and server",
        values: series(0.1, 1e6), value: 1000,
        said: (v) => `${shown(v)} jobs per second`,
      },
      update,
    ),
    excess: add(
      { name: "excess", label: "Excess over JSQ, in %", values: series(1, 1000), value: 50, said: (v) => `${shown(v)} percent above JSQ` },
      update,
    ),
    pace: add(
      { name: "pace", label: "Pace, jobs per second", values: series(1, 1e6), value: 5000, said: (v) => `${shown(v)} jobs per second` },
      () => {},
    ),
    seed: add({ name: "seed", label: "Seed", values: upTo(100), value: 1, whole: true, said: (v) => `seed ${v}` }, () => live.reset()),
  };
  const live = new Live({
    pace: () => controls.pace.value,
    seed: () => controls.seed.value,
    empty: () => chosen("start") === "empty",
  });

  function current() {
    const [K, upsilon, c, d] = ["K", "upsilon", "c", "d"].map((name) => controls[name].value);
    return { K, upsilon, c, d: Math.min(d, K), policy: chosen("policy") };
  }

  const say = (id, text) => {
    byId(id).textContent = text;
  };
  const percent = (share) => `${shown(100 * share)} %`;

  /* The means, which do not depend on n. */
  function showMeans(system) {
    const [total, factor] = [formulas.meanTotal(system), formulas.workloadFactor(system)];
    const ends = ["jsq", "random"].map((policy) => formulas.meanTotal({ ...system, policy }));
    say("rx-total", shown(total));
    say("rx-total-note", `JSQ ${shown(ends[0])}, random ${shown(ends[1])}; limit units`);
    say("rx-factor", shown(factor));
    say("rx-factor-note", `${percent((system.K - factor) / (system.K - 1))} of the excess of random routing removed`);
    say("rx-min", shown(formulas.meanMin(system)));
    say("rx-max", shown(formulas.meanMax(system)));
    say("rx-max-note", `random ${shown(formulas.meanMax({ ...system, policy: "random" }))}`);
  }

  /* Messages, jobs and times of a system of that speed. */
  function showCost(system, n, speed) {
    const { arrivalRate, load, exists } = formulas.nthSystem(system, n);
    const perSecond = speed / n; // units of time
    const asked = formulas.communicationRate(system, n);
    const jobs = formulas.meanTotal(system) * Math.sqrt(n);
    const values = {
      messages: shown(asked * perSecond),
      "messages-note":
        system.policy === "jsq"
          ? "all queues, for every job"
          : `JSQ: ${shown(formulas.communicationRate({ ...system, policy: "jsq" }, n) * perSecond)}`,
      asked: shown(asked / arrivalRate),
      "asked-note": `${shown(arrivalRate * perSecond)} jobs per second arrive`,
      load: percent(load),
      "load-note": `a unit of time is ${shown(n / speed)} s`,
      jobs: shown(jobs),
      "jobs-note": `each there for ${shown((1000 * jobs) / arrivalRate / perSecond)} ms on average`,
    };
    for (const [name, value] of Object.entries(values)) say(`rx-${name}`, exists ? value : "–");
    const taken = system.upsilon + (["mjsq", "marginal"].includes(system.policy) ? system.c : 0);
    byId("rx-impossible").hidden = exists;
    say(
      "rx-impossible",
      exists
        ? ""
        : `No such system: ${taken > system.upsilon ? "more jobs would be ranked than arrive" : "no jobs would arrive"}. ` +
            `With these K, υ and c, n must be above ${shown((taken / system.K) ** 2)}.`,
    );
  }

  function showDesign(system, excess) {
    const designed = system.policy === "marginal" ? system : { ...system, policy: "mjsq" };
    const required = formulas.requiredC(designed, excess);
    const name = charts.nameOf(designed);
    byId("rx-required").innerHTML = Number.isFinite(required)
      ? `<strong>c = ${shown(required)}</strong> is enough for ${name}.`
      : `No <i>c</i> is enough for ${name}: it looks at one queue only.`;
    const usable = required >= cs[0] && required <= cs.at(-1);
    byId("rx-use").disabled = !usable;
    byId("rx-use").onclick = () => {
      if (system.policy !== "marginal") document.querySelector('input[name="rx-policy"][value="mjsq"]').checked = true;
      controls.c.set(required);
      update();
    };
  }

  let telling;
  function tell(system) {
    clearTimeout(telling);
    telling = setTimeout(() => {
      const [mean, factor] = [formulas.meanTotal(system), formulas.workloadFactor(system)].map(shown);
      say("rx-summary", `${charts.nameOf(system)}: mean total ${mean} limit units, ${factor} times that of JSQ.`);
    }, 800);
  }

  let waiting = false;
  function update() {
    if (waiting) return;
    waiting = true;
    requestAnimationFrame(() => {
      waiting = false;
      show();
    });
  }

  function show() {
    controls.d.between(upTo(controls.K.value));
    const system = current();
    const excess = controls.excess.value / 100;
    const ranks = ["mjsq", "marginal"].includes(system.policy);
    controls.d.hidden = system.policy !== "marginal";
    controls.c.disabled = !ranks;
    const style = byId("rx").style;
    style.setProperty("--rx-now", `var(--rx-${system.policy})`);
    style.setProperty("--rx-middle", `var(--rx-${system.policy === "marginal" ? "marginal" : "mjsq"})`);
    showMeans(system);
    showCost(system, controls.n.value, controls.speed.value);
    showDesign(system, excess);
    charts.law(system, chosen("what"), chosen("curve"));
    charts.gaps(system);
    charts.trade(system, cs, excess);
    live.show(system);
    tell(system);
  }

  for (const name of ["policy", "what", "curve"]) {
    for (const input of document.querySelectorAll(`input[name="rx-${name}"]`)) input.addEventListener("change", update);
  }
  for (const input of document.querySelectorAll('input[name="rx-start"]')) input.addEventListener("change", () => live.reset());
  new MutationObserver(update).observe(document.documentElement, { attributes: true, attributeFilter: ["data-theme"] });
  show();

  // Nothing moves before the reader sees it, nor for those who asked for less motion.
  if (!window.matchMedia("(prefers-reduced-motion: reduce)").matches) {
    const seen = new IntersectionObserver((entries) => {
      if (!entries.some((entry) => entry.isIntersecting)) return;
      seen.disconnect();
      live.toggle(true);
    });
    seen.observe(byId("rx-queues"));
  }
})((globalThis.rankrouting ??= {}));
