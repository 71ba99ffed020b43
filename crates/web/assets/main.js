// Connects the parts of the page: they all show the text of one scenario, and follow each change to it.

import { $, make, tabs } from "./dom.js";
import { get, post } from "./api.js";
import { keep, onLink, restore, state } from "./state.js";
import * as ask from "./ask.js";
import * as decision from "./decision.js";
import * as editor from "./editor.js";
import * as forecast from "./forecast.js";
import * as methods from "./methods.js";
import * as pins from "./pins.js";
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

const views = { methods, timeline, ...studies.views };
const first = `[model]
zoo = "llama3-70b"

[plan]
tokens = 1e12
deadline = "30 d"

[[plan.offers]]
machine = "dgx-h100"
nodes = [16, 32, 64]

[[plan.offers]]
machine = "p5-48xlarge"
name = "p5 spot"
spot = true
nodes = [16, 32, 64]
`;
const own = '[model]\nzoo = "llama3-8b"\n\n[cluster]\nmachine = "dgx-h100"\nmachines = 4\n';
const tuned = '[model]\nzoo = "llama3-8b"\nsequence = 4096\n\n[model.adapters]\nrank = 16\ntargets = ["all"]\nbase = "nf4"\n\n[[cluster.workers]]\ncount = 1\ndevice = "rtx-4090"\n\n[data]\ntokens = 50e6\n\n[price]\nworker-hour = 0.4\n';
let examples = [];
// The scenario as far as it is known: the server's description of its text.
let described = null;
// The text as the page made it, before anybody changed it; null until the server has made it.
let given = "";
// Somebody has come with a trace, and has not given it yet.
let tracing = false;

const lanes = {};

// In a decision, the forecast is about an option: there is none before it is chosen.
let turn = 0;
let applying = false;
async function look(asked = false) {
  if (!described?.question) return;
  const own = (turn += 1);
  const deciding = Boolean(decision.body());
  $("decision").hidden = !deciding;
  if (deciding) {
    const decided = lanes.decision.look(decision, described.question);
    decision.refresh();
    if (document.body.dataset.done?.includes("decide") !== true) await decided;
    // Another question, or an option that is being made the scenario.
    if (own !== turn || applying) return;
  } else lanes.decision.leave();
  if (!deciding || described.written.cluster) {
    // Sliders wait for an answer that comes soon: their stops take the server longer.
    const answered = lanes.results.look(forecast, described.question);
    const soon = described.methods.find(({ refusal }) => !refusal)?.quick;
    if (soon) answered.then(() => own === turn && sliders.show(state.scenario));
    else sliders.show(state.scenario);
  }
  const tool = views[state.view];
  $("tool-status").hidden = !tool;
  if (tool) lanes.tools.look(tool, described.question, asked);
  else lanes.tools.leave();
}

function outdate(problem) {
  const deciding = Boolean(described?.written?.plan?.offers);
  if (!deciding || problem) lanes.decision.outdate(problem);
  lanes.results.outdate(problem);
  lanes.tools.outdate(problem);
}

// The text that the server is to describe, with edits that it has not made yet. A text that was typed in the meantime
// makes a description out of date.
let version = 0;
let edits = [];
let step = "";
let describing = null;

function change(more) {
  outdate();
  edits = [...edits.filter((old) => !more.some((edit) => edit.key === old.key)), ...more];
  step = more.map((edit) => edit.key).join();
  describe();
}

// Makes a scenario that was answered what it was changed to, whatever the question is by now.
function use(scenario, changes) {
  outdate();
  version += 1;
  state.scenario = scenario;
  edits = changes;
  step = `use ${JSON.stringify(changes)}`;
  describe();
}

function replace(text, why) {
  outdate();
  version += 1;
  edits = [];
  state.scenario = text;
  step = why;
  describe();
}

function describe() {
  describing ??= describeAll().finally(() => (describing = null));
  return describing;
}

async function describeAll() {
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
      outdate(problem);
      if (problem.offline) {
        edits = [...now, ...edits];
        server.lost(describe);
        break;
      }
    }
  } while (done !== version || edits.length > 0);
}

function accept(found, more) {
  described = found;
  if (!more) sliders.settle();
  applying = false;
  decision.about(found);
  state.scenario = found.scenario;
  given ??= found.scenario;
  editor.show(found.scenario);
  keep(step);
  step = "";
  ask.show(found.written, found.resolved, tracing);
  problems.mark(found.problem);
  if (found.problem) return outdate(found.problem);
  if (!studies.show(found)) view("");
  document.title = `${found.question[0]} – Stepcast`;
  forecast.offer(found.methods);
  pins.show();
  if (!more) look();
}

// Another scenario; the one before is a step back.
function start(scenario, example = "") {
  if (editor.finish()) keep("text");
  const mine = state.scenario !== "" && state.scenario !== given;
  Object.assign(state, { example, method: "auto", timeline: null, studies: null, choice: null });
  studies.forget();
  tracing = false;
  say(mine);
  $("example").value = example;
  given = scenario;
  replace(scenario, `start ${example}`);
}

