/* The three charts of the formulas, drawn by Plotly in the theme's colours. */
(function (root) {
  "use strict";

  const { formulas, shown } = root;
  const NAMES = { random: "random", mjsq: "MJSQ", marginal: "marginal JSQ(d)", jsq: "JSQ" };
  const POINTS = 140;

  /* The colours of the page, light or dark. */
  function palette() {
    const style = getComputedStyle(document.getElementById("rx"));
    const read = (name) => style.getPropertyValue(name).trim();
    return {
      random: read("--rx-random"),
      mjsq: read("--rx-mjsq"),
      marginal: read("--rx-marginal"),
      jsq: read("--rx-jsq"),
      text: read("--pst-color-text-base"),
      muted: read("--pst-color-text-muted"),
      grid: read("--pst-color-border"),
    };
  }

  const nameOf = (system) => (system.policy === "marginal" ? `marginal JSQ(${system.d})` : NAMES[system.policy]);

  /* Where no curve is. */
  const LEGENDS = {
    right: { x: 1, xanchor: "right", y: 1, yanchor: "top" },
    left: { x: 0.02, xanchor: "left", y: 1, yanchor: "top" },
    low: { x: 0.02, xanchor: "left", y: 0.02, yanchor: "bottom" },
    above: { orientation: "h", x: 0, xanchor: "left", y: 1.02, yanchor: "bottom" },
  };

  function draw(id, traces, { x, y, summary, legend, ...layout }) {
    const colours = palette();
    const axis = {
      gridcolor: colours.grid,
      linecolor: colours.muted,
      zeroline: false,
      fixedrange: true, // a finger scrolls the page, not the chart
      automargin: true,
      title: { font: { size: 13 }, standoff: 6 },
    };
    const merged = (own) => ({ ...axis, ...own, title: { ...axis.title, text: own.title } });
    const box = document.getElementById(id);
    box.setAttribute("aria-label", summary);
    Plotly.react(
      box,
      traces,
      {
        autosize: true,
        margin: { l: 44, r: 8, t: legend === "above" ? 28 : 10, b: 40 },
        paper_bgcolor: "rgba(0,0,0,0)",
        plot_bgcolor: "rgba(0,0,0,0)",
        font: { family: getComputedStyle(document.body).fontFamily, size: 12, color: colours.text },
        legend: { bgcolor: "rgba(0,0,0,0)", ...LEGENDS[legend] },
        dragmode: false,
        hovermode: "closest",
        ...layout,
        xaxis: merged(x),
        yaxis: merged(y),
      },
      { displayModeBar: false, responsive: true, scrollZoom: false, doubleClick: false, showTips: false },
    );
  }

  /* The chosen router, drawn last, and those at both ends to compare it with. */
  const shownSystems = (system) => [
    ...["random", "jsq"].filter((policy) => policy !== system.policy).map((policy) => ({ ...system, policy })),
    system,
  ];

  const LAWS = { total: formulas.totalLaw, min: formulas.minLaw, max: formulas.maxLaw };
  const WHAT = { total: "total of all queues", min: "shortest queue", max: "longest queue" };

  /* Density or survival function of the total, the shortest or the longest queue. */
  function law(system, what, curve) {
    const colours = palette();
    const laws = shownSystems(system).map((one) => ({ system: one, law: LAWS[what](one) }));
    const reach = ({ mean, variance }) => mean + 4 * Math.sqrt(variance);
    // As far as random routing reaches, unless the chosen router would be squeezed to the left.
    const end = Math.min(Math.max(...laws.map((one) => reach(one.law))), 5 * reach(laws.at(-1).law));
    const xs = Array.from({ length: POINTS }, (_, index) => (end * (index + 1e-9)) / (POINTS - 1));
    const traces = laws.map((one) => ({
      x: xs,
      y: xs.map((x) => one.law[curve](x)),
      name: nameOf(one.system),
      mode: "lines",
      line: {
        color: colours[one.system.policy],
        width: one.system === system ? 3.5 : 1.5,
        dash: one.system === system ? "solid" : { random: "dash", jsq: "dot" }[one.system.policy],
      },
      hovertemplate: `%{y:.3g} at %{x:.3g}<extra>${nameOf(one.system)}</extra>`,
    }));
    const survival = curve === "sf";
    const chosen = laws.at(-1).law;
    draw("rx-law", traces, {
      x: { title: `${WHAT[what]} (limit units)`, range: [0, end] },
      y: {
        title: survival ? "probability to be above" : "density",
        type: survival ? "log" : "linear",
        range: survival ? [-3.3, 0.1] : [0, densityTop(traces, system)],
        exponentformat: "power",
        ...(survival ? { tickvals: [0.001, 0.01, 0.1, 1] } : { nticks: 6 }),
      },
      legend: survival ? "low" : "right",
      summary:
        `${survival ? "Survival function" : "Density"} of the ${WHAT[what]} under ${nameOf(system)}, ` +
        `of mean ${shown(chosen.mean)} and standard deviation ${shown(Math.sqrt(chosen.variance))}, ` +
        "between the curves of JSQ and of random routing.",
    });
    document.getElementById("rx-law-caption").textContent =
      what === "min"
        ? "All routers give the shortest queue the same law, exponential with rate υ: the curves coincide."
        : `${nameOf(system)}: mean ${shown(chosen.mean)}, standard deviation ${shown(Math.sqrt(chosen.variance))}; ` +
          `above ${shown(2 * chosen.mean)}, twice the mean, with probability ${shown(chosen.sf(2 * chosen.mean))}.`;
  }

  /* The top of the density's axis: no curve is cut, but a steep one of JSQ does not flatten the others. */
  function densityTop(traces, system) {
    const tops = traces.map((trace) => Math.max(...trace.y));
    const chosen = tops.at(-1);
    return 1.08 * (system.policy === "jsq" ? chosen : Math.min(Math.max(...tops), 2.5 * chosen));
  }

  /* Mean gaps, those of random routing for comparison. */
  function gaps(system) {
    const colours = palette();
    const ranks = Array.from({ length: system.K }, (_, index) => index + 1);
    const means = formulas.gapMeans(system);
    const traces = [
      {
        type: "bar",
        x: ranks,
        y: means,
        name: nameOf(system),
        marker: { color: colours[system.policy] },
        hovertemplate: "gap %{x}: %{y:.3g}<extra></extra>",
      },
    ];
    if (system.policy !== "random") {
      traces.push({
        x: ranks,
        y: formulas.gapMeans({ ...system, policy: "random" }),
        name: "random",
        mode: "lines+markers",
        line: { color: colours.random, width: 1.5, dash: "dash" },
        marker: { size: 5 },
        hovertemplate: "gap %{x}: %{y:.3g}<extra>random</extra>",
      });
    }
    const edges = means.slice(1);
    draw("rx-gaps", traces, {
      x: { title: "rank of the gap, the shortest queue first", dtick: Math.max(1, Math.ceil(system.K / 10)), showgrid: false },
      y: { title: "mean gap (limit units)", rangemode: "tozero", nticks: 6 },
      legend: "left",
      bargap: 0.2,
      showlegend: true,
      summary:
        `Mean gaps under ${nameOf(system)}: the first is ${shown(means[0])}, ` +
        `the others from ${shown(Math.min(...edges))} to ${shown(Math.max(...edges))}.`,
    });
  }

  /* The factor over JSQ against c, with the system as it is and the design. */
  function trade(system, cs, excess) {
    const colours = palette();
    const marginal = system.policy === "marginal";
    const curves = [{ ...system, policy: "mjsq" }, ...(marginal ? [system] : [])];
    const traces = curves.map((one) => ({
      x: cs,
      y: cs.map((c) => formulas.workloadFactor({ ...one, c })),
      name: nameOf(one),
      mode: "lines",
      line: { color: colours[one.policy], width: one.policy === system.policy || !marginal ? 3 : 1.5 },
      hovertemplate: `factor %{y:.3g} at c = %{x:.3g}<extra>${nameOf(one)}</extra>`,
    }));
    const [first, last] = [cs[0], cs.at(-1)];
    // Each level is named at the end where no curve is.
    const levels = [
      { y: system.K, text: "random", colour: colours.random, dash: "dash", end: "right" },
      { y: 1, text: "JSQ", colour: colours.jsq, dash: "dot", end: "left" },
      {
        y: 1 + excess,
        text: `${shown(100 * excess)} % above JSQ`,
        colour: colours.muted,
        dash: "dashdot",
        end: excess < system.K / 3 ? "left" : "right",
      },
    ];
    for (const { y, text, colour, dash } of levels) {
      const line = { color: colour, width: 1.5, dash };
      const hovertemplate = `${text}: factor ${shown(y)}<extra></extra>`;
      traces.push({ x: [first, last], y: [y, y], mode: "lines", line, showlegend: false, hovertemplate });
    }
    const annotations = levels.map(({ y, text, colour, end }) => ({
      text,
      x: end === "left" ? 0.01 : 0.99,
      xref: "paper",
      xanchor: end,
      y: Math.log10(y),
      yanchor: "bottom",
      showarrow: false,
      font: { color: colour, size: 12 },
    }));
    const point = (x, y, symbol, colour, what) => ({
      x: [x],
      y: [y],
      mode: "markers",
      showlegend: false,
      cliponaxis: false,
      marker: { size: 13, symbol, color: colour, line: { color: colours.text, width: 1.5 } },
      hovertemplate: `${what}: factor %{y:.3g} at c = %{x:.3g}<extra></extra>`,
    });
    const required = formulas.requiredC(marginal ? system : { ...system, policy: "mjsq" }, excess);
    if (required >= first && required <= last) {
      traces.push(point(required, 1 + excess, "diamond", colours.muted, "enough"));
    }
    if (marginal || system.policy === "mjsq") {
      traces.push(point(system.c, formulas.workloadFactor(system), "circle", colours[system.policy], "now"));
    }
    draw("rx-trade", traces, {
      x: { title: "c", type: "log", range: [Math.log10(first), Math.log10(last)], tickvals: [0.1, 1, 10, 100, 1000] },
      y: {
        title: "factor over JSQ",
        type: "log",
        range: [-0.05, Math.log10(Math.max(system.K, 1 + excess)) + 0.08],
        tickvals: [1, 2, 5, 10, 20, 50, 100],
      },
      annotations,
      legend: "above",
      showlegend: marginal,
      summary: `The factor over JSQ falls from ${system.K} to 1 as c grows; it is ${shown(1 + excess)} at c = ${shown(required)}.`,
    });
  }

  root.charts = { law, gaps, trade, nameOf };
})((globalThis.rankrouting ??= {}));
