// Studies: each is a panel with fields, a job with progress, and an answer of plots, tables and sentences, whose rows and
// points can become the scenario.

import { $, insert, make, save } from "./dom.js";
import { blob, stream } from "./api.js";
import { answer } from "./runs.js";
import { keep, state } from "./state.js";
import { specs } from "./specs.js";
import * as apply from "./apply.js";
import * as follow from "./follow.js";
import * as panel from "./panel.js";
import * as plots from "./plots.js";

// Wider plots do not stand side by side.
const narrow = 500;
let use;

const number = (value) => value.toLocaleString("en");

function drawing({ name, svg }) {
  const figure = make("figure", { class: "drawing", "data-name": name, tabindex: "0", "aria-label": `plot: ${name}` });
  insert(figure, svg);
  return figure;
}

function drawings(all) {
  const made = all.map(drawing);
  const wide = (figure) => figure.querySelector("svg").viewBox.baseVal.width > narrow;
  const beside = made.filter((figure) => !wide(figure));
  return [...(beside.length > 0 ? [make("div", { class: "plots" }, ...beside)] : []), ...made.filter(wide)];
}

function section({ html, rows }, uses, change) {
  const box = make("div", {});
  insert(box, html);
  const found = rows.map((row) => uses[row]);
  apply.offer(box.querySelector("table"), found.map((one) => one?.edits ?? []), change, found.map((one) => one?.words));
  return box;
}

// Buttons for what no row of a table stands for.
function others({ tables, uses }, change) {
  const shown = new Set(tables.flatMap(({ rows }) => rows.map(String)));
  return Object.entries(uses).filter(([key]) => !shown.has(key)).map(([, { words, edits }]) => {
    const button = make("button", { type: "button", class: "use-all" }, `Use ${words}`);
    button.addEventListener("click", () => change(edits));
    return button;
  });
}

function draw(spec, { data, body, complete }) {
  const box = $(`${spec.name}-answer`);
  if (!complete) {
    if (data.plot) box.replaceChildren(...drawings([{ name: spec.name, svg: data.plot }]));
    return;
  }
  const open = new Set([...box.querySelectorAll("details[open] > summary")].map((summary) => summary.textContent));
  const change = (edits) => use(body.scenario, edits);
  const { uses } = data;
  // Points of plots may stand for more than the rows of the tables.
  const drawn = drawings(data.plots);
  const points = new Set(drawn.flatMap((one) => [...one.querySelectorAll("[data-index]")].map((point) => point.dataset.index)));
  const rest = Object.fromEntries(Object.entries(uses).filter(([key]) => !points.has(key)));
  box.replaceChildren(
    make("p", { class: "sentence" }, data.summary),
    ...others({ tables: data.tables, uses: rest }, change),
    ...drawn,
    ...data.tables.map((table) => section(table, uses, change)),
    ...(data.text ? [make("pre", { class: "toml", tabindex: "0", role: "region", "aria-label": spec.shows ?? "The plan as a part of a scenario" }, data.text)] : []),
    ...data.notes.map((text) => make("p", { class: "note" }, text)),
  );
  for (const summary of box.querySelectorAll("summary")) summary.parentElement.open = open.has(summary.textContent);
  plots.enliven(box, (point) => {
    const found = uses[point.dataset.index];
    return found && { words: "Use this configuration", act: () => change(found.edits) };
  });
}

function view(spec) {
  const asked = () => state.studies?.[spec.name] ?? (spec.immediate ? {} : null);
  const files = spec.fields.some(({ kind }) => kind === "files");
  return {
    name: spec.name,
    manual: !spec.immediate,
    body: () => asked() && (!files || follow.body()) && { scenario: state.scenario, ...asked(), ...(files ? follow.body() : {}) },
    identity: files ? follow.identity : undefined,
    async run(body, job) {
      panel.mark(spec, null);
      let last;
      await stream(spec.name, body, job.signal, (event) => {
        if (event.event === "answer") last = event;
        else {
          if (event.plot) job.part(event);
          job.progress(event.of ? event.done / event.of : undefined, `${number(event.done)}${event.of ? ` of ${number(event.of)}` : ""} ${event.what}`);
        }
      });
      return last;
    },
    failed: (problem) => panel.mark(spec, problem),
    draw: (entry) => draw(spec, entry),
    summary: ({ data }) => data.summary,
    // The rows of a sweep are asked for again: the page has only those that it shows.
    async download() {
      const shown = answer(spec.name);
      if (!shown?.complete) return;
      if (spec.name === "sweep") save("sweep.jsonl", await blob("sweep", shown.body, "application/json"));
      else save(`${spec.name}.json`, `${JSON.stringify(shown.data.report, null, 2)}\n`, "application/json");
    },
  };
}

export const views = Object.fromEntries(specs.map((spec) => [spec.name, view(spec)]));

// Adds tabs and panels; `run` starts the study that is shown, once the scenario is `ready`; `used` changes the scenario.
export function begin(ready, run, used) {
  use = used;
  for (const spec of specs) {
    $("tabs").append(make("button", { role: "tab", type: "button", id: `tab-${spec.name}`, "aria-controls": spec.name, "aria-selected": "false", tabindex: "-1" }, spec.tab));
    const form = panel.form(spec, async () => {
      await ready();
      state.studies = { ...state.studies, [spec.name]: panel.read(spec) };
      keep();
      run();
    });
    $("tools").append(make("div", { id: spec.name, role: "tabpanel", "aria-labelledby": `tab-${spec.name}`, hidden: true }, form, make("div", { id: `${spec.name}-answer`, class: "study-answer dims" })));
  }
}

// Another scenario is coming: what was entered belongs to the one before. What is entered from now on is kept.
export function forget() {
  for (const spec of specs) panel.release(spec);
}

// Fills the fields for a scenario, and hides what it has no use for. Whether the view that is shown is still there.
export function show({ resolved, transformer }) {
  for (const spec of specs) {
    panel.suit(spec, state.studies?.[spec.name], state.scenario, resolved);
    $(`tab-${spec.name}`).hidden = spec.fits ? !spec.fits(resolved, transformer) : false;
  }
  return state.view === "" || !$(`tab-${state.view}`).hidden;
}
