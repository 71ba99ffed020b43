// The form: the fields of a scenario. Every change becomes an edit of its text.

import { $, make } from "./dom.js";

const synchronisations = ["bsp", "async", "ssp(3)", "local-sgd(8)"];
let lists = { keys: new Map(), models: [], devices: {}, networks: {} };
let change;

export function begin(known, changed) {
  const keys = known.keys.flatMap(({ path, keys }) => keys.map((key) => [`${path}.${key.name}`, key]));
  lists = { ...known, keys: new Map(keys) };
  change = changed;
}

// The documentation of a key; all groups of workers share theirs.
function documented(key) {
  return lists.keys.get(key.replace(/\.\d+(?=\.)/, ""));
}

function field(label, control, whole) {
  const meaning = documented(control.name)?.meaning;
  return make("label", { ...(whole ? { class: "whole" } : {}), ...(meaning ? { title: meaning } : {}) }, label, control);
}

function choices(key) {
  return (documented(key)?.choices ?? []).map((name) => [name, name]);
}

function select(key, value, options, edits) {
  const control = make("select", { name: key });
  for (const [name, words] of options) control.append(make("option", { value: name }, words));
  control.value = value;
  control.addEventListener("change", () => change(edits ? edits(control.value) : [{ key, value: control.value }]));
  return control;
}

function input(key, value, attributes = {}) {
  const control = make("input", { name: key, ...attributes });
  control.value = value ?? "";
  control.addEventListener("change", () => change([{ key, value: control.value.trim() === "" ? null : control.value.trim() }]));
  return control;
}

const number = { type: "number", min: "0", step: "any", inputmode: "decimal" };
const count = { type: "number", min: "1", inputmode: "numeric" };

function entry(value) {
  return typeof value === "string" ? value : (value?.base ?? "");
}

function named(value, known, own) {
  const options = Object.entries(known).map(([name, entry]) => [name, entry.name ?? name]);
  if (!(entry(value) in known)) options.unshift(["", own]);
  return options;
}

function group(workers, place, groups) {
  const key = `cluster.workers.${place}`;
  const legend = make("legend", {}, groups > 1 ? `Workers, group ${place + 1}` : "Workers");
  if (groups > 1) {
    const remove = make("button", { type: "button", class: "link", "aria-label": `Remove group ${place + 1}` }, "Remove");
    remove.addEventListener("click", () => change([{ key, value: null }]));
    legend.append(remove);
  }
  return make(
    "fieldset",
    {},
    legend,
    field("Count", input(`${key}.count`, workers.count, count)),
    field("Batch, if different", input(`${key}.batch`, workers.batch, count)),
    field("Device", select(`${key}.device`, entry(workers.device), named(workers.device, lists.devices, workers.device ? "custom figures" : "default")), true),
  );
}

export function show(written, resolved) {
  if (!written) return;
  const focused = document.activeElement?.name;
  const { model = {}, cluster = {}, strategy = {}, data = {}, price = {} } = written;
  const full = resolved ?? {};
  const groups = cluster.workers ?? [{}];
  const own = model.profile ?? model.onnx ?? model.custom?.name;
  const models = lists.models.map(({ name, description }) => [name, `${name} – ${description}`]);
  if (!model.zoo) models.unshift(["", own ? `from ${own}` : "choose a model"]);
  const zoo = (name) => [...["profile", "onnx", "custom"].map((other) => ({ key: `model.${other}`, value: null })), { key: "model.zoo", value: name }];
  const add = make("button", { type: "button", class: "link" }, "Add a group of workers");
  add.addEventListener("click", () => change([{ key: `cluster.workers.${groups.length}.count`, value: "1" }]));
  const servers = (full.strategy?.architecture ?? "parameter-server") === "parameter-server";
  const known = make("datalist", { id: "synchronisations" }, ...synchronisations.map((value) => make("option", { value })));
  $("fields").replaceChildren(
    field("Model", select("model.zoo", model.zoo ?? "", models, zoo), true),
    ...groups.map((workers, place) => group(workers, place, groups.length)),
    add,
    make(
      "fieldset",
      {},
      make("legend", {}, "Network"),
      field("Kind", select("cluster.network", entry(cluster.network), named(cluster.network, lists.networks, cluster.network ? "custom figures" : "default")), true),
      field("Bandwidth", input("cluster.network.bandwidth", cluster.network?.bandwidth, { placeholder: full.cluster?.network?.bandwidth ?? "" })),
      ...(servers ? [field("Parameter servers", input("cluster.servers.count", cluster.servers?.count, { ...count, placeholder: "1" }))] : []),
    ),
    make(
      "fieldset",
      {},
      make("legend", {}, "Strategy"),
      field("Architecture", select("strategy.architecture", full.strategy?.architecture ?? strategy.architecture ?? "parameter-server", choices("strategy.architecture")), true),
      field("Synchronisation", input("strategy.synchronisation", strategy.synchronisation, { list: "synchronisations", placeholder: full.strategy?.synchronisation ?? "bsp" })),
      field("Batch of a worker", input("strategy.batch", strategy.batch, { ...count, placeholder: `${full.strategy?.batch ?? ""}` })),
      field("Precision", select("strategy.precision", full.strategy?.precision ?? "fp32", choices("strategy.precision"))),
      known,
    ),
    make(
      "fieldset",
      {},
      make("legend", {}, "Data and prices"),
      field("Samples of an epoch", input("data.samples", data.samples, count)),
      field("Epochs", input("data.epochs", data.epochs, count)),
      field("Price of a worker for an hour", input("price.worker-hour", price["worker-hour"], number)),
      field("Price of a server for an hour", input("price.server-hour", price["server-hour"], number)),
    ),
  );
  if (focused) $("fields").querySelector(`[name="${CSS.escape(focused)}"]`)?.focus();
}
