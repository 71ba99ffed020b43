// The question as a sentence: each chip in it is a value of the scenario, and changing it edits the text.

import { $, make } from "./dom.js";
import * as picker from "./picker.js";
import { amount, number } from "./format.js";

let lists = { models: [], devices: {}, machines: {}, networks: {}, aliases: {} };
let change;
let describe;

// `changed` takes edits; `own` opens the text for what no list has.
export function begin(known, changed, own) {
  lists = known;
  change = (...edits) => {
    picker.close();
    changed(edits.flat());
  };
  describe = own;
}

const inside = (value) => (value !== null && typeof value === "object" ? value : {});
const set = (key, value) => ({ key, value: value === null ? null : `${value}` });
const quoted = (text) => JSON.stringify(text);

// The ways in; what a text says decides.
export function way(written) {
  if (inside(written?.plan).offers) return "decide";
  if (inside(written?.model).adapters) return "tune";
  return inside(written?.model).profile ? "trace" : "own";
}

function chip(id, text, title, open, key = id) {
  const button = make("button", { type: "button", class: "chip", "data-chip": id, "data-about": key, "aria-haspopup": "dialog", "aria-expanded": "false", title }, text);
  button.addEventListener("click", () => open(button));
  return button;
}

const spoken = (description) => description.replace(/, [\d,]+ tokens$/, "");

function isTransformer(written) {
  const model = inside(written.model);
  return Boolean(model.transformer) || Boolean(lists.models.find(({ name, aliases }) => [name, ...aliases].includes(model.zoo))?.transformer);
}

const others = ["profile", "onnx", "custom", "transformer"].map((kind) => set(`model.${kind}`, null));

function modelChip(written) {
  const own = inside(written.model);
  const known = lists.models.find(({ name, aliases }) => [name, ...aliases].includes(own.zoo));
  const text = known ? spoken(known.description) : own.zoo ?? own.profile ?? own.onnx ?? (own.transformer ? "a transformer of my own" : own.custom ? "a model of my own" : "choose a model");
  const items = lists.models.map(({ name, description, family, aliases }) => ({ value: name, label: spoken(description), note: name, group: family, also: aliases }));
  const use = (name) => {
    const splits = lists.models.find((model) => model.name === name).transformer;
    const amounts = way(written) !== "decide" || splits === isTransformer(written) ? [] : splits ? [set("data", null), set("plan.tokens", "1e12")] : [set("plan.tokens", null), set("data.samples", 1281167), set("data.epochs", 90)];
    change(others, set("model.zoo", quoted(name)), set("strategy.plan", null), splits ? set("strategy.batch", null) : [], amounts);
  };
  const not = { label: "Not listed: describe it", note: "layers and sizes", act: () => describe([...others, set("model.zoo", null), set("strategy.plan", null), ...["layers = 32", "hidden = 4096", "heads = 32", "vocabulary = 32000", "sequence = 4096"].map((line) => set(`model.transformer.${line.split(" = ")[0]}`, line.split(" = ")[1]))], "[model.transformer]") };
  return chip("model", text, "The model to train", (at) => picker.open(at, "Model", ...picker.list(items, use, not)));
}

