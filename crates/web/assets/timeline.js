// The timeline on a canvas: the server sends what is near the visible window, short operations counted together, so that the cost does
// not grow with their number; the page moves the picture at once until the next part comes.

import { $, make, save, several } from "./dom.js";
import { blob, post } from "./api.js";
import { answer } from "./runs.js";
import { keep, state } from "./state.js";
import { listen } from "./lanes.js";
import { short, time, unit } from "./format.js";

export const name = "timeline";
// Windows of one run are not answers of their own.
export const windowed = true;
const [height, ruler, gap] = [18, 22, 6];
// What was sent, what is to be seen, and the whole run for the overview.
let drawn = null;
let shown = [0, 0];
let whole = null;
let loading = false;
let failed;
let chosen = null;
let measured = null;
let found = null;

const names = () => Math.min(190, 0.36 * $("lanes").clientWidth);
const axis = () => [names() / $("lanes").clientWidth, 1];

export function begin(run, problem) {
  failed = problem;
  const move = listen($("lanes"), { shown: () => shown, span: () => drawn?.span_s ?? 0, axis }, look, choose, (range) => ((measured = range), paint()));
  for (const button of document.querySelectorAll("[data-move]")) button.addEventListener("click", () => move(button.dataset.move));
  for (const id of ["steps", "first-worker"]) {
    $(id).addEventListener("change", () => {
      state.timeline = { steps: +$("steps").value, first: +$("first-worker").value };
      keep();
      run();
    });
  }
  $("find").addEventListener("input", () => {
    found = $("find").value.trim().toLowerCase() || null;
    chosen = null;
    paint();
  });
  $("find").addEventListener("keydown", (event) => event.key === "Enter" && next());
  $("overview").addEventListener("pointerdown", (event) => {
    const box = $("overview").getBoundingClientRect();
    const middle = ((event.clientX - box.left - names()) / (box.width - names())) * drawn.span_s;
    const half = (shown[1] - shown[0]) / 2;
    look(middle - half, middle + half);
  });
  new ResizeObserver(() => drawn && paint()).observe($("lanes-box"));
  new MutationObserver(() => drawn && paint()).observe(document.documentElement, { attributeFilter: ["data-theme"] });
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => drawn && paint());
}

export function body() {
  const { steps = 5, first = 0, from, to } = state.timeline ?? {};
  return { scenario: state.scenario, steps, first_worker: first, from_s: from, to_s: to };
}

// All windows of a run are one answer.
export function identity({ scenario, steps, first_worker }) {
  return { scenario, steps, first_worker };
}

export async function run(body, job) {
  const all = post("timeline", { ...body, from_s: undefined, to_s: undefined }, job.signal);
  const part = body.from_s === undefined ? all : post("timeline", body, job.signal);
  whole = await all;
  return part;
}

export function draw({ data, body }) {
  drawn = data;
  shown = [data.from_s, data.to_s];
  $("steps").value = body.steps;
  $("first-worker").value = body.first_worker;
  $("first-worker").max = Math.max(data.workers - 1, 0);
  const kinds = data.kinds.length > 0 ? data.kinds : [...new Map(data.lanes.map(({ kind, name }) => [kind, name.split(" (")[0]]))];
  $("legend").replaceChildren(...kinds.map(([kind, words]) => make("span", {}, make("i", { class: `c${kind % 8}` }), words)));
  paint();
}

// A canvas of this height in pixels of the screen, cleared.
function sheet(canvas, tall) {
  const wide = canvas.parentElement.clientWidth;
  const dense = devicePixelRatio || 1;
  canvas.style.height = `${tall}px`;
  canvas.style.width = `${wide}px`;
  if (canvas.width !== Math.round(wide * dense) || canvas.height !== Math.round(tall * dense)) [canvas.width, canvas.height] = [Math.round(wide * dense), Math.round(tall * dense)];
  const paper = canvas.getContext("2d");
  paper.setTransform(dense, 0, 0, dense, 0, 0);
  paper.clearRect(0, 0, wide, tall);
  return [paper, wide];
}

// The places of lanes from top to bottom.
function places(lanes) {
  let y = ruler;
  return lanes.map((lane, place) => {
    if (place > 0 && lanes[place - 1].group !== lane.group) y += gap;
    const own = y;
    y += height;
    return own;
  });
}

