// The form: the fields of a scenario. Every change becomes an edit of its text.

import { $, make } from "./dom.js";
import { choices, documented, field } from "./fields.js";

const synchronisations = ["bsp", "async", "ssp(3)", "local-sgd(8)"];
const number = { type: "number", min: "0", step: "any", inputmode: "decimal" };
const count = { type: "number", min: "1", inputmode: "numeric" };

let lists = { models: [], devices: {}, networks: {} };
let change;
// Sections and fields on the page, by their names.
const sections = new Map();

export function begin(known, changed) {
  lists = known;
  change = changed;
  $("fields").append(make("datalist", { id: "synchronisations" }, ...synchronisations.map((value) => make("option", { value }))));
}

// What a text says of a value that may be no table at all.
const inside = (value) => (value !== null && typeof value === "object" ? value : {});
const plain = (value) => (value === undefined || value === null || typeof value === "object" ? undefined : `${value}`);
const base = (value) => plain(value) ?? plain(inside(value).base) ?? "";

function named(value, known) {
  const options = Object.entries(known).map(([name, entry]) => [name, entry.name ?? name]);
  return base(value) === "" ? [["", value ? "custom figures" : "default"], ...options] : options;
}

function group(workers, place, groups) {
  const key = `cluster.workers.${place}`;
  return {
    name: key,
    title: groups > 1 ? `Workers, group ${place + 1}` : "Workers",
    remove: groups > 1 ? () => change([{ key, value: null }]) : null,
    fields: [
      { key: `${key}.count`, value: plain(workers.count), attributes: count },
      { key: `${key}.batch`, value: plain(workers.batch), attributes: count },
      { key: `${key}.device`, value: base(workers.device), options: named(workers.device, lists.devices), whole: true },
    ],
  };
}

function model(written) {
  const own = written.profile ?? written.onnx ?? inside(written.custom).name ?? (written.transformer && "a transformer");
  const models = lists.models.map(({ name, description }) => [name, `${name} – ${description}`]);
  if (!written.zoo) models.unshift(["", own ? `from ${own}` : "choose a model"]);
  const edits = (name) => [...["profile", "onnx", "custom", "transformer"].map((other) => ({ key: `model.${other}`, value: null })), { key: "model.zoo", value: name }];
  return { name: "model", title: "", fields: [{ key: "model.zoo", label: "Model", value: plain(written.zoo) ?? "", options: models, whole: true, edits }] };
}

// What a key is: as written, or the default.
function chosen(written, full, section, key) {
  return plain(inside(written[section])[key]) ?? plain(inside(full[section])[key]) ?? documented(`${section}.${key}`)?.default.replaceAll('"', "").replaceAll("`", "");
}

function wanted(written, full) {
  const [cluster, strategy, data, price] = ["cluster", "strategy", "data", "price"].map((section) => inside(written[section]));
  const groups = Array.isArray(cluster.workers) ? cluster.workers.map(inside) : [inside(cluster.workers)];
  const network = inside(cluster.network);
  const architecture = chosen(written, full, "strategy", "architecture");
  const typed = (key, value, attributes) => ({ key, value: plain(value), attributes });
  return [
    model(inside(written.model)),
    ...groups.map((workers, place) => group(workers, place, groups.length)),
    { name: "add", add: () => change([{ key: `cluster.workers.${groups.length}.count`, value: "1" }]) },
    {
      name: "cluster",
      title: "Network",
      fields: [
        { key: "cluster.network", value: base(cluster.network), options: named(cluster.network, lists.networks), whole: true },
        typed("cluster.network.bandwidth", network.bandwidth, { placeholder: full.cluster?.network?.bandwidth ?? "" }),
        ...(architecture === "parameter-server" ? [{ ...typed("cluster.servers.count", inside(cluster.servers).count, { ...count, placeholder: "1" }), label: "Servers" }] : []),
      ],
    },
    {
      name: "strategy",
      title: "Strategy",
      fields: [
        { key: "strategy.architecture", value: architecture, options: choices("strategy.architecture"), whole: true },
        typed("strategy.synchronisation", strategy.synchronisation, { list: "synchronisations", placeholder: full.strategy?.synchronisation ?? "bsp" }),
        typed("strategy.batch", strategy.batch, { ...count, placeholder: `${full.strategy?.batch ?? ""}` }),
        { key: "strategy.precision", value: chosen(written, full, "strategy", "precision"), options: choices("strategy.precision") },
      ],
    },
    {
      name: "data",
      title: "Data and prices",
      fields: [
        typed("data.samples", data.samples, count),
        typed("data.epochs", data.epochs, { ...count, placeholder: "1" }),
        typed("price.worker-hour", price["worker-hour"], number),
        typed("price.server-hour", price["server-hour"], number),
      ],
    },
  ];
}

function made(section) {
  if (section.add) {
    const button = make("button", { type: "button", class: "link" }, "Add a group of workers");
    const entry = { element: button, fields: new Map(), section };
    button.addEventListener("click", () => entry.section.add());
    return entry;
  }
  const title = make("span", {});
  const remove = make("button", { type: "button", class: "link" }, "Remove");
  const entry = { element: make("fieldset", {}, make("legend", {}, title, remove)), title, remove, fields: new Map(), section };
  remove.addEventListener("click", () => entry.section.remove());
  return entry;
}

function update(entry, section) {
  entry.section = section;
  if (section.add) return;
  entry.title.textContent = section.title;
  entry.element.firstChild.hidden = section.title === "";
  entry.remove.hidden = !section.remove;
  entry.remove.setAttribute("aria-label", `Remove ${section.title}`);
  for (const [key, old] of entry.fields) {
    if (section.fields.some((spec) => spec.key === key)) continue;
    old.label.remove();
    entry.fields.delete(key);
  }
  for (const spec of section.fields) {
    if (entry.fields.has(spec.key)) entry.fields.get(spec.key).update(spec);
    else {
      entry.fields.set(spec.key, field(spec, change));
      entry.element.append(entry.fields.get(spec.key).label);
    }
  }
}

// Shows what a text says, even if something in it is wrong; a text that is no TOML leaves the form as it is.
export function show(written, resolved) {
  if (!written) return;
  const next = wanted(written, resolved ?? {});
  for (const [name, entry] of sections) {
    if (next.some((section) => section.name === name)) continue;
    entry.element.remove();
    sections.delete(name);
  }
  let before = null;
  for (const section of next) {
    if (!sections.has(section.name)) sections.set(section.name, made(section));
    const entry = sections.get(section.name);
    update(entry, section);
    const place = before ? before.nextElementSibling : $("fields").firstElementChild;
    if (entry.element !== place) $("fields").insertBefore(entry.element, place);
    before = entry.element;
  }
}
