// The decision: which machines to take. A card says what the chosen option gives; the front and the table have all of them.

import { $, make, several } from "./dom.js";
import { stream } from "./api.js";
import { answer } from "./runs.js";
import { state } from "./state.js";
import { bar, main, shares } from "./bars.js";
import { bytes, money, monies, percent, time, times, unit } from "./format.js";
import * as front from "./front.js";

export const name = "decide";
let apply;
let described = null;

// `applied` takes the edits that make an option the scenario, and whether somebody chose it.
export function begin(applied) {
  apply = applied;
  new ResizeObserver(() => answer(name) && drawFront(answer(name).data.report)).observe($("front"));
}

export function about(found) {
  described = found;
}

export function body() {
  return described?.written?.plan?.offers ? { scenario: state.scenario } : null;
}

// The option that is shown, and what tries it out, do not change the question.
export function identity() {
  const { cluster, strategy = {}, ...rest } = described.written;
  const { plan, ...others } = strategy;
  return { ...rest, strategy: others };
}

export async function run(body, job) {
  let last;
  await stream("decide", body, job.signal, (event) => {
    if (event.event === "answer") last = event;
    else job.progress(event.of ? event.done / event.of : undefined, `${event.done} of ${event.of} options`);
  });
  return last;
}

const label = ({ nodes, offer }) => `${nodes} × ${called(offer)}`;
let called = (offer) => offer;
export function know(machines) {
  called = (offer) => (machines[offer]?.name ?? offer).replace(/^(NVIDIA|Amazon EC2|Google|Azure) /, "");
}

// The option that is shown: the one that was chosen, otherwise the recommended one.
function current(report) {
  const own = report.options.findIndex((option) => label(option) === state.choice && option.figures);
  return own >= 0 ? own : (report.recommended ?? -1);
}

// What is said first, and how good it is.
function verdict({ figures }, { deadline_s: deadline, budget }) {
  if (figures.verdict !== "fits") return ["bad", `Does not fit: ${bytes(figures.memory)} on ${bytes(figures.capacity)}`];
  if (figures.late !== undefined && figures.late > 0.5) return ["bad", `Misses ${time(deadline)}: ${percent(figures.late)} likely to be late`];
  if (budget && figures.cost > budget) return ["bad", `Over the budget of ${money(budget, "")}`];
  if (figures.late !== undefined && figures.late > 0.05) return ["unsure", `Meets ${time(deadline)}, but ${percent(figures.late)} likely to be late`];
  return ["good", deadline ? `Fits, and meets ${time(deadline)}` : "Fits"];
}

function figure(term, value, note, id) {
  return make("div", { "data-figure": id ?? term }, make("dt", {}, term), make("dd", {}, value), make("dd", { class: "note" }, note));
}

function basis({ basis: known }) {
  if (!known) return "No measured runs validate this";
  return `Validated on ${several(known.cases, "measured run")} of ${several(known.groups, "source")} (${known.sets.join(", ")})`;
}

function card(report, place) {
  const option = report.options[place];
  if (!option) {
    const reasons = [...new Set(report.options.map((one) => one.refusal).filter(Boolean))].slice(0, 3);
    return [make("p", { class: "verdict bad" }, "None of these machines can train it"), ...reasons.map((reason) => make("p", {}, `${reason[0].toUpperCase()}${reason.slice(1)}.`)), make("p", { class: "note" }, "Choose more or larger machines above.")];
  }
  const { figures, price } = option;
  const [mood, words] = verdict(option, report);
  const best = place === report.recommended;
  const all = [];
  if (figures.time_s) all.push(figure("time", time(figures.time_s), `90 % interval ${times(figures.time_interval_s, unit(figures.time_s))}`));
  else all.push(figure("step time", time(figures.step_s), `90 % interval ${times(figures.step_interval_s)}`));
  if (figures.cost !== undefined) all.push(figure("cost", money(figures.cost, report.currency), `${monies(figures.cost_interval, report.currency)}${price ? `, at an assumed ${price.node_hour} an hour and machine (${price.date})` : ""}`));
  const { training } = figures;
  const risk = figures.late !== undefined ? percent(figures.late) : training ? `${Math.round(training.interruptions).toLocaleString("en")}` : null;
  if (risk !== null) all.push(figure(figures.late !== undefined ? "risk of being late" : "interruptions", risk, training ? `${several(Math.round(training.interruptions), "interruption")} expected, ${percent(training.goodput)} of the time is progress` : "from the interval of the time"));
  all.push(figure("memory", `${bytes(figures.memory)}`, `of ${bytes(figures.capacity)} on the fullest device`));
  return [
    make("p", { class: `verdict ${mood}` }, words),
    make("p", { class: "take" }, best ? "Take " : "Or take ", make("strong", {}, label(option)), make("span", { class: "note" }, ` ${several(option.workers, "GPU")}${best && report.options.length > 1 ? ", the cheapest that does it" : ""}`)),
    make("dl", { class: "figures" }, ...all),
    make("p", { class: "note" }, `${basis(figures)}.${figures.words ? ` Plan: ${figures.words}.` : ""}`),
  ];
}