const matches = (place) => found !== null && drawn.names[place].toLowerCase().includes(found);

function paint() {
  const tops = places(drawn.lanes);
  const [paper, wide] = sheet($("lanes"), (tops.at(-1) ?? ruler) + height + 4);
  const style = getComputedStyle(document.documentElement);
  const [ink, muted, line, page] = ["--ink", "--muted", "--line", "--page"].map((name) => style.getPropertyValue(name));
  const colours = Array.from({ length: 8 }, (_, kind) => style.getPropertyValue(`--c${kind}`));
  const [from, to] = shown;
  const left = names();
  const x = (seconds) => left + ((seconds - from) / (to - from)) * (wide - left);
  paper.font = `12px ${style.fontFamily || "sans-serif"}`;
  paper.textBaseline = "middle";
  // Round times within the window, all in one unit.
  const own = unit((to - from) / 3);
  const rough = (to - from) / own[1] / Math.max(3, (wide - left) / 110);
  const power = 10 ** Math.floor(Math.log10(rough));
  const step = [1, 2, 5, 10].map((digit) => digit * power).find((step) => step >= rough);
  paper.textAlign = "center";
  for (let value = Math.ceil(from / own[1] / step) * step; value <= to / own[1]; value += step) {
    const at = x(value * own[1]);
    paper.fillStyle = line;
    paper.fillRect(at, ruler - 4, 1, tops.length ? tops.at(-1) + height - ruler + 4 : 0);
    paper.fillStyle = muted;
    paper.fillText(`${+value.toPrecision(8)} ${own[0]}`, Math.min(at, wide - 24), ruler / 2);
  }
  drawn.lanes.forEach((lane, place) => {
    const y = tops[place];
    for (const bar of lane.bars) {
      const [since, until, kind, word, count] = bar;
      if (until < from || since > to) continue;
      const [begin, end] = [Math.max(x(since), left), Math.min(x(until), wide)];
      paper.globalAlpha = found === null || matches(word) ? 1 : 0.15;
      paper.fillStyle = colours[(kind < 0 ? lane.kind : kind) % 8];
      paper.fillRect(begin, y + 2, Math.max(end - begin - (end - begin > 3 ? 0.7 : 0), 0.6), height - 4);
      if (bar === chosen) {
        paper.strokeStyle = ink;
        paper.lineWidth = 2;
        paper.strokeRect(begin, y + 2, end - begin, height - 4);
      }
      if (end - begin > 40 && count === 1) {
        paper.fillStyle = page;
        const label = drawn.names[word];
        if (paper.measureText(label).width < end - begin - 6) paper.fillText(label, (begin + end) / 2, y + height / 2);
      }
    }
    paper.globalAlpha = 1;
  });
  paper.fillStyle = page;
  paper.fillRect(0, 0, left, (tops.at(-1) ?? 0) + height + 4);
  paper.textAlign = "left";
  const fit = (text, room) => {
    if (paper.measureText(text).width <= room) return text;
    let end = text.length;
    while (end > 1 && paper.measureText(`${text.slice(0, end)}…`).width > room) end -= 1;
    return `${text.slice(0, end)}…`;
  };
  drawn.lanes.forEach((lane, place) => {
    const begins = place === 0 || drawn.lanes[place - 1].group !== lane.group;
    paper.fillStyle = ink;
    if (begins) paper.fillText(fit(lane.group, left / 2 - 6), 2, tops[place] + height / 2);
    paper.fillStyle = muted;
    paper.fillText(fit(lane.name, left / 2 - 8), left / 2, tops[place] + height / 2);
  });
  if (measured) {
    const [a, b] = measured.map(x);
    paper.fillStyle = ink;
    paper.globalAlpha = 0.12;
    paper.fillRect(a, ruler, b - a, (tops.at(-1) ?? 0) + height - ruler);
    paper.globalAlpha = 1;
    $("details").textContent = `${time(Math.abs(measured[1] - measured[0]))} between ${time(Math.min(...measured))} and ${time(Math.max(...measured))}`;
  }
  const many = found === null ? "" : ` ${several(drawn.lanes.reduce((sum, lane) => sum + lane.bars.filter(([since, until, , word]) => matches(word) && until >= from && since <= to).length, 0), "match")} in sight.`.replace("matchs", "matches");
  $("window").textContent = `${short(from / own[1])} to ${time(to, own)} of ${time(drawn.span_s, own)}; ${drawn.events.toLocaleString("en")} events in all.${many}`;
  outline(colours, ink);
}

