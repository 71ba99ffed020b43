// Pinned answers: up to three beside the one that is shown, kept in the link.

import { $, make } from "./dom.js";
import { answer } from "./runs.js";
import { keep, state } from "./state.js";
import { money, percent, time } from "./format.js";
import * as decision from "./decision.js";

const most = 3;
let use;

export function begin(used) {
  use = used;
  $("pin").addEventListener("click", () => {
    const shown = answer("forecast");
    if (!shown?.complete) return;
    const { title, figures } = summarised(shown);
    state.pins = [...(state.pins ?? []).filter((pin) => pin.title !== title), { title, figures, scenario: shown.body.scenario, choice: state.choice }].slice(-most);
    keep("pin");
    show();
  });
}

const has = (value) => value !== undefined && value !== null;

// What is kept of an answer: a few figures.
function summarised({ data: { forecast }, question, body }) {
  const { prediction, training } = forecast;
  const decided = body.scenario === state.scenario ? decision.chosen() : null;
  const own = decided?.option?.figures;
  const figures = {
    "step time": prediction.iteration_s,
    throughput: prediction.throughput_samples_per_s,
    time: own?.time_s ?? training?.total_s,
    cost: own?.cost ?? training?.cost,
    late: own?.late,
    memory: prediction.transformer ? prediction.transformer.memory.most / prediction.transformer.memory.capacity : undefined,
  };
  return { title: decided?.label ? `${question[0].split(" on ")[0]}, ${decided.label}` : `${question[0]}, ${question[1]}`, figures: Object.fromEntries(Object.entries(figures).filter(([, value]) => has(value))) };
}

function difference(now, then) {
  const change = 100 * (now / then - 1);
  if (!Number.isFinite(change)) return "";
  if (Math.abs(change) < 0.05) return "±0 %";
  const size = Math.abs(change) < 10 ? Math.abs(change).toFixed(1) : Math.round(Math.abs(change)).toLocaleString("en");
  return `${change > 0 ? "+" : "−"}${size} %`;
}

const rows = [["time", "time", time], ["cost", "cost", (value) => money(value, "").trim()], ["late", "risk of being late", percent], ["step time", "step time", time], ["throughput", "samples/s", (value) => `${+value.toPrecision(4)}`], ["memory", "memory", percent]];

export function show() {
  const pins = state.pins ?? [];
  $("pinned").hidden = pins.length === 0;
  const shown = answer("forecast");
  $("pin").disabled = !shown?.complete;
  if (pins.length === 0) return;
  const now = shown?.complete ? summarised(shown) : { title: "", figures: {} };
  const buttons = (pin, place) => {
    const back = make("button", { type: "button", class: "link", "aria-label": `Show ${pin.title}` }, "Show");
    back.addEventListener("click", () => use(pin));
    const drop = make("button", { type: "button", class: "link", "aria-label": `Unpin ${pin.title}` }, "Unpin");
    drop.addEventListener("click", () => {
      state.pins = pins.length > 1 ? pins.filter((_, other) => other !== place) : null;
      keep("pin");
      show();
    });
    return [back, " ", drop];
  };
  const head = make("tr", {}, make("td", {}), ...pins.map((pin, place) => make("th", { scope: "col" }, make("span", {}, pin.title), make("br"), ...buttons(pin, place))), make("th", { scope: "col" }, "shown now"));
  const lines = rows.filter(([key]) => pins.some((pin) => has(pin.figures[key]))).map(([key, name, words]) => {
    const cell = (value) => (has(value) ? words(value) : "–");
    const against = (pin) => (has(pin.figures[key]) && has(now.figures[key]) ? make("span", { class: "difference" }, difference(pin.figures[key], now.figures[key])) : "");
    return make("tr", { "data-pinned": key }, make("th", { scope: "row" }, name), ...pins.map((pin) => make("td", { class: "number" }, cell(pin.figures[key]), " ", against(pin))), make("td", { class: "number" }, cell(now.figures[key])));
  });
  $("pinned").replaceChildren(make("h2", {}, "Pinned"), make("div", { class: "wide", tabindex: "0", role: "region", "aria-label": "Pinned answers" }, make("table", {}, make("thead", {}, head), make("tbody", {}, ...lines))));
}