function amountChip(written) {
  const tuned = way(written) === "tune";
  const { tokens } = inside(tuned ? written.data : written.plan);
  const { samples, epochs = 1 } = inside(written.data);
  const splits = isTransformer(written);
  const text = splits && tokens ? `${amount(tokens)} tokens` : samples ? `${amount(samples)} samples × ${epochs}` : "one step";
  const open = (at) => {
    if (!splits) {
      const fields = [{ name: "samples", label: "Samples of the data set", value: samples, placeholder: "1281167" }, { name: "epochs", label: "Passes over them", value: epochs }];
      return picker.open(at, "Amount of training", picker.fields(fields, (said) => change(said.samples ? [set("data.samples", Math.round(number(said.samples) ?? 0) || said.samples), set("data.epochs", said.epochs || 1)] : set("data", null))));
    }
    const use = (value) => change(tuned ? set("data.tokens", value) : value === null ? set("plan.tokens", null) : [set("data", null), set("plan.tokens", value)]);
    const usual = tuned ? [["1e6", "1 M"], ["1e7", "10 M"], ["5e7", "50 M"], ["1e8", "100 M"], ["1e9", "1 B"]] : [["1e11", "100 B"], ["3e11", "300 B"], ["1e12", "1 T"], ["2e12", "2 T"], ["1.5e13", "15 T"]];
    picker.open(at, "Amount of training", picker.presets(usual, use), picker.fields([{ name: "tokens", label: "Tokens", value: tokens ? amount(tokens) : "", placeholder: "1 T" }], ({ tokens: said }) => use(said === "" ? null : number(said)?.toExponential() ?? quoted(said))));
  };
  return chip("amount", text, "How much to train on", open, tuned ? "data.tokens" : splits ? "plan.tokens" : "data.samples");
}

function adapterChip(written) {
  const { rank = 16, base = "bf16" } = inside(inside(written.model).adapters);
  const bases = { bf16: "LoRA", nf4: "QLoRA (nf4)", int8: "LoRA on int8", fp8: "LoRA on fp8" };
  const use = (key) => (value) => change(set(`model.adapters.${key}`, value));
  const open = (at) => picker.open(at, "Adapters", picker.presets([8, 16, 32, 64, 128].map((value) => [value, `rank ${value}`]), use("rank")), picker.presets(Object.entries(bases).map(([value, words]) => [quoted(value), words]), use("base")), picker.fields([{ name: "rank", label: "Rank", value: rank }], ({ rank: said }) => use("rank")(said || 16)));
  return chip("adapters", `${bases[base] ?? base} of rank ${rank}`, "What is trained beside the frozen model", open, "model.adapters");
}

function sequenceChip(written, resolved) {
  const now = inside(written.model).sequence ?? resolved?.model?.sequence;
  const use = (value) => change(set("model.sequence", value));
  const open = (at) => picker.open(at, "Tokens of a sequence", picker.presets([1024, 2048, 4096, 8192, 16384].map((value) => [value, `${value}`]), use), picker.fields([{ name: "sequence", label: "Tokens of a sequence", value: now }], ({ sequence }) => use(sequence || null)));
  return chip("sequence", `${now ?? "the model's own length"} tokens`, "Tokens of a sequence", open, "model.sequence");
}

function priceChip(written) {
  const key = "price.worker-hour";
  const now = inside(written.price)["worker-hour"];
  const open = (at) => picker.open(at, "Price", picker.fields([{ name: "hour", label: "Price of a device and hour, in USD", value: now, placeholder: "0.40" }], ({ hour }) => change(set(key, hour === "" ? null : (number(hour) ?? hour)))));
  return chip("price", now ? `${now} USD/h` : "an unknown price", "Price of a device and hour", open, key);
}

function deadlineChip(written) {
  const { deadline } = inside(written.plan);
  const days = /^(\d+(?:\.\d+)?) ?d$/.exec(deadline ?? "")?.[1];
  const use = (value) => change(set("plan.deadline", value && quoted(value)));
  const usual = [["7 d", "7 days"], ["14 d", "14 days"], ["30 d", "30 days"], ["60 d", "60 days"], ["90 d", "90 days"], [null, "any time"]];
  const said = ({ deadline: text }) => use(text === "" ? null : text.replace(/^(\d+(?:\.\d+)?)( ?days?| ?d)?$/, "$1 d"));
  const open = (at) => picker.open(at, "Deadline", picker.presets(usual, use), picker.fields([{ name: "deadline", label: "Longest time", value: deadline, placeholder: "45 d" }], said));
  return chip("deadline", days ? `${days} day${days === "1" ? "" : "s"}` : deadline ?? "any time", "Longest time of training", open, "plan.deadline");
}