// The whole run, with the window in it.
function outline(colours, ink) {
  if (!whole) return;
  const each = Math.max(1, Math.min(4, 48 / Math.max(1, whole.lanes.length)));
  const [paper, wide] = sheet($("overview"), Math.max(16, Math.min(48, each * whole.lanes.length)));
  const left = names();
  const x = (seconds) => left + (seconds / whole.span_s) * (wide - left);
  whole.lanes.forEach((lane, place) => {
    for (const [since, until, kind] of lane.bars) {
      paper.fillStyle = colours[(kind < 0 ? lane.kind : kind) % 8];
      paper.fillRect(x(since), place * each, Math.max(0.5, x(until) - x(since)), each);
    }
  });
  paper.strokeStyle = ink;
  paper.strokeRect(x(shown[0]) + 0.5, 0.5, Math.max(2, x(shown[1]) - x(shown[0]) - 1), $("overview").clientHeight - 1);
}

function look(from, to) {
  if (!drawn) return;
  const { span_s: span } = drawn;
  const width = Math.min(Math.max(to - from, span * 1e-6), span);
  const first = Math.min(Math.max(from, 0), span - width);
  shown = [first, first + width];
  paint();
  state.timeline = { ...state.timeline, from: width === span ? undefined : first, to: width === span ? undefined : first + width };
  keep();
  load();
}

// Gets what is in the window, one part at a time, until it is the one that is to be seen.
async function load() {
  if (loading) return;
  loading = true;
  try {
    while (answer(name) && (drawn.from_s !== shown[0] || drawn.to_s !== shown[1])) {
      const [entry, asked] = [answer(name), shown];
      const data = await post("timeline", { ...entry.body, from_s: asked[0], to_s: asked[1] });
      if (answer(name) !== entry) break;
      entry.data = data;
      const now = shown;
      draw(entry);
      if (now === asked) break;
      shown = now;
      paint();
    }
  } catch (problem) {
    failed(problem);
  } finally {
    loading = false;
  }
}

const said = ([since, until, , word, count]) => `${drawn.names[word]}${count > 1 ? ` and ${several(count - 1, "operation")} more` : ""}: ${time(since)} to ${time(until)}, ${time(until - since)}`;

// Chooses what is at a place of the canvas.
function choose(at, y) {
  measured = null;
  const lane = drawn.lanes[places(drawn.lanes).findIndex((top) => y >= top && y < top + height)];
  const slack = (shown[1] - shown[0]) / 400;
  const near = (lane?.bars ?? []).filter(([since, until]) => at >= since - slack && at <= until + slack);
  chosen = near.sort((a, b) => Math.abs(a[0] + a[1] - 2 * at) - Math.abs(b[0] + b[1] - 2 * at))[0] ?? null;
  $("details").textContent = chosen ? said(chosen) : "";
  paint();
}

// The next operation that is looked for, in the order of time.
function next() {
  const all = drawn.lanes.flatMap((lane) => lane.bars).filter((bar) => matches(bar[3])).sort((a, b) => a[0] - b[0]);
  const after = all.find((bar) => !chosen || bar[0] > chosen[0] || (bar[0] === chosen[0] && all.indexOf(bar) > all.indexOf(chosen))) ?? all[0];
  if (!after) return;
  chosen = after;
  $("details").textContent = said(after);
  const half = (shown[1] - shown[0]) / 2;
  if (after[0] < shown[0] || after[1] > shown[1]) look((after[0] + after[1]) / 2 - half, (after[0] + after[1]) / 2 + half);
  else paint();
}

export function summary({ data }) {
  return `Timeline of ${data.events.toLocaleString("en")} events.`;
}

export async function download(what) {
  const entry = answer(name);
  if (!entry) return;
  const asked = { ...entry.body, from_s: shown[0], to_s: shown[1] };
  if (what === "perfetto") save("timeline.pftrace", await blob("timeline", asked, "application/vnd.perfetto"));
  else save("timeline.svg", await blob("timeline", asked, "image/svg+xml"));
}
