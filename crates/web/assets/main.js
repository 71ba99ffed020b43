// Connects the parts of the page: they all show the text of one scenario, and follow each change to it.

import { $, make, showProblem, tabs } from "./dom.js";
import { get, post } from "./api.js";
import { keep, link, onLink, restore, state } from "./state.js";
import * as form from "./form.js";
import * as sliders from "./sliders.js";
import * as forecast from "./forecast.js";
import * as methods from "./methods.js";
import * as timeline from "./timeline.js";
import * as search from "./search.js";
import * as upload from "./upload.js";
import * as theme from "./theme.js";

const views = { forecast, methods, timeline, search };
const empty = '[model]\nzoo = "resnet50"\n\n[[cluster.workers]]\ncount = 4\n\n[strategy]\nbatch = 32\n';
let examples = [];
let job = null;

// One request at a time: a new one cancels the one before.
function begin() {
  job?.abort.abort();
  const abort = new AbortController();
  const own = (job = { abort, signal: abort.signal });
  own.progress = (share, words) => {
    if (job !== own) return;
    $("progress").hidden = false;
    if (share === undefined) $("bar").removeAttribute("value");
    else $("bar").value = share;
    $("progress-text").textContent = words;
  };
  own.end = () => {
    if (job !== own) return;
    job = null;
    $("progress").hidden = true;
  };
  $("progress").hidden = true;
  return own;
}

async function look() {
  const own = begin();
  showProblem($("failure"), null);
  // Slow requests show that they are running.
  const slow = setTimeout(() => own.progress(undefined, "computing"), 400);
  try {
    await views[state.view].run(own);
    document.body.dataset.done = state.view;
  } catch (error) {
    if (error.name !== "AbortError") showProblem($("failure"), error);
  } finally {
    clearTimeout(slow);
    own.end();
  }
}

// Edits that wait until the server has answered those before them.
let edits = [];
let asking = false;

async function change(more) {
  edits = [...edits.filter((old) => !more.some((edit) => edit.key === old.key)), ...more];
  if (asking) return;
  asking = true;
  while (edits.length > 0) {
    const now = edits;
    edits = [];
    await describe(now);
  }
  asking = false;
}

async function describe(edit = []) {
  delete document.body.dataset.done;
  let described;
  try {
    described = await post("scenario", { scenario: state.scenario, edit });
  } catch (problem) {
    showProblem($("problem"), problem);
    return;
  }
  state.scenario = described.scenario;
  if ($("text").value !== described.scenario) $("text").value = described.scenario;
  keep();
  showProblem($("problem"), described.problem);
  form.show(described.written, described.resolved);
  if (described.problem) return;
  sliders.show(described.resolved, change);
  const [title, setting] = described.question;
  $("asked").replaceChildren(make("strong", {}, title), setting);
  $("asked-briefly").textContent = `${title}: ${setting}.`;
  document.title = `${title} – Stepcast`;
  forecast.offer(described.methods);
  methods.offer(described.methods, look);
  await look();
}

async function start(scenario, example = "") {
  Object.assign(state, { scenario, example, method: "auto", compared: null, timeline: null, search: null });
  $("example").value = example;
  await describe();
}

const showEditor = tabs(document.querySelector("[data-tabs=editor]"), (name) => {
  state.editor = name;
  keep();
});
const showView = tabs(document.querySelector("[data-tabs=view]"), (name) => {
  state.view = name;
  keep();
  look();
});

let typing = 0;
$("text").addEventListener("input", () => {
  clearTimeout(typing);
  typing = setTimeout(() => {
    state.scenario = $("text").value;
    describe();
  }, 200);
});
$("form").addEventListener("submit", (event) => event.preventDefault());
$("method").addEventListener("change", () => {
  state.method = $("method").value;
  keep();
  look();
});
$("cancel").addEventListener("click", () => {
  job?.abort.abort();
  job?.end();
});
$("example").addEventListener("change", () => {
  const name = $("example").value;
  start(examples.find((example) => example.name === name)?.scenario ?? empty, name);
});
$("copy").addEventListener("click", async () => {
  await navigator.clipboard.writeText(new URL(await link(), location.href).href);
  $("copy").textContent = "Copied";
  setTimeout(() => ($("copy").textContent = "Copy link"), 1500);
});
addEventListener("click", async (event) => {
  const what = event.target.dataset?.download;
  if (!what) return;
  try {
    await (["perfetto", "timeline-svg"].includes(what) ? timeline : forecast).download(what);
  } catch (error) {
    showProblem($("failure"), error);
  }
});

async function follow() {
  if (!(await restore())) return false;
  $("example").value = state.example;
  showEditor(state.editor);
  showView(state.view);
  search.show();
  await describe();
  return true;
}

theme.begin();
timeline.begin(look);
search.begin(look);
upload.begin(({ scenario }) => start(scenario));
onLink(follow);

try {
  const [known, keys, models, devices, networks] = await Promise.all(["examples", "keys", "models", "devices", "networks"].map(get));
  examples = known;
  form.begin({ keys, models, devices, networks }, change);
  $("example").append(...examples.map(({ name, question }) => make("option", { value: name }, `${name} – ${question}`)));
  if (!(await follow())) await start(examples[0].scenario, examples[0].name);
} catch (problem) {
  showProblem($("failure"), problem);
}