const canonical = (name) => (lists.machines[name] ? name : lists.aliases.machines?.[name] ?? name);
const machineName = (id) => (lists.machines[canonical(id)]?.name ?? id).replace(/^(NVIDIA|Amazon EC2|Google|Microsoft|Azure) /, "");
const family = (name) => name.split(" ").slice(0, name.startsWith("Amazon") ? 2 : 1).join(" ");

function machineItems() {
  const also = (id) => Object.entries(lists.aliases.machines ?? {}).filter(([, name]) => name === id).map(([alias]) => alias);
  return Object.entries(lists.machines).map(([id, { name, gpus, device, price }]) => ({ value: id, label: name, note: `${gpus} × ${device}${price ? `, ${price.hour} USD/h` : ""}`, group: family(name), also: also(id) }));
}

const numbers = (list) => (list.length > 2 ? `${list[0]}–${list.at(-1)}` : list.join(", "));

const offerText = ({ machine = "?", name, nodes }) => `${name ?? machineName(machine)}${Array.isArray(nodes) && nodes.length ? ` × ${numbers(nodes)}` : ""}`;

// "16-64" and "16..64" are the doublings from the first to the last.
function counts(text) {
  const [, from, to] = /^(\d+)\s*(?:-|–|\.\.|to)\s*(\d+)$/.exec(text) ?? [];
  if (!from) return `[${text}]`;
  const all = [];
  for (let value = +from; value < +to; value *= 2) all.push(value);
  return `[${[...all, +to].join(", ")}]`;
}

function offerChip(offer, place, all) {
  const key = `plan.offers.${place}`;
  const price = lists.machines[canonical(offer.machine)]?.price;
  const open = (at) => {
    const asked = [
      { name: "nodes", label: "Numbers of machines", value: (offer.nodes ?? []).join(", "), placeholder: "16-64" },
      { name: "hour", label: "Price of a machine and hour", value: offer["node-hour"], placeholder: price ? `${(offer.spot && price.spot ? price.spot : price).hour} assumed` : "unknown" },
      ...(price?.spot ? [{ name: "spot", label: "May be taken back (spot)", value: offer.spot, checkbox: true }] : []),
    ];
    const done = ({ nodes, hour, spot }) => change(set(`${key}.nodes`, nodes === "" ? null : counts(nodes)), set(`${key}.node-hour`, hour === "" ? null : (number(hour) ?? hour)), set(`${key}.spot`, spot ? "true" : null), set(`${key}.name`, spot ? quoted(`${machineName(offer.machine)} spot`) : null));
    const source = price ? [make("p", { class: "note" }, `Assumed: ${price.hour} USD, ${price.range.join(" to ")} (${price.date}). ${price.source}`)] : [];
    const remove = make("button", { type: "button", class: "link" }, "Remove");
    remove.addEventListener("click", () => change(set(key, null)));
    picker.open(at, offerText(offer), picker.fields(asked, done), ...source, ...(all > 1 ? [remove] : []));
  };
  return chip(key, offerText(offer), "Machines to choose from", open);
}

function addChip(offers) {
  const add = (machine) => {
    const key = `plan.offers.${offers.length}`;
    const clash = offers.some((offer) => canonical(offer.machine) === machine);
    const nodes = offers[0]?.nodes ?? [1, 2, 4];
    change(set(`${key}.machine`, quoted(machine)), set(`${key}.nodes`, JSON.stringify(nodes)), clash ? set(`${key}.name`, quoted(`${machineName(machine)} (${offers.length + 1})`)) : []);
  };
  return chip("add", "+", "Add machines to choose from", (at) => picker.open(at, "Machines", ...picker.list(machineItems(), add, notListed())));
}

