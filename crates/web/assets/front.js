// The front of time and cost: every option is a point that can be chosen. It is drawn for the room that it has.

import { money, short, time, unit } from "./format.js";

const space = "http://www.w3.org/2000/svg";

function shape(name, attributes, text) {
  const element = document.createElementNS(space, name);
  for (const [key, value] of Object.entries(attributes)) element.setAttribute(key, value);
  if (text !== undefined) element.textContent = text;
  return element;
}

// Round values between two ends.
function ticks(low, high, most) {
  const rough = (high - low) / most;
  const power = 10 ** Math.floor(Math.log10(rough));
  const step = [1, 2, 2.5, 5, 10].map((digit) => digit * power).find((step) => step >= rough);
  const all = [];
  for (let value = Math.ceil(low / step) * step; value <= high * (1 + 1e-9); value += step) all.push(+value.toPrecision(12));
  return all;
}

const overlaps = (a, b) => a.x < b.x + b.width && b.x < a.x + a.width && a.y < b.y + b.height && b.y < a.y + a.height;

const paper = document.createElement("canvas").getContext("2d");

function measure(text, strong) {
  paper.font = `${strong ? "700 " : ""}12px ${getComputedStyle(document.body).fontFamily}`;
  return paper.measureText(text).width;
}

// A place for a label of this size near a point, away from all that is there; none if there is no room.
function room(point, size, taken, area) {
  const { width, height } = size;
  const gap = 9;
  const places = [
    [point.x + gap, point.y - height / 2], [point.x - gap - width, point.y - height / 2],
    [point.x - width / 2, point.y - gap - height], [point.x - width / 2, point.y + gap],
    [point.x + gap, point.y - height - 3], [point.x + gap, point.y + 3],
    [point.x - gap - width, point.y - height - 3], [point.x - gap - width, point.y + 3],
  ];
  const boxes = places.map(([x, y]) => ({ x, y, width, height }));
  const inside = (box) => box.x >= area.x && box.x + box.width <= area.x + area.width && box.y >= area.y && box.y + box.height <= area.y + area.height;
  return boxes.find((box) => inside(box) && !taken.some((other) => overlaps(box, other))) ?? null;
}

