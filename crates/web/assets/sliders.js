// Sliders for the most common changes. The server says which values are valid; only the last position is predicted.

import { $, make } from "./dom.js";
import { post } from "./api.js";
import { state } from "./state.js";

let shown = new Map();
let change;
let asked = "";

export function begin(changed) {
  change = changed;
}

function made({ key, label }) {
  const output = make("output", {});
  const slider = make("input", { type: "range", min: "0", step: "1", "data-key": key, "aria-label": label });
  const entry = { slider, output, label: make("label", {}, label, output, slider), stops: [], held: false };
  slider.addEventListener("input", () => {
    entry.held = true;
    say(entry);
    change([entry.stops[slider.value].edit]);
  });
  return entry;
}

function say({ slider, output, stops }) {
  output.textContent = stops[slider.value].words;
  slider.setAttribute("aria-valuetext", stops[slider.value].words);
}

// The server knows of every move.
export function settle() {
  for (const entry of shown.values()) entry.held = false;
}

// Sets the sliders for a text. One that was moved keeps its place until the server knows of it; stops of a text before that are
// of no use.
export async function show(scenario) {
  if (asked === scenario) return;
  asked = scenario;
  let sliders;
  try {
    sliders = await post("stops", { scenario });
  } catch {
    asked = "";
    return;
  }
  if (asked !== scenario || state.scenario !== scenario) return;
  if (sliders.map(({ key }) => key).join() !== [...shown.keys()].join()) {
    const held = document.activeElement?.dataset?.key;
    shown = new Map(sliders.map((slider) => [slider.key, shown.get(slider.key) ?? made(slider)]));
    $("sliders").replaceChildren(...[...shown.values()].map(({ label }) => label));
    shown.get(held)?.slider.focus();
  }
  for (const { key, now, stops } of sliders) {
    const entry = shown.get(key);
    if (entry.held) continue;
    entry.stops = stops;
    entry.slider.max = stops.length - 1;
    entry.slider.value = now;
    say(entry);
  }
}
