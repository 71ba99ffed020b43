// "Why" and "What could go wrong": what the figures of a forecast and of a decision say, in bars and short lists.

import { make, several } from "./dom.js";
import { bar, legend, main, shares } from "./bars.js";
import { bytes, percent, time, times } from "./format.js";
import * as decision from "./decision.js";

// Assumptions that are named.
const most = 4;

function memory({ prediction: { transformer } }) {
  if (!transformer) return [];
  const { stage, most: needed, capacity, verdict } = transformer.memory;
  const { total, ...kinds } = transformer.stages[stage].memory;
  const parts = [...Object.entries(kinds).map(([name, value]) => ({ name, value })), { name: "reserved and lost", value: Math.max(0, needed - total) }].filter(({ value }) => value > 0.002 * needed);
  const words = verdict === "fits" ? ["good", "fits"] : verdict === "may-not-fit" ? ["unsure", "may not fit"] : ["bad", "does not fit"];
  return [
    make("h4", {}, "Memory of the fullest device ", make("strong", { class: words[0] }, `${bytes(needed)} of ${bytes(capacity)}: ${words[1]}`)),
    bar(parts, Math.max(needed, capacity), bytes, "memory", capacity),
    legend(parts, bytes),
  ];
}

function step({ prediction }) {
  const parts = main(prediction.breakdown.map(({ name, time_s }) => ({ name, value: time_s })));
  const whole = parts.reduce((sum, { value }) => sum + value, 0);
  return [make("h4", {}, "Where a step goes ", make("strong", {}, time(prediction.iteration_s))), bar(parts, whole, shares(parts), "a step"), legend(parts, shares(parts))];
}

export function why(forecast) {
  return make("div", { class: "whys" }, make("div", {}, ...step(forecast)), ...(forecast.prediction.transformer ? [make("div", {}, ...memory(forecast))] : []));
}

function item(title, words, how) {
  return make("li", {}, make("strong", {}, title), ` ${words}`, ...(how ? [make("details", { class: "how" }, make("summary", {}, "Measure this"), make("p", {}, how))] : []));
}

const sentence = (text) => `${text[0].toUpperCase()}${text.slice(1)}.`;

function failures() {
  const training = decision.chosen()?.option?.figures?.training;
  if (!training) return [];
  const { interruptions, interruptions_range: range, goodput, between_interruptions_s: between, recommended_spares: spares, restart_s: restart } = training;
  const number = range ? `${Math.round(range[0]).toLocaleString("en")} to ${Math.round(range[1]).toLocaleString("en")}` : Math.round(interruptions).toLocaleString("en");
  return [
    item("Failures.", `${number} interruptions${between ? `, one in ${time(between)}` : ""}; each costs ${time(restart)} and the work since the last checkpoint. ${percent(goodput)} of the time is progress.`),
    item("Spares.", spares === undefined ? "Their number follows from the time of a repair, which is not given." : `${several(spares, "machine")} suffice for 99 % of the time.`, spares === undefined ? "Write `repair = \"1 d\"` under `[failures]` of the scenario." : null),
  ];
}

export function risks({ interval, prediction }) {
  const assumed = (interval?.by_assumption ?? []).slice(0, most);
  const price = decision.chosen()?.option?.price;
  const items = [
    ...failures(),
    ...(price ? [item("Price.", `${price.node_hour} USD an hour for a machine is assumed; others paid ${price.range.join(" to ")}.`, `${price.source} Write your own price into the machines above.`)] : []),
    ...assumed.map(({ name, width, share, remedy }) => item(sentence(name), `It moves the step by ±${percent(width)}, ${percent(share)} of what is uncertain.`, sentence(remedy))),
    ...(interval?.by_input ?? []).slice(0, most).map(({ key, slower }) => item(`${key}.`, `Its range moves the step by ${percent(slower)}.`)),
    ...prediction.warnings.filter(({ code }) => code !== "assumed-efficiency").map(({ code, message }) => make("li", { class: code === "memory" ? "bad" : "" }, make("strong", {}, `${code.replaceAll("-", " ")}: `), message)),
  ];
  const range = interval ? `A step takes ${times(interval.iteration_s)} with 90 % probability. What moves that most:` : "No measured runs tell how far a step may be off.";
  return make("div", {}, make("p", {}, range), make("ul", { class: "risks" }, ...items));
}