function drawFront(report) {
  const chosen = current(report);
  const priced = report.options.some(({ figures }) => figures?.cost !== undefined);
  const options = report.options.map((option, index) => ({ option, index })).filter(({ option: { figures } }) => figures && (!priced || figures.cost !== undefined)).map(({ option: { figures, ...option }, index }) => ({
    index, name: label(option), time: figures.time_s ?? figures.step_s, cost: figures.cost ?? option.nodes, times: figures.time_interval_s ?? figures.step_interval_s, costs: figures.cost_interval, front: figures.is_on_front, fits: figures.verdict === "fits",
  }));
  if (options.length === 0) return $("front").replaceChildren();
  front.draw($("front"), { options, chosen, recommended: report.recommended, deadline: report.deadline_s, currency: priced ? report.currency : "machines" }, choose);
}

// All options with what a step of each spends its time on.
function table(report, chosen) {
  const rows = report.options.map((option, index) => {
    const { figures } = option;
    const own = index === chosen;
    const use = make("button", { type: "button", class: "use", disabled: own || !figures, "aria-label": `${own ? "Shown" : "Show"}: ${label(option)}` }, own ? "Shown" : "Show");
    use.addEventListener("click", () => choose(index));
    if (!figures) return make("tr", {}, make("td", {}, label(option)), make("td", { class: "words bad", colspan: "4" }, option.refusal), make("td", {}));
    const parts = main(figures.breakdown.map(({ name, time_s }) => ({ name, value: time_s })));
    const [mood, words] = verdict(option, report);
    return make("tr", own ? { class: "own", "aria-current": "true" } : {}, make("td", {}, label(option)), make("td", { class: "number" }, time(figures.time_s ?? figures.step_s)), make("td", { class: "number" }, figures.cost === undefined ? "" : money(figures.cost, "").trim()), make("td", { class: mood }, words.split(/[:,]/)[0]), make("td", { class: "with-bar" }, bar(parts, parts.reduce((sum, { value }) => sum + value, 0), shares(parts), "a step")), make("td", {}, use));
  });
  const head = ["machines", "time", `cost, ${report.currency}`, "verdict", "where a step goes", ""].map((title, place) => make(title ? "th" : "td", { ...(title ? { scope: "col" } : {}), class: place === 1 || place === 2 ? "number" : "" }, title));
  return make("table", {}, make("thead", {}, make("tr", {}, ...head)), make("tbody", {}, ...rows));
}

let choice = null;

// Shows another choice of the same decision, if there is one.
export function refresh() {
  const entry = answer(name);
  if (entry && state.choice !== choice) show(entry.data.report);
}

function show(report) {
  choice = state.choice;
  const chosen = current(report);
  $("decision-title").textContent = chosen === report.recommended ? "Recommendation" : "Another option";
  $("card").replaceChildren(...card(report, chosen));
  drawFront(report);
  const held = $("options").contains(document.activeElement);
  $("options").replaceChildren(table(report, chosen));
  if (held) $("options").focus();
}

function choose(index) {
  const entry = answer(name);
  const option = entry?.data.report.options[index];
  if (!option?.figures) return;
  state.choice = index === entry.data.report.recommended ? null : label(option);
  show(entry.data.report);
  apply(entry.data.uses[index].edits, true);
}

let seen = null;
// A link shows what it was made for, not what is recommended now.
export function restored() {
  seen = "link";
}

export function draw(entry) {
  const { data, key } = entry;
  if (seen !== null && seen !== "link" && seen !== key) state.choice = null;
  show(data.report);
  const kept = seen === "link" && described.written.cluster?.machine;
  const first = seen !== key;
  seen = key;
  const place = current(data.report);
  if (first && !kept && data.uses[place]) apply(data.uses[place].edits, false);
}

// What the page and its report say of a decision elsewhere.
export function chosen() {
  const entry = answer(name);
  if (!entry || !body()) return null;
  const place = current(entry.data.report);
  return { report: entry.data.report, option: entry.data.report.options[place] ?? null, label: place >= 0 ? label(entry.data.report.options[place]) : "" };
}

export function summary({ data: { report } }) {
  const option = report.options[report.recommended];
  return option ? `Recommended: ${label(option)}. ${verdict(option, report)[1]}.` : "None of these machines can train it.";
}
