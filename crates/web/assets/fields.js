// Fields of the form: controls that are made once and updated in place, so that nothing typed is lost.

import { make } from "./dom.js";

let documentation = new Map();

export function begin(sections) {
  documentation = new Map(sections.flatMap(({ path, keys }) => keys.map((key) => [`${path}.${key.name}`, key])));
}

// The documentation of a key; all groups of workers share theirs.
export function documented(key) {
  return documentation.get(key.replace(/\.\d+(?=\.)/, ""));
}

// The label of a key: its name, in words.
export function label(key) {
  const words = key.split(".").at(-1).replaceAll("-", " ");
  return words[0].toUpperCase() + words.slice(1);
}

export function choices(key) {
  return (documented(key)?.choices ?? []).map((name) => [name, name]);
}

// `spec`: key, value, options or attributes, whole (takes a row), edits (of a value; by default of the key alone).
function control({ key, options, attributes = {} }, changed) {
  const element = options ? make("select", { name: key }) : make("input", { name: key, ...attributes });
  element.addEventListener("input", () => (element.dataset.typed = "1"));
  element.addEventListener("change", () => {
    delete element.dataset.typed;
    changed(element.value.trim());
  });
  return element;
}

export function field(spec, change) {
  const entry = { spec };
  const changed = (value) => change(entry.spec.edits?.(value) ?? [{ key: entry.spec.key, value: value === "" ? null : value }]);
  const element = control(spec, changed);
  const meaning = documented(spec.key)?.meaning;
  const text = spec.label ?? label(spec.key);
  entry.label = make("label", { ...(spec.whole ? { class: "whole" } : {}), ...(meaning ? { title: meaning } : {}) }, text, element);
  entry.update = (now) => {
    entry.spec = now;
    if (now.options) offer(element, now.options, now.value);
    else {
      if (now.attributes?.placeholder !== undefined) element.placeholder = now.attributes.placeholder;
      if (!element.dataset.typed) element.value = now.value ?? "";
    }
  };
  entry.update(spec);
  return entry;
}

// Values that are no option are shown too: the text may say anything.
function offer(select, options, value = "") {
  const all = options.some(([name]) => name === value) ? options : [[value, value], ...options];
  const now = [...select.options].map((option) => `${option.value}\n${option.text}`).join("\n\n");
  if (now !== all.map(([name, words]) => `${name}\n${words}`).join("\n\n")) {
    select.replaceChildren(...all.map(([name, words]) => make("option", { value: name }, words)));
  }
  select.value = value;
}