const notListed = () => ({ label: "Not listed: describe it", note: "device, links and network", act: () => describe([set("plan", null), set("cluster", null), set("strategy.plan", null), set("cluster.workers.0.count", 8), set("cluster.workers.0.device.base", quoted("h100-sxm5")), set("cluster.workers.0.device.memory", quoted("80 GB")), set("cluster.nodes.workers", 8), set("cluster.nodes.network", quoted("nvlink4")), set("cluster.network", quoted("400 Gbit/s"))], "[[cluster.workers]]") });

function countChip(written, resolved) {
  const cluster = inside(written.cluster);
  const groups = Array.isArray(cluster.workers) ? cluster.workers : [];
  const key = cluster.machine ? "cluster.machines" : "cluster.workers.0.count";
  const now = cluster.machine ? (cluster.machines ?? 1) : groups[0]?.count ?? resolved?.cluster?.workers?.[0]?.count ?? 1;
  const use = (value) => change(set(key, value));
  const open = (at) => picker.open(at, "How many", picker.presets([1, 2, 4, 8, 16, 32, 64].map((value) => [value, `${value}`]), use), picker.fields([{ name: "count", label: cluster.machine ? "Machines" : "Workers", value: now }], ({ count }) => use(count || 1)));
  return chip("count", `${now} ×`, "How many", open, key);
}

function hardwareChip(written, resolved) {
  const cluster = inside(written.cluster);
  const groups = Array.isArray(cluster.workers) ? cluster.workers : [];
  const device = groups[0]?.device;
  const called = typeof device === "string" ? lists.devices[device]?.name ?? device : resolved?.cluster?.workers?.[0]?.device?.name;
  const text = cluster.machine ? machineName(cluster.machine) : groups.length > 1 ? `${called} and ${groups.length - 1} more kind${groups.length > 2 ? "s" : ""}` : called ?? "choose machines";
  const alias = (id) => Object.entries(lists.aliases.devices ?? {}).filter(([, name]) => name === id).map(([short]) => short);
  const devices = Object.entries(lists.devices).map(([id, { name }]) => ({ value: `device ${id}`, label: name, note: id, group: `Single devices: ${family(name)}`, also: alias(id) }));
  const count = cluster.machine ? (cluster.machines ?? 1) : 1;
  const use = (value) => {
    const plan = set("strategy.plan", null);
    const [, id] = value.split("device ");
    if (id === undefined) return change(plan, set("cluster", null), set("cluster.machine", quoted(value)), set("cluster.machines", count));
    change(plan, set("cluster.machine", null), set("cluster.machines", null), set("cluster.nodes", null), set("cluster.workers.0.count", groups[0]?.count ?? 8), set("cluster.workers.0.device", quoted(id)));
  };
  return chip("hardware", text, "What it trains on", (at) => picker.open(at, "Machines and devices", ...picker.list([...machineItems(), ...devices], use, notListed())), cluster.machine ? "cluster.machine" : "cluster.workers.0.device");
}

function networkChip(written, resolved) {
  const given = inside(written.cluster).network;
  const own = inside(resolved?.cluster).network ?? {};
  const text = typeof given === "string" && !lists.networks[given] ? given : own.name ?? "a network";
  const items = Object.entries(lists.networks).map(([id, { name, bandwidth }]) => ({ value: quoted(id), label: name, note: `${id}, ${bandwidth}` }));
  const open = (at) => picker.open(at, "Network", ...picker.list(items, (value) => change(set("cluster.network", value))), picker.fields([{ name: "rate", label: "Or a rate", placeholder: "100 Gbit/s" }], ({ rate }) => change(set("cluster.network", rate === "" ? null : quoted(rate)))));
  return chip("network", text, "What joins them", open, "cluster.network");
}

