// A search, with a plot of its front of time and cost that is updated while it runs.

import { $, insert, make } from "./dom.js";
import { stream } from "./api.js";
import { keep, state } from "./state.js";
import * as apply from "./apply.js";
import * as criteria from "./criteria.js";
import * as plots from "./plots.js";

export const name = "search";
// A search begins when it is asked for.
export const manual = true;
let use;

export function begin(run, used) {
  use = used;
  criteria.begin();
  $("search-form").addEventListener("submit", (event) => {
    event.preventDefault();
    state.search = criteria.read();
    keep();
    run();
  });
}

// The fields: as searched before, or what suits a new scenario.
export function show(resolved, fresh) {
  const wanted = state.search ?? (fresh ? criteria.suggested(state.scenario, resolved) : null);
  if (wanted) criteria.show(wanted);
}

export function body() {
  if (!state.search) return null;
  const { minimize, vary, keep: kept } = state.search;
  return { scenario: state.scenario, minimize, vary, subject_to: kept };
}

export async function run(body, job) {
  let last;
  await stream("search", body, job.signal, (event) => {
    if (event.event === "found") last = event;
    else {
      job.part(event);
      job.progress(event.done / event.of, `${event.done.toLocaleString("en")} of ${event.of.toLocaleString("en")} configurations`);
    }
  });
  return last;
}

// The varied keys of a configuration, as edits; groups without workers are removed, the last one first.
function edits({ values }) {
  const none = ([key, value]) => value === "0" && /^cluster\.workers\.\d+\.count$/.test(key);
  const entries = Object.entries(values);
  const left = entries.filter((entry) => !none(entry)).map(([key, value]) => ({ key, value }));
  return [...left, ...entries.filter(none).reverse().map(([key]) => ({ key: key.slice(0, -".count".length), value: null }))];
}

export function draw({ data, body, complete }) {
  insert($("front"), data.plot ?? "");
  const { report } = data;
  if (!complete) return $("found").replaceChildren();
  const words = [`${report.evaluated.toLocaleString("en")} of ${report.configurations.toLocaleString("en")} configurations were predicted: ${report.stopped}.`, report.runner_up, report.without_constraints];
  insert($("found"), data.tables.join("\n"));
  $("found").append(...words.filter(Boolean).map((text) => make("p", { class: "note" }, text)));
  const all = new Map([...report.front, ...report.best].map((entry) => [entry.index, entry]));
  const change = (edits) => use(body.scenario, edits);
  const offer = (table, entries) => apply.offer(table, entries.map(edits), change, entries.map((entry) => Object.values(entry.values).join(", ")));
  const tables = $("found").querySelectorAll("table");
  offer(tables[0], report.best);
  if (data.front_rows.length > 0) offer(tables[1], data.front_rows.map((index) => all.get(index)));
  plots.enliven($("front").parentElement, (point) => {
    const entry = all.get(Number(point.dataset.index));
    return entry && { words: "Use this configuration", act: () => change(edits(entry)) };
  });
}

export function summary({ data }) {
  return `The search is done. ${$("found").querySelector("tbody tr")?.textContent ?? ""} ${data.report.stopped}.`;
}
