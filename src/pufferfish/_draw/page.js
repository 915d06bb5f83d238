"use strict";
// Scales were proved when the page was written; here they are looked up, and what noise of a scale errs is computed.
const data = JSON.parse(document.getElementById("data").textContent) || [];

// The nearest number of four digits; of two as near, the even one, as digits.py decides from the digits that are written.
function nearest(value) {
  const [mantissa, power] = Math.abs(value).toExponential().split("e");
  const digits = mantissa.replace(".", "");
  if (digits.slice(4) !== "5") return Number(value.toPrecision(4));
  const four = Number(digits.slice(0, 4));
  return Math.sign(value) * Number(`${four + (four % 2)}e${power - 3}`);
}

// As `number` of digits.py writes: four digits, no powers of ten where that can be.
function number(value) {
  if (value === 0) return "0";
  const kept = nearest(value);
  if (Math.abs(kept) < 1e-6 || Math.abs(kept) >= 1e15) {
    const [mantissa, power] = kept.toExponential(3).split("e");
    return `${Number(mantissa)}e${Number(power)}`;
  }
  return kept.toLocaleString("en-US", { maximumFractionDigits: 12 });
}

// As `at_most` of digits.py writes: rounded up.
function atMost(value) {
  if (value === 0) return "0";
  const near = nearest(value);
  return number(near >= value * (1 - 1e-6) ? near : near + 10 ** (Math.floor(Math.log10(near)) - 3));
}

// As `to_the_noise` of digits.py writes: a value to three digits of its noise, whole numbers without decimals.
function toTheNoise(value, scale, whole) {
  const decimals = whole ? 0 : Math.max(0, 2 - Math.floor(Math.log10(scale)));
  if (decimals > 9 || Math.abs(value) >= 1e15) return number(value);
  const [before, after] = value.toFixed(decimals).split(".");
  return before.replace(/\B(?=(\d{3})+$)/g, ",") + (after ? `.${after}` : "");
}

// The least whole number that noise of a scale exceeds with probability alpha at most, as discrete_laplace.py has it:
// P(|Z| > t) = 2 p^(t+1) / (1 + p) with p = exp(-1/scale). More than logarithms can be off is added, never taken away.
function accuracy(scale, alpha) {
  const closed = scale * (Math.log(2) - Math.log(alpha) - Math.log1p(Math.exp(-1 / scale)));
  const above = Math.ceil(closed + 1e-13 * (closed + scale));
  return scale < 2 ** 33 ? Math.max(0, above - 1) : above;
}

// The larger one of two neighbours, at `low` and one farther; null where the first is not known, whose noise is proved
// to be enough for all larger epsilon.
function larger(values, low, exact) {
  return exact || values[low] === null ? values[low] : Math.max(values[low], values[low + 1] ?? 0);
}

// What a mechanism adds at a place of the slider, in units: [scale, error, whether it was proved for this very place].
// Between two places that were proved it is the noise of the smaller epsilon.
function noiseAt(curve, place, alpha) {
  const low = Math.floor(place / curve.every), exact = place % curve.every === 0;
  const scale = larger(curve.scale, low, exact);
  if (scale === null) return [null, null, exact];
  return [scale, curve.error ? larger(curve.error, low, exact) : accuracy(scale, alpha), exact];
}

// The epsilon at a place of the slider: places lie in equal ratios.
function epsilonAt(about, place) {
  const low = Math.floor(place / about.steps), share = (place % about.steps) / about.steps;
  const [a, b] = [about.epsilons[low], about.epsilons[low + 1]];
  return share === 0 ? a : Math.exp((1 - share) * Math.log(a) + share * Math.log(b));
}

// Moves the mark of the slider in a chart to a place, and its dot to the error there.
function mark(chart, frame, about, place, error) {
  const places = about.steps * (about.epsilons.length - 1);
  const x = frame.left + (frame.right - frame.left) * place / places, dot = chart.querySelector(".dot");
  chart.querySelector(".at").setAttribute("d", `M${x} ${frame.top}V${frame.bottom}`);
  dot.setAttribute("cx", x);
  dot.setAttribute("visibility", error > 0 ? "visible" : "hidden");
  if (error > 0) {
    const share = Math.log(error / about.least) / Math.log(about.most / about.least);
    dot.setAttribute("cy", frame.bottom - (frame.bottom - frame.top) * share);
  }
}