function batchChip(written, resolved) {
  const plan = isTransformer(written);
  const key = plan ? "strategy.plan.global-batch" : "strategy.batch";
  const strategy = inside(written.strategy);
  const now = plan ? (inside(strategy.plan)["global-batch"] ?? resolved?.strategy?.plan?.["global-batch"]) : (strategy.batch ?? resolved?.strategy?.batch);
  const label = plan ? "Sequences of a step" : "Samples of a worker and step";
  const use = (value) => change(set(key, value));
  const open = (at) => picker.open(at, label, picker.presets((plan ? [128, 256, 512, 1024, 2048] : [16, 32, 64, 128, 256]).map((value) => [value, `${value}`]), use), picker.fields([{ name: "batch", label, value: now }], ({ batch }) => use(batch || null)));
  return chip("batch", now === undefined ? "the recorded batch" : plan ? `${now} sequences a step` : `batch ${now}`, label, open, key);
}

function architectureChip(written, resolved) {
  const now = inside(written.strategy).architecture ?? resolved?.strategy?.architecture ?? "all-reduce";
  const items = [["all-reduce", "All workers sum their gradients"], ["parameter-server", "Servers keep the parameters"], ["stand-alone", "One worker by itself"]].map(([value, note]) => ({ value, label: value, note }));
  return chip("architecture", now, "How workers agree", (at) => picker.open(at, "Architecture", ...picker.list(items, (value) => change(set("strategy.architecture", quoted(value))))), "strategy.architecture");
}

const spaced = (parts) => parts.flatMap((part, place) => (place > 0 && !/^[,.:]/.test(part) ? [" ", part] : [part]));

function sentence(written, resolved) {
  if (way(written) === "decide") {
    const offers = written.plan.offers.map(inside);
    return ["Train", modelChip(written), "on", amountChip(written), "within", deadlineChip(written), ", choosing among", ...offers.map((offer, place) => offerChip(offer, place, offers.length)), addChip(offers)];
  }
  if (way(written) === "tune") return ["Fine-tune", modelChip(written), "by", adapterChip(written), "on", amountChip(written), "in sequences of", sequenceChip(written, resolved), "with", countChip(written, resolved), hardwareChip(written, resolved), "at", priceChip(written)];
  const workers = (resolved?.cluster?.workers ?? [{ count: 2 }]).reduce((sum, { count }) => sum + count, 0);
  const network = workers > 1 ? ["joined by", networkChip(written, resolved)] : [];
  const how = isTransformer(written) ? [] : ["by", architectureChip(written, resolved)];
  return ["Train", modelChip(written), "on", countChip(written, resolved), hardwareChip(written, resolved), ...network, "with", batchChip(written, resolved), ...how, "for", amountChip(written)];
}

let last = "";

// Shows what a text says, even if something in it is wrong; a text that is no TOML leaves the sentence as it is.
export function show(written, resolved, tracing) {
  const now = tracing ? "trace" : written ? way(written) : null;
  for (const button of document.querySelectorAll("[data-way]")) button.setAttribute("aria-pressed", button.dataset.way === now);
  $("drop").hidden = now !== "trace" && !inside(written?.model).onnx;
  if (!written) return;
  const parts = spaced(sentence(written, resolved));
  const made = JSON.stringify(parts.map((part) => part.textContent ?? part)) + JSON.stringify(written.plan ?? null) + isTransformer(written);
  if (made === last && document.querySelector(".chip")) return;
  last = made;
  const held = document.activeElement?.dataset?.chip;
  $("sentence").replaceChildren(...parts);
  if (held) document.querySelector(`[data-chip="${CSS.escape(held)}"]`)?.focus();
}

// The chip of a key, or of the section that it is in.
export function found(key) {
  let name = (key ?? "").replaceAll(/\[(\d+)\]/g, ".$1");
  while (name !== "") {
    const chip = $("sentence").querySelector(`[data-about="${CSS.escape(name)}"], [data-chip="${CSS.escape(name)}"]`);
    if (chip) return chip;
    name = name.split(".").slice(0, -1).join(".");
  }
  return null;
}

