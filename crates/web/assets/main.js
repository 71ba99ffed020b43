// Connects the parts of the page: they all show the text of one scenario, and follow each change to it.

import { $, make, tabs } from "./dom.js";
import { get, post } from "./api.js";
import { keep, onLink, restore, state } from "./state.js";
import * as baseline from "./baseline.js";
import * as editor from "./editor.js";
import * as fields from "./fields.js";
import * as forecast from "./forecast.js";
import * as form from "./form.js";
import * as methods from "./methods.js";
import * as plots from "./plots.js";
import * as problems from "./problems.js";
import * as runs from "./runs.js";
import * as server from "./server.js";
import * as share from "./share.js";
import * as sliders from "./sliders.js";
import * as studies from "./studies.js";
import * as theme from "./theme.js";
import * as timeline from "./timeline.js";
import * as upload from "./upload.js";

const views = { forecast, methods, timeline, ...studies.views };
const empty = '[model]\nzoo = "resnet50"\n\n[[cluster.workers]]\ncount = 4\n\n[strategy]\nbatch = 32\n';
let examples = [];
// What is known of the scenario: the server's description of its text.
let described = null;
let begun = false;

function look(asked = false) {
  if (described?.question) runs.look(views[state.view], described.question, asked);
}

// The text that the server is to describe, with edits that it has not made yet. A text that was typed in the meantime
// makes a description out of date.
let version = 0;
let edits = [];
let step = "";
let fresh = false;
let asking = false;

function change(more) {
  runs.outdate();
  edits = [...edits.filter((old) => !more.some((edit) => edit.key === old.key)), ...more];
  step = more.map((edit) => edit.key).join();
  describe();
}

// Makes a scenario that was answered what it was changed to, whatever the question is by now.
function use(scenario, changes) {
  runs.outdate();
  version += 1;
  state.scenario = scenario;
  edits = changes;
  step = `use ${JSON.stringify(changes)}`;
  describe();
}

function replace(text, why) {
  runs.outdate();
  version += 1;
  edits = [];
  state.scenario = text;
  step = why;
  describe();
}

async function describe() {
  if (asking) return;
  asking = true;
  let done;
  do {
    done = version;
    const now = edits;
    edits = [];
    try {
      const found = await post("scenario", { scenario: state.scenario, edit: now });
      if (done === version) accept(found, edits.length > 0);
    } catch (problem) {
      problems.mark(problem);
      runs.outdate(problem);
      if (problem.offline) {
        edits = [...now, ...edits];
        server.lost(describe);
        break;
      }
    }
  } while (done !== version || edits.length > 0);
  asking = false;
}

function accept(found, more) {
  described = found;
  state.scenario = found.scenario;
  editor.show(found.scenario);
  keep(step);
  step = "";
  form.show(found.written, found.resolved);
  problems.mark(found.problem);
  if (found.problem) {
    $("asked").replaceChildren(make("strong", {}, "Not a valid question"), "See what is wrong below.");
    return runs.outdate(found.problem);
  }
  sliders.show(found.resolved, change);
  if (!studies.show(found, fresh)) view("forecast");
  fresh = false;
  const [title, setting] = found.question;
  $("asked").replaceChildren(make("strong", {}, title), setting);
  $("asked-briefly").textContent = `${title}: ${setting}.`;
  document.title = `${title} – Stepcast`;
  forecast.offer(found.methods);
  if (!more) look();
}

// Another scenario; the one before is a step back.
function start(scenario, example = "") {
  if (editor.finish()) keep("text");
  const own = begun && state.scenario !== (examples.find(({ name }) => name === state.example)?.scenario ?? empty);
  Object.assign(state, { example, method: "auto", timeline: null, studies: null });
  fresh = true;
  $("kept").hidden = !own;
  $("example").value = example;
  replace(scenario, `start ${example}`);
}

studies.begin(() => look(true), (scenario, edits) => {
  view("forecast");
  use(scenario, edits);
});
const showEditor = tabs(document.querySelector("[data-tabs=editor]"), (name) => {
  state.editor = name;
  keep();
});
const showView = tabs(document.querySelector("[data-tabs=view]"), (name) => {
  state.view = name;
  plots.hide();
  keep();
  look();
});

function view(name) {
  state.view = name;
  showView(name);
}

function useMethod(name) {
  state.method = name;
  forecast.offer(described.methods);
  view("forecast");
  keep(`method ${name}`);
  look();
}

// Shows what the history or a link says.
function follow() {
  $("kept").hidden = true;
  $("example").value = state.example;
  showEditor(state.editor);
  showView(state.view);
  fresh = true;
  replace(state.scenario, "");
}

$("fields").addEventListener("submit", (event) => event.preventDefault());
$("method").addEventListener("change", () => useMethod($("method").value));
$("cancel").addEventListener("click", runs.cancel);
$("again").addEventListener("click", () => (described?.problem || !described ? describe() : look(true)));
$("undo").addEventListener("click", () => history.back());
$("return").addEventListener("click", () => history.back());
$("example").addEventListener("change", () => {
  const name = $("example").value;
  start(examples.find((example) => example.name === name)?.scenario ?? empty, name);
});
addEventListener("click", async (event) => {
  const what = event.target.dataset?.download;
  if (!what) return;
  try {
    await ({ perfetto: timeline, "timeline-svg": timeline, study: views[state.view] }[what] ?? forecast).download(what);
  } catch (error) {
    problems.say($("failure"), error);
  }
});
addEventListener("keydown", (event) => event.key === "Escape" && plots.hide());

theme.begin();
share.begin();
baseline.begin();
editor.begin((text) => replace(text, "text"));
runs.begin(() => server.lost(() => look()));
forecast.begin(use);
methods.begin(useMethod);
problems.begin(change, useMethod);
timeline.begin(look, (problem) => (problem.offline ? server.lost(() => look()) : problems.say($("failure"), problem)));
upload.begin(({ scenario }) => start(scenario));
onLink(follow);

async function load() {
  try {
    const [known, keys, models, devices, networks] = await Promise.all(["examples", "keys", "models", "devices", "networks"].map(get));
    examples = known;
    fields.begin(keys);
    form.begin({ models, devices, networks }, change);
    $("example").append(...examples.map(({ name, question }) => make("option", { value: name }, `${name} – ${question}`)));
    if (await restore()) follow();
    else start(examples[0].scenario, examples[0].name);
    begun = true;
  } catch (problem) {
    problems.say($("failure"), problem);
    if (problem.offline) server.lost(load);
  }
}
await load();
