// The forecast of one method: figures, plots and tables, as the server renders them. The headline comes first, then the
// scaling curve, then what would help.

import { $, insert, make, save, several } from "./dom.js";
import { blob, stream } from "./api.js";
import { state } from "./state.js";
import { answer } from "./runs.js";
import * as apply from "./apply.js";
import * as pins from "./pins.js";
import * as plots from "./plots.js";
import * as reasons from "./reasons.js";

export const name = "forecast";
let use;

export function begin(used) {
  use = used;
}

export function offer(methods) {
  const select = $("method");
  const auto = methods.find((method) => !method.refusal);
  const options = [["auto", auto ? `auto (${auto.name})` : "auto"], ...methods.map(({ name, refusal }) => [name, refusal ? `${name} – does not apply` : name])];
  select.replaceChildren(...options.map(([value, words]) => make("option", { value }, words)));
  select.value = state.method;
  if (select.value !== state.method) select.value = state.method = "auto";
}

export function body() {
  return { scenario: state.scenario, method: state.method };
}

export async function run(body, job) {
  let last;
  await stream("predict", body, job.signal, (event) => {
    if (event.event === "progress") {
      const rate = event.throughput_samples_per_s.toPrecision(4);
      job.progress(event.done / event.of, `${several(event.workers, "worker")}: ${rate} samples/s`);
    } else if (event.event === "part") job.part(event);
    else if (event.event === "answer") last = event;
  });
  return last;
}

export function draw({ data, body, complete }) {
  const open = new Set([...$("answer").querySelectorAll("details[open] > summary")].map((summary) => summary.textContent));
  insert($("answer"), data.html);
  $("answer").querySelector(".why").prepend(make("h3", {}, "Why"), reasons.why(data.forecast));
  $("answer").querySelector(".risk").prepend(make("h3", {}, "What could go wrong"), reasons.risks(data.forecast));
  for (const summary of $("answer").querySelectorAll("summary")) summary.parentElement.open = open.has(summary.textContent);
  plots.enliven($("answer"));
  const change = (edits) => use(body.scenario, edits);
  if (complete) {
    apply.offer(apply.table($("answer"), "What would help"), data.apply.what_if, change, data.forecast.advice.what_if.map((row) => row.change));
    apply.offer(apply.table($("answer"), "Scaling"), data.apply.scaling, change, data.forecast.scaling.map((row) => several(row.workers, "worker")));
  }
  pins.show();
}

export function summary({ data, question }) {
  return `Answer for ${question[0]}. ${$("answer").querySelector(".sentence")?.textContent ?? ""} Method ${data.forecast.prediction.method}.`;
}

const quoted = (value) => (/[",\n]/.test(`${value}`) ? `"${`${value}`.replaceAll('"', '""')}"` : value);

function table(points) {
  const flat = points.map(({ interval_samples_per_s: [low, high] = ["", ""], ...point }) => ({ ...point, low_samples_per_s: low, high_samples_per_s: high }));
  const columns = Object.keys(flat[0] ?? { workers: 0 });
  return `${[columns, ...flat.map((point) => columns.map((column) => quoted(point[column])))].map((cells) => cells.join(",")).join("\n")}\n`;
}

// Everything belongs to the answer that is shown, whatever the question is by now.
export async function download(what) {
  const shown = answer(name);
  if (!shown?.complete) return;
  const { forecast } = shown.data;
  const called = (forecast.scenario.model.zoo ?? "forecast").replaceAll(/[^\w-]/g, "-");
  if (what === "toml") save(`${called}.toml`, shown.body.scenario, "application/toml");
  if (what === "json") save(`${called}.json`, `${JSON.stringify(forecast, null, 2)}\n`, "application/json");
  if (what === "csv") save(`${called}.csv`, table(forecast.scaling), "text/csv");
  if (what === "html") save(`${called}.html`, await blob("predict", shown.body, "text/html"));
}
