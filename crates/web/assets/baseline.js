// A pinned answer, and how the one that is shown differs from it.

import { $, make } from "./dom.js";
import { answer } from "./runs.js";

let pinned = null;

// Figures of a forecast by the names that the answer gives them.
function figures({ prediction, training }) {
  return {
    "step time": prediction.iteration_s,
    throughput: prediction.throughput_samples_per_s,
    "samples per step": prediction.samples,
    "speed-up": prediction.speedup,
    "scaling factor": prediction.scaling_factor,
    staleness: prediction.staleness,
    epoch: training?.epoch_s,
    training: training?.total_s,
    cost: training?.cost,
  };
}

function difference(now, then) {
  const percent = 100 * (now / then - 1);
  if (!Number.isFinite(percent)) return "";
  if (Math.abs(percent) < 0.05) return "±0 %";
  const size = Math.abs(percent) < 10 ? Math.abs(percent).toFixed(1) : Math.round(Math.abs(percent)).toLocaleString("en");
  return `${percent > 0 ? "+" : "−"}${size} %`;
}

export function begin() {
  $("pin").addEventListener("click", () => {
    const shown = answer("forecast");
    pinned = shown?.complete ? shown : null;
    if (shown) show(shown);
  });
  $("unpin").addEventListener("click", () => {
    pinned = null;
    const shown = answer("forecast");
    if (shown) show(shown);
  });
}

export function show({ data, body }) {
  for (const old of $("answer").querySelectorAll(".difference")) old.remove();
  $("unpin").hidden = $("pinned").hidden = !pinned;
  if (!pinned) return;
  $("pinned").textContent = `Baseline: ${pinned.question[0]}, ${pinned.question[1]}`;
  if (pinned.body === body) return;
  const [now, then] = [figures(data.forecast), figures(pinned.data.forecast)];
  for (const figure of $("answer").querySelectorAll("[data-figure]")) {
    const text = difference(now[figure.dataset.figure], then[figure.dataset.figure]);
    if (text) figure.children[1].after(make("dd", { class: "difference", title: "against the baseline" }, text));
  }
}
