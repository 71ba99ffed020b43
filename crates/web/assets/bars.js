// Stacked bars: shares of a whole, with the same colour for the same name everywhere.

import { make } from "./dom.js";
import { percent } from "./format.js";

const known = ["compute", "weights", "tensor parallelism", "gradients", "recompute", "optimiser", "pipeline bubble", "activations", "sharded weights", "working"];

// A colour that depends on the name alone.
export function colour(name) {
  const place = known.indexOf(name);
  const sum = [...name].reduce((sum, letter) => (31 * sum + letter.charCodeAt(0)) % 997, 0);
  return (place >= 0 ? place >> 1 : sum) % 6;
}

// `parts`: name and value. `whole`: the length of the bar; `mark`: a value to mark in it.
export function bar(parts, whole, words, label, mark) {
  const track = make("div", { class: "bar", role: "img", "aria-label": `${label}: ${parts.map(({ name, value }) => `${name} ${words(value)}`).join(", ")}` });
  for (const { name, value } of parts) {
    const part = make("span", { class: `c${colour(name)}`, title: `${name}: ${words(value)}` });
    part.style.width = `${(100 * value) / whole}%`;
    track.append(part);
  }
  if (mark !== undefined) {
    const line = make("i", { class: "mark" });
    line.style.left = `${(100 * mark) / whole}%`;
    track.append(line);
  }
  return track;
}

export function legend(parts, words) {
  return make("ul", { class: "key" }, ...parts.map(({ name, value }) => make("li", {}, make("i", { class: `c${colour(name)}` }), `${name} ${words(value)}`)));
}

export const shares = (parts) => {
  const whole = parts.reduce((sum, { value }) => sum + value, 0);
  return (value) => percent(value / whole);
};

// What counts, the largest first, and the rest as one.
export function main(parts, most = 5) {
  const whole = parts.reduce((sum, { value }) => sum + value, 0);
  const all = parts.filter(({ value }) => value > 0.002 * whole).sort((a, b) => b.value - a.value);
  const rest = all.slice(most).reduce((sum, { value }) => sum + value, 0);
  return [...all.slice(0, most), ...(rest > 0 ? [{ name: "other", value: rest }] : [])];
}
