// What a search minimises, varies and keeps to, as fields: from a link, from the command in an example, or from the
// scenario.

import { $, make } from "./dom.js";

const objectives = [["time", "training time"], ["cost", "cost"], ["cost-time", "cost × time"], ["epoch", "epoch time"], ["iteration", "step time"]];
const usual = ["workers.count", "batch", "servers.count", "network.bandwidth", "synchronisation", "architecture", "precision", "servers.placement"];
const limits = ["deadline<=1d", "budget<=100", "memory", "minibatch<=2048", "workers<=16", "throughput>=100"];

function row(kind, value, list) {
  const input = make("input", { value, list, "aria-label": kind === "vary" ? "Key and values" : "Constraint", placeholder: kind === "vary" ? "batch=16,32,64" : "deadline<=1d", spellcheck: "false" });
  const remove = make("button", { type: "button", class: "link", "aria-label": `Remove ${value}` }, "Remove");
  const line = make("div", { class: "criterion" }, input, remove);
  remove.addEventListener("click", () => line.remove());
  return line;
}

export function begin() {
  $("minimize").append(...objectives.map(([value, words]) => make("option", { value }, words)));
  $("vary").append(make("datalist", { id: "usual-keys" }, ...usual.map((value) => make("option", { value: `${value}=` }))));
  $("keep").append(make("datalist", { id: "usual-limits" }, ...limits.map((value) => make("option", { value }))));
  for (const [kind, list] of [["vary", "usual-keys"], ["keep", "usual-limits"]]) {
    $(`add-${kind}`).addEventListener("click", () => {
      const line = row(kind, "", list);
      $(kind).append(line);
      line.firstChild.focus();
    });
  }
}

export function show({ minimize, vary, keep }) {
  $("minimize").value = minimize;
  for (const [kind, values, list] of [["vary", vary, "usual-keys"], ["keep", keep, "usual-limits"]]) {
    for (const old of $(kind).querySelectorAll(".criterion")) old.remove();
    $(kind).append(...values.map((value) => row(kind, value, list)));
  }
}

export function read() {
  const values = (kind) => [...$(kind).querySelectorAll("input")].map((input) => input.value.trim()).filter(Boolean);
  return { minimize: $("minimize").value, vary: values("vary"), keep: values("keep") };
}

// The command `stepcast search …` in the comments of a text.
function commanded(text) {
  const comments = text.split("\n").filter((line) => line.startsWith("#")).map((line) => line.slice(1).trim()).join("\n");
  const [, command] = /stepcast search ((?:.*\\\n)*.*)/.exec(comments) ?? [];
  if (!command) return null;
  const words = command.replaceAll("\\\n", " ").match(/'[^']*'|\S+/g).map((word) => word.replaceAll("'", ""));
  const after = (flag) => words.flatMap((word, place) => (word === flag ? [words[place + 1]] : []));
  return { minimize: after("--minimize")[0] ?? "time", vary: after("--vary"), keep: after("--subject-to") };
}

// What one may want to vary of a scenario.
export function suggested(text, resolved) {
  const found = commanded(text);
  if (found || !resolved) return found;
  const { cluster, strategy, data, price } = resolved;
  const many = cluster.workers.length > 1;
  const counts = cluster.workers.map(({ count }, place) => `workers.${place}.count=${many ? 0 : 1}..${Math.max(2 * count, 8)}`);
  const batch = strategy.batch ? [`batch=${[0.5, 1, 2, 4].map((factor) => Math.max(1, Math.round(factor * strategy.batch))).filter((value, place, all) => all.indexOf(value) === place).join(",")}`] : [];
  const servers = strategy.architecture === "parameter-server" ? ["servers.count=1..4"] : [];
  const priced = price && (price["worker-hour"] > 0 || price["server-hour"] > 0);
  return { minimize: data ? (priced ? "cost" : "time") : "iteration", vary: [...counts, ...batch, ...servers], keep: [] };
}