function say(mine, words = "Your own question is one step back.") {
  $("kept").hidden = !mine;
  $("kept-words").textContent = words;
  $("return").hidden = words !== "Your own question is one step back.";
}

studies.begin(() => describing, () => look(true), (scenario, edits) => {
  use(scenario, edits);
  $("results").scrollIntoView({ block: "start" });
});
const showView = tabs($("tabs"), (name) => {
  state.view = name;
  plots.hide();
  keep();
  problems.mark(described?.problem);
  look();
});

function view(name) {
  state.view = name;
  showView(name);
}

function useMethod(name) {
  state.method = name;
  forecast.offer(described.methods);
  keep(`method ${name}`);
  look();
}

function showEditor() {
  view("toml");
  keep();
  problems.mark(described?.problem);
}

// Shows what the history or a link says.
function follow() {
  say(false);
  $("example").value = state.example;
  showView(state.view);
  studies.forget();
  tracing = false;
  decision.restored();
  pins.show();
  replace(state.scenario, "");
}

function begin(found) {
  const example = examples.find(({ name }) => name === state.example);
  if (found === "shown") return follow();
  if (found === "example" && example) return start(example.scenario, example.name);
  start(first);
  if (found !== "none") say(true, "This link is damaged, or of another version: nothing in it could be read. Here is a question to start from.");
}

// The ways in: each starts from what the question has in common with it.
const ways = {
  decide: () => (described?.transformer && described.written.model.zoo ? start(first.replace("llama3-70b", described.written.model.zoo)) : start(first)),
  own() {
    const { written } = described ?? {};
    if (!written?.model || ask.way(written) === "own") return start(own);
    if (ask.way(written) !== "decide") return start(own);
    change([{ key: "plan.offers", value: null }, { key: "plan.deadline", value: null }, ...(written.cluster ? [] : [{ key: "cluster.machine", value: '"dgx-h100"' }, { key: "cluster.machines", value: "4" }])]);
  },
  tune: () => start(tuned),
  trace() {
    tracing = true;
    ask.show(described?.written, described?.resolved, true);
    $("file").focus();
  },
};

for (const button of document.querySelectorAll("[data-way]")) button.addEventListener("click", () => button.getAttribute("aria-pressed") === "true" || ((tracing = false), ways[button.dataset.way]()));
$("method").addEventListener("change", () => useMethod($("method").value));
for (const id of ["undo", "return"]) $(id).addEventListener("click", () => history.back());
$("example").addEventListener("change", () => {
  const name = $("example").value;
  start(examples.find((example) => example.name === name)?.scenario ?? first, name);
});
addEventListener("click", async (event) => {
  const what = event.target.dataset?.download;
  if (!what) return;
  try {
    await ({ perfetto: timeline, "timeline-svg": timeline, study: views[state.view] }[what] ?? forecast).download(what);
  } catch (error) {
    problems.say(lanes.results.row.failure, error);
  }
});
addEventListener("keydown", (event) => event.key === "Escape" && plots.hide());

theme.begin();
share.begin();
for (const [name, id] of Object.entries({ decision: "decision", results: "results", tools: "tools" })) {
  lanes[name] = runs.lane(id);
  lanes[name].row.again.addEventListener("click", () => (described?.problem || !described ? describe() : look(true)));
}
editor.begin((text) => replace(text, "text"));
runs.begin(() => server.lost(() => look()));
forecast.begin(use);
methods.begin(useMethod);
sliders.begin(change);
decision.begin((more, chosen) => {
  if (chosen) return change(more);
  // What is recommended belongs to the question, and is no step of its own.
  step = "";
  version += 1;
  edits = more;
  given = null;
  applying = true;
  describe();
});
pins.begin((pin) => {
  state.choice = pin.choice ?? null;
  decision.restored();
  replace(pin.scenario, `pin ${pin.title}`);
});
problems.begin(change, useMethod, showEditor);
timeline.begin(look, (problem) => (problem.offline ? server.lost(() => look()) : problems.say(lanes.tools.row.failure, problem)));
upload.begin(({ scenario }) => start(scenario), () => ways.trace());
onLink(begin);

async function load() {
  try {
    const [known, models, devices, machines, networks, aliases] = await Promise.all(["examples", "models", "devices", "machines", "networks", "aliases"].map(get));
    examples = known;
    ask.begin({ models, devices, machines, networks, aliases }, change, (more, where) => {
      change(more);
      showEditor();
      setTimeout(() => editor.jump($("text").value.split("\n").findIndex((line) => line.startsWith(where)) + 1), 300);
    });
    decision.know(machines);
    $("example").append(...examples.map(({ name, question }) => make("option", { value: name, title: question }, name)));
    begin(await restore());
  } catch (problem) {
    problems.say($("problem"), problem);
    if (problem.offline) server.lost(load);
  }
}
await load();
