// A search, with a plot of its front of time and cost that is updated while it runs.

import { $, insert, make } from "./dom.js";
import { stream } from "./api.js";
import { keep, state } from "./state.js";

const lines = (text) => text.split("\n").map((line) => line.trim()).filter(Boolean);

export function begin(run) {
  $("search-form").addEventListener("submit", (event) => {
    event.preventDefault();
    state.search = { minimize: $("minimize").value, vary: $("vary").value, keep: $("keep").value };
    keep();
    run();
  });
}

export function show() {
  const { minimize, vary, keep: kept } = state.search ?? {};
  if (minimize) $("minimize").value = minimize;
  if (vary !== undefined) $("vary").value = vary;
  if (kept !== undefined) $("keep").value = kept;
}

const duration = (seconds) => {
  if (seconds === undefined) return "";
  if (seconds < 120) return `${+seconds.toPrecision(4)} s`;
  if (seconds < 7200) return `${+(seconds / 60).toPrecision(3)} min`;
  return seconds < 172_800 ? `${+(seconds / 3600).toPrecision(3)} h` : `${+(seconds / 86_400).toPrecision(3)} d`;
};

function table({ best, currency }) {
  const keys = Object.keys(best[0]?.values ?? {});
  const titles = [...keys.map((key) => [key.replace(/^(cluster|strategy)\./, ""), false]), ["Step time", true], ["Samples/s", true], ["Training", true], [`Cost, ${currency}`, true]];
  const cell = (text, number) => make("td", number ? { class: "number" } : {}, text);
  const row = (entry, place) =>
    make(
      "tr",
      place === 0 ? { class: "own" } : {},
      ...keys.map((key) => cell(entry.values[key], false)),
      cell(duration(entry.iteration_s), true),
      cell(entry.throughput_samples_per_s.toLocaleString("en", { maximumSignificantDigits: 4 }), true),
      cell(duration(entry.training_s), true),
      cell(entry.cost?.toLocaleString("en", { maximumFractionDigits: 2 }) ?? "", true),
    );
  const head = make("tr", {}, ...titles.map(([title, number]) => make("th", number ? { scope: "col", class: "number" } : { scope: "col" }, title)));
  return make("div", { class: "wide", tabindex: "0", role: "region", "aria-label": "The best configurations" }, make("table", {}, make("thead", {}, head), make("tbody", {}, ...best.map(row))));
}

export async function run(job) {
  if (!state.search) return;
  const { minimize, vary, keep: kept } = state.search;
  const body = { scenario: state.scenario, minimize, vary: lines(vary), subject_to: lines(kept) };
  $("found").replaceChildren();
  $("front").replaceChildren();
  await stream("search", body, job.signal, (event) => {
    if (event.plot) insert($("front"), event.plot);
    if (event.event === "progress") job.progress(event.done / event.of, `${event.done.toLocaleString("en")} of ${event.of.toLocaleString("en")} configurations`);
    if (event.event !== "found") return;
    const { report } = event;
    const words = [`${report.evaluated.toLocaleString("en")} of ${report.configurations.toLocaleString("en")} configurations were predicted: ${report.stopped}.`, report.runner_up, report.without_constraints];
    $("found").replaceChildren(make("h3", {}, "The best"), table(report), ...words.filter(Boolean).map((text) => make("p", { class: "note" }, text)));
  });
}
