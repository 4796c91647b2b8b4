// The sliders of sliders.md: looks numbers up in PLANS, which the package computed, and draws curves of them.
(() => {
  const part = (id) => document.getElementById(id);
  const sliders = { epsilon: PLANS.epsilons, people: PLANS.people, base_rate: PLANS.base_rates };
  const percent = (x) => `${(100 * x).toLocaleString("en", { maximumFractionDigits: 1 })} %`;
  const count = (n) => n.toLocaleString("en");
  const show = { epsilon: String, people: count, base_rate: percent };

  function read() {
    const at = {};
    for (const name of Object.keys(sliders)) {
      at[name] = Number(part(name).value);
      const text = show[name](sliders[name][at[name]]);
      part(name).setAttribute("aria-valuetext", text);
      part(name).nextElementSibling.textContent = text;
    }
    return at;
  }

  function tellShare(at) {
    const [low, high] = PLANS.interval[at.epsilon][at.people][at.base_rate];
    const text = `between ${percent(low)} and ${percent(high)} say yes.`;
    if (low === 0 && high === 1) return `${text} That is no knowledge at all: ask more people.`;
    return low === 0 ? `${text} These people cannot tell it from nobody: ask more.` : text;
  }

  function tellError(at, rate) {
    const width = PLANS.certified[at.epsilon][at.people];
    const constant = Math.min(rate, 1 - rate);
    if (width === null) return "nothing is certified: ask more people.";
    const end = `Always saying ${rate <= 0.5 ? "no" : "yes"} is wrong for ${percent(constant)}`;
    const better = width < constant ? "" : ", so that even a perfect model cannot be shown to be better";
    return `known to within ${percent(width)} either way. ${end}${better}.`;
  }

  function tellCalibration(at) {
    const error = PLANS.intercept[at.epsilon][at.people][at.base_rate];
    const text = `its log-odds are right to about ± ${error.toLocaleString("en", { maximumSignificantDigits: 2 })} at best.`;
    return error >= 1 ? `${text} Such answers hardly move a model.` : text;
  }

  function tellPerson(at, rate) {
    const keep = PLANS.truth[at.epsilon];
    const belief = (rate * keep) / (rate * keep + (1 - rate) * (1 - keep));
    return `an answer is true with probability ${keep.toFixed(3)}. Who sees a yes believes it with ${percent(belief)}, before it ${percent(rate)}.`;
  }

  const [left, right, top, bottom] = [60, 625, 12, 275];
  const logs = PLANS.people.map(Math.log10);
  const across = (log) => left + ((log - logs[0]) / (logs[logs.length - 1] - logs[0])) * (right - left);
  const down = (width) => top + (Math.log10(Math.max(width, 1e-3)) / -3) * (bottom - top);

  function element(name, attributes, text) {
    const made = document.createElementNS("http://www.w3.org/2000/svg", name);
    Object.entries(attributes).forEach(([key, value]) => made.setAttribute(key, value));
    if (text !== undefined) made.textContent = text;
    return made;
  }

  function widthsOf(epsilon, rate) {
    return PLANS.interval[epsilon].map((row) => (row[rate][1] - row[rate][0]) / 2);
  }

  function draw(at) {
    const parts = [];
    for (const width of [1, 0.1, 0.01, 0.001]) {
      parts.push(element("line", { x1: left, x2: right, y1: down(width), y2: down(width), class: "grid" }));
      parts.push(element("text", { x: left - 6, y: down(width) + 4, "text-anchor": "end" }, percent(width)));
    }
    for (const log of [2, 3, 4, 5, 6]) {
      parts.push(element("text", { x: across(log), y: bottom + 18, "text-anchor": log === 6 ? "end" : "middle" }, count(10 ** log)));
    }
    parts.push(element("text", { x: (left + right) / 2, y: bottom + 38, "text-anchor": "middle" }, "people who answer"));
    PLANS.epsilons.forEach((_, e) => {
      const points = widthsOf(e, at.base_rate).map((width, i) => `${across(logs[i])},${down(width)}`);
      parts.push(element("polyline", { points: points.join(" "), class: e === at.epsilon ? "yours" : "other" }));
    });
    const last = PLANS.epsilons.length - 1;
    for (const [e, above] of [[0, -6], [last, 14]]) {
      const width = widthsOf(e, at.base_rate)[12];
      parts.push(element("text", { x: across(logs[12]), y: down(width) + above, "text-anchor": e === 0 ? "start" : "end" }, `epsilon = ${PLANS.epsilons[e]}`));
    }
    const rate = down(PLANS.base_rates[at.base_rate]);
    parts.push(element("line", { x1: left, x2: right, y1: rate, y2: rate, class: "rate" }));
    const here = widthsOf(at.epsilon, at.base_rate)[at.people];
    parts.push(element("circle", { cx: across(logs[at.people]), cy: down(here), r: 6 }));
    part("curve").replaceChildren(...parts);
  }

  function update() {
    const at = read();
    const rate = PLANS.base_rates[at.base_rate];
    part("share").textContent = tellShare(at);
    part("error").textContent = tellError(at, rate);
    part("calibration").textContent = tellCalibration(at);
    part("person").textContent = tellPerson(at, rate);
    draw(at);
  }

  Object.keys(sliders).forEach((name) => part(name).addEventListener("input", update));
  update();
})();
