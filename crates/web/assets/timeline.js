// The timeline: the server draws only the visible window, so that the cost does not grow with the number of events.

import { $, insert, save } from "./dom.js";
import { blob, post } from "./api.js";
import { keep, state } from "./state.js";

let span = 0;
let shown = [0, 0];
// The start and end of the time axis, as shares of the width of the plot.
let axis = [0, 1];
let again;

export function begin(run) {
  again = run;
  for (const button of document.querySelectorAll("[data-move]")) button.addEventListener("click", () => move(button.dataset.move));
  for (const [id, key] of [["steps", "steps"], ["first-worker", "first"]]) {
    $(id).addEventListener("change", () => {
      state.timeline = { ...(key === "steps" ? {} : state.timeline), steps: +$("steps").value, first: +$("first-worker").value };
      ask();
    });
  }
  const lanes = $("lanes");
  const drawing = () => lanes.querySelector("svg") ?? lanes;
  lanes.addEventListener("keydown", (event) => {
    const what = { ArrowLeft: "left", ArrowRight: "right", "+": "in", "=": "in", "-": "out", 0: "all", Home: "all" }[event.key];
    if (!what || event.ctrlKey || event.metaKey) return;
    event.preventDefault();
    move(what);
  });
  lanes.addEventListener("wheel", (event) => {
    if (!event.ctrlKey && !event.metaKey && !event.altKey) return;
    event.preventDefault();
    const { left, width } = drawing().getBoundingClientRect();
    const at = ((event.clientX - left) / width - axis[0]) / (axis[1] - axis[0]);
    zoom(event.deltaY > 0 ? 1.4 : 1 / 1.4, Math.min(Math.max(at, 0), 1));
  }, { passive: false });
  let held = null;
  lanes.addEventListener("pointerdown", (event) => {
    if (event.pointerType === "touch") return;
    held = { x: event.clientX, from: shown };
    lanes.classList.add("dragging");
    lanes.setPointerCapture(event.pointerId);
  });
  lanes.addEventListener("pointermove", (event) => {
    if (!held) return;
    const [from, to] = held.from;
    const way = ((held.x - event.clientX) / drawing().getBoundingClientRect().width / (axis[1] - axis[0])) * (to - from);
    if (Math.abs(held.x - event.clientX) > 3) look(from + way, to + way);
  });
  for (const end of ["pointerup", "pointercancel"]) {
    lanes.addEventListener(end, () => {
      held = null;
      lanes.classList.remove("dragging");
    });
  }
}

function look(from, to) {
  const width = Math.min(to - from, span);
  const first = Math.min(Math.max(from, 0), span - width);
  state.timeline = { ...state.timeline, from: first, to: first + width };
  shown = [first, first + width];
  ask();
}

function zoom(factor, at = 0.5) {
  const [from, to] = shown;
  const middle = from + at * (to - from);
  look(middle - at * (to - from) * factor, middle + (1 - at) * (to - from) * factor);
}

function move(what) {
  const [from, to] = shown;
  const width = to - from;
  if (what === "in") zoom(0.5);
  if (what === "out") zoom(2);
  if (what === "left") look(from - width / 3, to - width / 3);
  if (what === "right") look(from + width / 3, to + width / 3);
  if (what === "all") look(0, span);
}

let waiting = 0;
function ask() {
  keep();
  clearTimeout(waiting);
  waiting = setTimeout(again, 25);
}

function body() {
  const { steps = 5, first = 0, from, to } = state.timeline ?? {};
  return { scenario: state.scenario, steps, first_worker: first, from_s: from, to_s: to };
}

const time = (seconds) => (seconds >= 1 ? `${+seconds.toPrecision(4)} s` : `${+(seconds * 1e3).toPrecision(4)} ms`);

export async function run(job) {
  const asked = body();
  $("steps").value = asked.steps;
  $("first-worker").value = asked.first_worker;
  const window = await post("timeline", asked, job.signal);
  span = window.span_s;
  shown = [window.from_s, window.to_s];
  axis = window.axis;
  $("first-worker").max = Math.max(window.workers - 1, 0);
  $("window").textContent = `${time(window.from_s)} to ${time(window.to_s)} of ${time(span)}; ${window.events.toLocaleString("en")} events in all. Drag to move, Ctrl and the wheel to zoom.`;
  insert($("lanes"), window.svg);
}

export async function download(what) {
  if (what === "perfetto") save("timeline.pftrace", await blob("timeline", body(), "application/vnd.perfetto"));
  else save("timeline.svg", await blob("timeline", body(), "image/svg+xml"));
}