// The errors of releases at every place of one slider, as they were written when the page was made.
function follow(about) {
  const root = document.getElementById(about.id), input = root.querySelector("input"), output = root.querySelector("output");
  const show = () => {
    const place = Number(input.value);
    output.textContent = about.places[place];
    input.setAttribute("aria-valuetext", output.textContent);
    for (const row of root.querySelectorAll("tr[data-row]")) {
      row.querySelector(".error").textContent = about.rows[row.dataset.row][place];
    }
  };
  input.disabled = false;
  input.addEventListener("input", show);
  root.querySelector("button").addEventListener("click", () => { input.value = input.defaultValue; show(); });
  show();
}

data.filter((about) => about.rows).forEach(follow);

for (const about of data.filter((about) => about.curves)) {
  const root = document.getElementById(about.id);
  const input = root.querySelector("input"), output = root.querySelector("output");
  const rows = root.querySelectorAll("tr[data-curve]");
  const charts = [...root.querySelectorAll(".chart")];  // for wide screens and for narrow ones
  const written = (error, scale) => error && scale ? toTheNoise(error, scale, about.whole) : number(error);
  const show = () => {
    const place = Number(input.value);
    const epsilon = epsilonAt(about, place);
    for (const row of rows) {
      const [scale, error, exact] = noiseAt(about.curves[row.dataset.curve], place, about.alpha);
      const near = exact ? "" : "≤ ";
      row.querySelector(".scale").textContent = scale === null ? "none known" : near + number(scale * about.unit);
      row.querySelector(".error").textContent = error === null ? "none known" : near + written(error * about.unit, scale * about.unit);
    }
    const [scale, units] = noiseAt(about.curves[about.own], place, about.alpha);
    const error = units === null ? null : units * about.unit;
    output.textContent = error === null
      ? `ε = ${atMost(epsilon)}: no noise is known`
      : error === 0
      ? `ε = ${atMost(epsilon)}: the noise is 0 with at least 95% probability: each value would then be published exactly`
      : `ε = ${atMost(epsilon)}: each value is within ${written(error, scale * about.unit)} of the exact one with 95% probability`;
    input.setAttribute("aria-valuetext", output.textContent);
    if (about.command) root.querySelector(".command code").textContent = `${about.command} ${atMost(epsilon).replaceAll(",", "")}`;
    charts.forEach((chart, i) => mark(chart, about.frames[i], about, place, error));
  };
  input.disabled = false;
  input.addEventListener("input", show);
  root.querySelector("button").addEventListener("click", () => { input.value = input.defaultValue; show(); });
  show();
}

// A box that is wider than the page fades at the right while more of it follows, and a line above it says so.
for (const box of document.querySelectorAll(".scroll")) {
  const hint = document.createElement("p");
  hint.className = "hint";
  hint.textContent = document.body.dataset.scroll;
  hint.setAttribute("aria-hidden", "true");
  hint.hidden = true;
  box.before(hint);
  const look = () => {
    const wider = box.scrollWidth - box.clientWidth;
    hint.hidden = wider <= 1;
    box.classList.toggle("more", wider - box.scrollLeft > 1);
  };
  box.addEventListener("scroll", look, { passive: true });
  const seen = new ResizeObserver(look);
  for (const part of [box, ...box.children]) seen.observe(part);
}

// A long table shows the rows that have what is searched for.
for (const search of document.querySelectorAll(".search")) {
  const rows = [...search.parentElement.querySelectorAll(".scroll")].find((box) => search.compareDocumentPosition(box) & 4)
    .querySelectorAll("tbody tr");
  search.hidden = false;
  search.querySelector("input").addEventListener("input", (event) => {
    const wanted = event.target.value.trim().toLowerCase();
    for (const row of rows) row.hidden = !row.textContent.toLowerCase().includes(wanted);
  });
}

const folds = [...document.querySelectorAll("details:not([open])")];
addEventListener("beforeprint", () => folds.forEach((fold) => { fold.dataset.shut = fold.open ? "" : "yes"; fold.open = true; }));
addEventListener("afterprint", () => folds.forEach((fold) => { if (fold.dataset.shut) fold.open = false; }));

// A page with a proof checks it when it is opened, after it is shown.
const proof = document.getElementById("proof");
if (proof !== null) {
  setTimeout(() => {
    const [release, certificate] = JSON.parse(proof.textContent);
    const [proved, unchecked = ""] = pufferfish.check(release, certificate).says.split("\n");
    document.getElementById("checked").textContent = `This page checked its proof when you opened it. ${proved}`;
    document.getElementById("unchecked").textContent = unchecked;
  });
}
