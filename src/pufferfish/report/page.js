"use strict";
// Everything was computed when the page was written; here it is looked up between two computed points, on log scales.
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

// A value at place `at` (2.25 is a quarter of the way from the third point to the fourth); null where none is known.
function between(values, at) {
  const low = Math.floor(at), share = at - low;
  if (share === 0) return values[low];
  const [a, b] = [values[low], values[low + 1]];
  if (a === null || b === null) return null;
  return a > 0 && b > 0 ? Math.exp((1 - share) * Math.log(a) + share * Math.log(b)) : (1 - share) * a + share * b;
}

// Moves the mark of the slider in a chart to place `at`, and its dot to the error there.
function mark(chart, frame, about, at, error) {
  const x = frame.left + (frame.right - frame.left) * at / (about.epsilons.length - 1), dot = chart.querySelector(".dot");
  chart.querySelector(".at").setAttribute("d", `M${x} ${frame.top}V${frame.bottom}`);
  dot.setAttribute("cx", x);
  dot.setAttribute("visibility", error > 0 ? "visible" : "hidden");
  if (error > 0) {
    const share = Math.log(error / about.least) / Math.log(about.most / about.least);
    dot.setAttribute("cy", frame.bottom - (frame.bottom - frame.top) * share);
  }
}

for (const about of data) {
  const root = document.getElementById(about.id);
  const input = root.querySelector("input"), output = root.querySelector("output");
  const rows = root.querySelectorAll("tr[data-curve]");
  const charts = [...root.querySelectorAll(".chart")];  // for wide screens and for narrow ones
  const written = (error, scale) => error && scale ? toTheNoise(error, scale / about.division, about.whole) : number(error);
  const show = () => {
    const at = input.value / about.steps;
    const epsilon = between(about.epsilons, at);
    const own = about.curves[about.own];
    for (const row of rows) {
      const curve = about.curves[row.dataset.curve];
      const [scale, error] = [between(curve.scale, at), between(curve.error, at)];
      const near = Number.isInteger(at) ? "" : "≈ ";
      row.querySelector(".scale").textContent = scale === null ? "none known" : near + number(scale);
      row.querySelector(".error").textContent = error === null ? "none known" : near + written(error, scale);
    }
    const error = between(own.error, at);
    output.textContent = error === null
      ? `ε = ${atMost(epsilon)}: no noise is known`
      : error === 0
      ? `ε = ${atMost(epsilon)}: the noise is 0 with at least 95% probability: each value would then be published exactly`
      : `ε = ${atMost(epsilon)}: each value is within ${Number.isInteger(at) ? "" : "about "}${written(error, between(own.scale, at))} of the exact one with 95% probability`;
    input.setAttribute("aria-valuetext", output.textContent);
    charts.forEach((chart, i) => mark(chart, about.frames[i], about, at, error));
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
  hint.textContent = "scroll → for all of it";
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

const folds = [...document.querySelectorAll("details:not([open])")];
addEventListener("beforeprint", () => folds.forEach((fold) => { fold.dataset.shut = fold.open ? "" : "yes"; fold.open = true; }));
addEventListener("afterprint", () => folds.forEach((fold) => { if (fold.dataset.shut) fold.open = false; }));
