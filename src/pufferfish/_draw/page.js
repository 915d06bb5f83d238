"use strict";
const data = JSON.parse(document.getElementById("data").textContent) || [];

// What was written for each place of a slider when the page was made: a sentence, the cells of each row of its table, a
// command, and in each chart (for wide screens and for narrow ones) how far along a mark is, and how high its dot.
function follow(about) {
  const root = document.getElementById(about.id), input = root.querySelector("input"), output = root.querySelector("output");
  const charts = root.querySelectorAll(".chart");
  const show = () => {
    const place = Number(input.value);
    output.textContent = about.places[place];
    input.setAttribute("aria-valuetext", output.textContent);
    for (const row of root.querySelectorAll("tr[data-row]")) {
      const cells = about.rows[row.dataset.row];
      for (const name in cells) row.querySelector(`.${name}`).textContent = cells[name][place];
    }
    if (about.commands?.length) root.querySelector(".command code").textContent = about.commands[place];
    charts.forEach((chart, i) => {
      const [x, y] = about.marks[i][place], dot = chart.querySelector(".dot");
      chart.querySelector(".here").setAttribute("transform", `translate(${x})`);
      dot.setAttribute("visibility", y === null ? "hidden" : "visible");
      if (y !== null) dot.setAttribute("cy", y);
    });
  };
  input.disabled = false;
  input.addEventListener("input", show);
  root.querySelector("button").addEventListener("click", () => { input.value = input.defaultValue; show(); });
  show();
}

data.forEach(follow);

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
