// Sliders for the most common changes. They are not redrawn while they are moved, and only the last position is
// predicted.

import { $, make } from "./dom.js";

const units = { "bit/s": 1, "kbit/s": 1e3, "Mbit/s": 1e6, "Gbit/s": 1e9, "Tbit/s": 1e12 };
const row = [0.1, 0.2, 0.5, 1, 2, 2.5, 5, 10, 16, 25, 40, 50, 56, 100, 200, 400, 800].map((giga) => giga * 1e9);
const powers = Array.from({ length: 13 }, (_, exponent) => 2 ** exponent);
let shown = new Map();

function rate(text) {
  const [, value, unit] = /^([\d.]+) (\S+)$/.exec(text ?? "") ?? [];
  return value && units[unit] ? value * units[unit] : undefined;
}

const gigabits = (rate) => `${+(rate / 1e9).toPrecision(4)} Gbit/s`;

// The stops of a slider, including the current value.
function stops(values, now) {
  return [...new Set([...values, now])].sort((a, b) => a - b);
}

function upTo(now, least) {
  const most = Math.max(least, 2 ** Math.ceil(Math.log2(2 * now)));
  const exact = Array.from({ length: Math.min(most, 64) }, (_, place) => place + 1);
  return [...exact, ...powers.filter((value) => value > 64 && value <= most)];
}

function wanted(resolved) {
  if (!resolved) return [];
  const { cluster, strategy, model } = resolved;
  const groups = cluster.workers.slice(0, 3);
  const all = groups.map((workers, place) => ({
    key: `cluster.workers.${place}.count`,
    label: groups.length > 1 ? `Workers, group ${place + 1}` : "Workers",
    now: workers.count,
    stops: upTo(workers.count, 64),
    words: String,
  }));
  const bandwidth = rate(cluster.network?.bandwidth);
  if (strategy.architecture !== "stand-alone" && bandwidth) {
    all.push({ key: "cluster.network.bandwidth", label: "Bandwidth", now: bandwidth, stops: row, words: gigabits });
  }
  if (!model.profile || strategy.batch) all.push({ key: "strategy.batch", label: "Batch", now: strategy.batch, stops: powers, words: String });
  if (strategy.architecture === "parameter-server") {
    all.push({ key: "cluster.servers.count", label: "Servers", now: cluster.servers.count, stops: upTo(cluster.servers.count, 16), words: String });
  }
  return all;
}

export function show(resolved, change) {
  const next = wanted(resolved);
  if (!resolved) return;
  if (next.map(({ key }) => key).join() !== [...shown.keys()].join()) {
    shown = new Map();
    for (const { key, label } of next) {
      const output = make("output", {});
      const slider = make("input", { type: "range", min: "0", step: "1", "data-key": key, "aria-label": label });
      shown.set(key, { slider, output });
      slider.addEventListener("input", () => {
        const { stops, words } = shown.get(key);
        const value = stops[slider.value];
        output.textContent = words(value);
        slider.setAttribute("aria-valuetext", words(value));
        change([{ key, value: words(value) }]);
      });
    }
    $("sliders").replaceChildren(...next.map(({ key, label }) => make("label", {}, label, shown.get(key).output, shown.get(key).slider)));
  }
  for (const { key, now, stops: usual, words } of next) {
    const entry = shown.get(key);
    const held = document.activeElement === entry.slider && entry.stops?.[entry.slider.value] !== now;
    entry.words = words;
    if (held) continue;
    // The stops stay the same while the current value is among them, so that the slider does not jump.
    if (!entry.stops?.includes(now)) {
      entry.stops = stops(usual, now);
      entry.slider.max = entry.stops.length - 1;
    }
    entry.slider.value = entry.stops.indexOf(now);
    entry.output.textContent = words(now);
    entry.slider.setAttribute("aria-valuetext", words(now));
  }
}
