// The timeline: the server draws the visible window and a margin, so that the cost does not grow with the number of
// events, and the page moves the picture at once until the next one comes.

import { $, insert, make, save } from "./dom.js";
import { blob, post } from "./api.js";
import { answer } from "./runs.js";
import { keep, state } from "./state.js";
import { listen } from "./lanes.js";

export const name = "timeline";
// What the picture was drawn for, and what is to be seen.
let drawn = null;
let shown = [0, 0];
let loading = false;
let failed;

export function begin(run, problem) {
  failed = problem;
  const move = listen($("lanes"), { shown: () => shown, span: () => drawn?.span_s ?? 0, axis: () => drawn?.axis ?? [0, 1] }, look, choose);
  for (const button of document.querySelectorAll("[data-move]")) button.addEventListener("click", () => move(button.dataset.move));
  for (const id of ["steps", "first-worker"]) {
    $(id).addEventListener("change", () => {
      state.timeline = { steps: +$("steps").value, first: +$("first-worker").value };
      keep();
      run();
    });
  }
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
  return post("timeline", body, job.signal);
}

const time = (seconds) => (seconds >= 1 ? `${+seconds.toPrecision(4)} s` : seconds >= 1e-3 ? `${+(seconds * 1e3).toPrecision(4)} ms` : `${+(seconds * 1e6).toPrecision(4)} µs`);

export function draw({ data, body }) {
  drawn = data;
  shown = [data.from_s, data.to_s];
  $("steps").value = body.steps;
  $("first-worker").value = body.first_worker;
  $("first-worker").max = Math.max(data.workers - 1, 0);
  insert($("lanes"), data.svg);
  for (const bar of $("lanes").querySelectorAll(".bars g")) {
    bar.dataset.tip = bar.firstElementChild.textContent;
  }
  place();
}

// Puts the picture where the window is.
function place() {
  const [from, to] = shown;
  $("window").textContent = `${time(from)} to ${time(to)} of ${time(drawn.span_s)}; ${drawn.events.toLocaleString("en")} events in all.`;
  const bars = $("lanes").querySelector(".bars");
  if (!bars) return;
  const [left, right] = drawn.axis.map((share) => share * bars.ownerSVGElement.ownerSVGElement.viewBox.baseVal.width);
  const scale = (drawn.to_s - drawn.from_s) / (to - from);
  const shift = left + ((drawn.from_s - from) / (to - from)) * (right - left) - scale * left;
  bars.setAttribute("transform", `matrix(${scale} 0 0 1 ${shift} 0)`);
  ruler();
}

// The axis that stays in sight: round times within the window.
function ruler() {
  const [from, to] = shown;
  const rough = (to - from) / 8;
  const power = 10 ** Math.floor(Math.log10(rough));
  const step = [1, 2, 5, 10].map((digit) => digit * power).find((step) => step >= rough);
  const marks = [];
  for (let at = Math.ceil(from / step) * step; at <= to && marks.length < 20; at += step) {
    const share = drawn.axis[0] + ((at - from) / (to - from)) * (drawn.axis[1] - drawn.axis[0]);
    const mark = make("span", {}, time(+at.toPrecision(12)));
    mark.style.left = `${100 * share}%`;
    marks.push(mark);
  }
  $("ruler").replaceChildren(...marks);
}

function look(from, to) {
  if (!drawn) return;
  const { span_s: span } = drawn;
  const width = Math.min(Math.max(to - from, span * 1e-6), span);
  const first = Math.min(Math.max(from, 0), span - width);
  shown = [first, first + width];
  place();
  state.timeline = { ...state.timeline, from: width === span ? undefined : first, to: width === span ? undefined : first + width };
  keep();
  load();
}

// Gets the picture of the window, one at a time, until it is the one that is to be seen.
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
      if (now !== asked) {
        shown = now;
        place();
      } else break;
    }
  } catch (problem) {
    failed(problem);
  } finally {
    loading = false;
  }
}

function choose(bar) {
  for (const old of $("lanes").querySelectorAll(".chosen")) old.classList.remove("chosen");
  bar?.classList.add("chosen");
  $("details").textContent = bar ? bar.dataset.tip : "";
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
