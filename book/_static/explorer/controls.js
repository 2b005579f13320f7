/* A slider with a number beside it: the slider walks through round values, the number takes any in the range. */
(function (root) {
  "use strict";

  const ROUND = [1, 1.2, 1.5, 2, 2.5, 3, 4, 5, 6, 8];

  /* Round values from low to high, ten a decade. */
  function series(low, high) {
    const values = [];
    for (let power = Math.floor(Math.log10(low)); power <= Math.log10(high); power += 1) {
      for (const digit of ROUND) values.push(Number(`${digit}e${power}`));
    }
    return values.filter((value) => value >= low && value <= high);
  }

  /* A number with three digits, and no more zeros than it needs. */
  function shown(value) {
    if (!Number.isFinite(value)) return value > 0 ? "∞" : "–";
    const size = Math.abs(value);
    if (size !== 0 && (size < 1e-3 || size >= 1e7)) {
      const [digits, power] = value.toExponential(2).split("e");
      const raised = [...power.replace("+", "")].map((one) => "⁻⁰¹²³⁴⁵⁶⁷⁸⁹"["-0123456789".indexOf(one)]).join("");
      return `${Number(digits) === 1 ? "" : `${Number(digits)}·`}10${raised}`;
    }
    return value.toLocaleString("en", { maximumSignificantDigits: size >= 1000 ? 4 : 3 });
  }

  class Control {
    /*
     * Builds itself in the element [data-control=name]. `label` is HTML, `said` the plain words for what a screen
     * reader says of a value, `values` the ascending stops of the slider.
     */
    constructor({ name, label, values, value, whole = false, said }, onChange) {
      this.said = said;
      this.whole = whole;
      this.box = document.createElement("div");
      this.box.className = "rx-control";
      this.box.innerHTML = `
        <label for="rx-${name}">${label}</label>
        <input type="number" id="rx-${name}-number" step="any" autocomplete="off">
        <input type="range" id="rx-${name}" min="0" step="1">`;
      document.querySelector(`[data-control="${name}"]`).append(this.box);
      [this.number, this.slider] = this.box.querySelectorAll("input");
      this.number.setAttribute("aria-label", `${this.box.querySelector("label").textContent.trim()}, exact`);
      this.between(values);
      this.set(value);
      this.slider.addEventListener("input", () => {
        this.set(this.values[Number(this.slider.value)]);
        onChange();
      });
      this.number.addEventListener("change", () => {
        const wanted = this.number.valueAsNumber;
        this.set(Number.isFinite(wanted) ? wanted : this.value);
        onChange();
      });
    }

    /* Other stops of the slider; the value is kept if it is between them. */
    between(values) {
      this.values = values;
      this.slider.max = String(values.length - 1);
      this.number.min = String(values[0]);
      this.number.max = String(values.at(-1));
      this.number.title = `${shown(values[0])} to ${shown(values.at(-1))}`;
      if (this.value !== undefined) this.set(this.value);
    }

    /* Take a value, the nearest in the range, and show it in both places. */
    set(value) {
      const inside = Math.min(Math.max(value, this.values[0]), this.values.at(-1));
      this.value = this.whole ? Math.round(inside) : inside;
      const distance = (one) => Math.abs(Math.log(one / this.value));
      const nearest = this.values.reduce((best, one, index) => (distance(one) < distance(this.values[best]) ? index : best), 0);
      this.slider.value = String(nearest);
      this.slider.setAttribute("aria-valuetext", this.said(this.value));
      this.number.value = String(Number(this.value.toPrecision(6)));
    }

    set hidden(value) {
      this.box.hidden = value;
    }

    set disabled(value) {
      this.slider.disabled = value;
      this.number.disabled = value;
      this.box.classList.toggle("rx-off", value);
    }
  }

  Object.assign(root, { Control, series, shown });
})((globalThis.rankrouting ??= {}));