// `options`: name, time, cost, interval (of both), front, index. `chosen` and `deadline` are marked; `choose` takes an index.
export function draw(box, { options, chosen, recommended, deadline, currency }, choose) {
  const held = box.contains(document.activeElement);
  const width = Math.max(280, Math.min(box.clientWidth, 820));
  const height = Math.round(Math.min(340, Math.max(220, width * 0.5)));
  const left = 62;
  const [right, top, below] = [16, 26, 42];
  const own = options.find(({ index }) => index === chosen);
  const times = [...options.map((option) => option.time), ...(deadline ? [deadline] : []), ...(own?.times ?? [])];
  const costs = [...options.map((option) => option.cost), ...(own?.costs ?? [])];
  const most = [1.06 * Math.max(...times.filter((value) => value < 4 * Math.max(...options.map((option) => option.time)))), 1.08 * Math.max(...costs)];
  const scale = unit(most[0] / 2);
  const least = Math.min(...costs) > most[1] / 2.2 ? 0.9 * Math.min(...costs) : 0;
  const x = (value) => left + (Math.min(value, most[0]) / most[0]) * (width - left - right);
  const y = (value) => height - below - ((value - least) / (most[1] - least)) * (height - top - below);
  const svg = shape("svg", { viewBox: `0 0 ${width} ${height}`, width, height, role: "group", "aria-label": "Time and cost of every option" });
  const text = (at, words, attributes = {}) => shape("text", { x: at[0], y: at[1], ...attributes }, words);
  for (const value of ticks(least, most[1] / 1.08, 4)) {
    svg.append(shape("line", { class: "grid", x1: left, x2: width - right, y1: y(value), y2: y(value) }), text([left - 7, y(value) + 4], money(value, "").trim(), { class: "end" }));
  }
  for (const value of ticks(0, most[0] / scale[1], width < 420 ? 4 : 7)) {
    svg.append(text([x(value * scale[1]), height - below + 17], short(value), { class: "middle" }));
  }
  svg.append(text([(left + width - right) / 2, height - 6], `time of training, ${scale[0] === "d" ? "days" : scale[0]}`, { class: "middle" }), text([4, 14], `cost of training, ${currency}`));
  svg.append(shape("line", { class: "axis", x1: left, x2: width - right, y1: height - below, y2: height - below }));
  if (deadline && deadline <= most[0]) {
    svg.append(shape("rect", { class: "late", x: x(deadline), y: top, width: Math.max(0, width - right - x(deadline)), height: height - top - below }), shape("line", { class: "deadline", x1: x(deadline), x2: x(deadline), y1: top, y2: height - below }));
  }
  const line = options.filter(({ front }) => front).sort((a, b) => a.time - b.time);
  svg.append(shape("polyline", { class: "frontier", points: line.map((option) => `${x(option.time)},${y(option.cost)}`).join(" ") }));
  if (own?.times) {
    svg.append(shape("line", { class: "interval", x1: x(own.times[0]), x2: x(own.times[1]), y1: y(own.cost), y2: y(own.cost) }));
    if (own.costs) svg.append(shape("line", { class: "interval", x1: x(own.time), x2: x(own.time), y1: y(own.costs[0]), y2: y(own.costs[1]) }));
  }
  const at = (option) => ({ x: x(option.time), y: y(option.cost) });
  const taken = options.map((option) => ({ x: at(option).x - 7, y: at(option).y - 7, width: 14, height: 14 }));
  if (deadline && deadline <= most[0]) {
    const label = text([Math.min(x(deadline) - 5, width - right), top + 12], "deadline", { class: "end small" });
    svg.append(label);
    taken.push({ x: x(deadline) - 60, y: top, width: 62, height: 15 });
  }
  const area = { x: left, y: top - 12, width: width - left - right, height: height - top - below + 12 };
  const order = [...options].sort((a, b) => (b.index === chosen) - (a.index === chosen) || (b.index === recommended) - (a.index === recommended) || b.front - a.front);
  for (const option of order) {
    const size = { width: measure(option.name, option.index === chosen) + 6, height: 14 };
    const place = option.front || option.index === chosen ? room(at(option), size, taken, area) : null;
    if (!place) continue;
    taken.push(place);
    svg.append(text([place.x + 2, place.y + 11], option.name, { class: `small${option.index === chosen ? " strong" : ""}` }));
  }
  const points = [...options].sort((a, b) => a.time - b.time).map((option) => {
    const point = shape("g", { class: `point${option.front ? " on-front" : ""}${option.fits ? "" : " bad"}`, role: "button", tabindex: option.index === chosen ? "0" : "-1", "data-option": option.index, "aria-pressed": option.index === chosen, "aria-label": `${option.name}: ${time(option.time)}, ${money(option.cost, currency)}` });
    const { x: cx, y: cy } = at(option);
    point.append(shape("circle", { class: "target", cx, cy, r: 13 }), shape("circle", { class: "dot", cx, cy, r: option.index === chosen ? 8 : 5.5 }), shape("title", {}, point.getAttribute("aria-label")));
    point.addEventListener("click", () => choose(option.index));
    return point;
  });
  points.forEach((point, place) => point.addEventListener("keydown", (event) => {
    const way = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
    if (way) choose(+points[Math.min(Math.max(place + way, 0), points.length - 1)].dataset.option);
    else if (event.key === "Enter" || event.key === " ") choose(+point.dataset.option);
    else return;
    event.preventDefault();
  }));
  svg.append(...points);
  box.replaceChildren(svg);
  if (held) svg.querySelector('[tabindex="0"]')?.focus();
}
