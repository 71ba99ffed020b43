// The forecast of one method: figures, plots and tables, as the server renders them.

import { $, insert, make, save } from "./dom.js";
import { blob, stream } from "./api.js";
import { state } from "./state.js";

export let last = null;

export function offer(methods) {
  const select = $("method");
  const auto = methods.find((method) => !method.refusal);
  const options = [["auto", auto ? `auto (${auto.name})` : "auto"], ...methods.map(({ name, refusal }) => [name, refusal ? `${name} – does not apply` : name])];
  select.replaceChildren(...options.map(([value, words]) => make("option", { value }, words)));
  select.value = state.method;
  if (select.value !== state.method) select.value = state.method = "auto";
}

export async function run(job) {
  const body = { scenario: state.scenario, method: state.method };
  $("answer").setAttribute("aria-busy", "true");
  try {
    await stream("predict", body, job.signal, (event) => {
      if (event.event === "progress") {
        const rate = event.throughput_samples_per_s.toPrecision(4);
        job.progress(event.done / event.of, `${event.workers} workers: ${rate} samples/s`);
      } else if (event.event === "answer") {
        last = event;
        insert($("answer"), event.html);
      }
    });
  } finally {
    $("answer").setAttribute("aria-busy", "false");
  }
}

const quoted = (value) => (/[",\n]/.test(`${value}`) ? `"${`${value}`.replaceAll('"', '""')}"` : value);

function table(points) {
  const flat = points.map(({ interval_samples_per_s: [low, high] = ["", ""], ...point }) => ({ ...point, low_samples_per_s: low, high_samples_per_s: high }));
  const columns = Object.keys(flat[0] ?? { workers: 0 });
  return `${[columns, ...flat.map((point) => columns.map((column) => quoted(point[column])))].map((cells) => cells.join(",")).join("\n")}\n`;
}

export async function download(what) {
  const name = (last?.forecast.scenario.model.zoo ?? "forecast").replaceAll(/[^\w-]/g, "-");
  if (what === "toml") return save(`${name}.toml`, state.scenario, "application/toml");
  if (what === "html") {
    return save(`${name}.html`, await blob("predict", { scenario: state.scenario, method: state.method }, "text/html"));
  }
  if (!last) return;
  if (what === "json") save(`${name}.json`, `${JSON.stringify(last.forecast, null, 2)}\n`, "application/json");
  if (what === "csv") save(`${name}.csv`, table(last.forecast.scaling), "text/csv");
  if (what === "svg") {
    const drawing = $("answer").querySelector("figure svg");
    if (drawing) save(`${name}.svg`, new XMLSerializer().serializeToString(drawing), "image/svg+xml");
  }
}
