// The panel of a study: its fields, made from what the study declares, and filled from the scenario, from the command in
// an example's comments, or from a link. The names of fields are those of the API and of the flags.

import { $, make } from "./dom.js";
import * as follow from "./follow.js";

const id = (spec, field) => `${spec.name}-${field.name}`;

function line(spec, field, value) {
  const input = make("input", { value, list: `${id(spec, field)}-usual`, "aria-label": field.each, placeholder: field.placeholder, spellcheck: "false" });
  const remove = make("button", { type: "button", class: "link", "aria-label": `Remove ${value}` }, "Remove");
  const row = make("div", { class: "criterion" }, input, remove);
  remove.addEventListener("click", () => {
    touch(spec);
    row.remove();
  });
  return row;
}

function touch(spec) {
  $(`${spec.name}-form`).dataset.touched = "1";
}

// The fields follow the scenario again.
export function release(spec) {
  delete $(`${spec.name}-form`).dataset.touched;
}

function control(spec, field) {
  const own = { id: id(spec, field), name: field.name };
  if (field.kind === "list") {
    const usual = make("datalist", { id: `${own.id}-usual` }, ...field.usual.map((value) => make("option", { value })));
    return make("fieldset", { id: own.id }, make("legend", {}, field.label), usual);
  }
  if (field.kind === "files") return make("fieldset", { class: "files" }, make("legend", {}, field.label), ...follow.control(own.id, () => $(`${spec.name}-form`).requestSubmit()));
  const input =
    field.kind === "choice"
      ? make("select", own, ...field.options.map(([value, words]) => make("option", { value }, words)))
      : field.kind === "text"
        ? make("textarea", { ...own, rows: "3", placeholder: field.placeholder, spellcheck: "false" })
        : make("input", { ...own, type: field.kind, placeholder: field.placeholder ?? "", spellcheck: "false", ...(field.kind === "number" ? { step: "any", min: "0" } : {}) });
  return make("label", { class: field.kind === "checkbox" ? "check" : "" }, field.label, input);
}

// The form of a study; `run` starts it.
export function form(spec, run) {
  const adds = spec.fields.filter((field) => field.kind === "list").map((field) => {
    const button = make("button", { type: "button", id: `add-${id(spec, field)}` }, field.add);
    button.addEventListener("click", () => {
      touch(spec);
      const row = line(spec, field, "");
      $(id(spec, field)).append(row);
      row.firstChild.focus();
    });
    return button;
  });
  const begin = spec.immediate ? [] : [make("button", { type: "submit", class: "primary" }, spec.action)];
  const json = make("button", { type: "button", "data-download": "study", title: "What the command writes with --json" }, "JSON");
  const buttons = make("div", { class: "study-buttons" }, ...begin, ...adds, make("div", { class: "downloads", role: "group", "aria-label": "Download" }, json));
  const element = make("form", { id: `${spec.name}-form`, class: "study-form", autocomplete: "off" }, make("p", { class: "note whole" }, spec.about), ...spec.fields.map((field) => control(spec, field)), buttons);
  element.addEventListener("input", () => touch(spec));
  element.addEventListener("submit", (event) => {
    event.preventDefault();
    run();
  });
  if (spec.immediate) element.addEventListener("change", run);
  return element;
}

export function fill(spec, values) {
  for (const field of spec.fields.filter(({ kind }) => kind !== "files")) {
    const value = values[field.name];
    const element = $(id(spec, field));
    if (field.kind === "list") {
      for (const old of element.querySelectorAll(".criterion")) old.remove();
      element.append(...(value ?? []).map((text) => line(spec, field, text)));
    } else if (field.kind === "checkbox") element.checked = Boolean(value);
    else element.value = value ?? field.options?.[0][0] ?? "";
  }
}

// What is entered, without what is left empty.
export function read(spec) {
  const value = (field, element) => {
    if (field.kind === "list") return [...element.querySelectorAll("input")].map((input) => input.value.trim()).filter(Boolean);
    if (field.kind === "files") return undefined;
    if (field.kind === "checkbox") return element.checked || undefined;
    const text = element.value.trim();
    return text === "" ? undefined : field.kind === "number" ? Number(text) : text;
  };
  return Object.fromEntries(spec.fields.map((field) => [field.name, value(field, $(id(spec, field)))]).filter(([, value]) => value !== undefined));
}

// The command of a study in the comments of a text: its flags are the fields.
function commanded(spec, text) {
  const comments = text.split("\n").filter((line) => line.startsWith("#")).map((line) => line.slice(1).trim()).join("\n");
  const [, command] = new RegExp(`stepcast ${spec.name} ((?:.*\\\\\\n)*.*)`).exec(comments) ?? [];
  if (!command) return null;
  const words = command.replaceAll("\\\n", " ").match(/'[^']*'|\S+/g).map((word) => word.replaceAll("'", "").replace(/`.*/, ""));
  const after = ({ name }) => words.flatMap((word, place) => (word === `--${name.replaceAll("_", "-")}` ? [words[place + 1]] : []));
  const found = spec.fields.map((field) => [field.name, field.kind === "list" ? after(field) : after(field)[0]]);
  const given = found.filter(([, value]) => value !== undefined && value.length > 0);
  return given.length > 0 ? Object.fromEntries(given) : null;
}

// Fills the fields as long as nobody has changed them: as asked before, or for the scenario.
export function suit(spec, asked, text, resolved) {
  if ($(`${spec.name}-form`).dataset.touched) return;
  fill(spec, asked ?? { ...spec.suggested?.(resolved), ...commanded(spec, text) });
}

// Marks the field that a problem is about, or none.
export function mark(spec, problem) {
  const element = $(`${spec.name}-form`);
  for (const old of element.querySelectorAll("[aria-invalid]")) {
    old.removeAttribute("aria-invalid");
    old.removeAttribute("aria-describedby");
  }
  $(`${spec.name}-problem`)?.remove();
  const [, key, text] = /^([^:]*)(?:: (.*))?$/s.exec(problem?.key ?? "") ?? [];
  const name = key?.split(".").at(-1).replaceAll("-", "_");
  const field = spec.fields.find((field) => field.name === name);
  if (!field) return;
  const inputs = field.kind === "list" ? [...$(id(spec, field)).querySelectorAll("input")] : [$(id(spec, field))];
  const wrong = inputs.find((input) => input.value.trim() === text) ?? inputs[0];
  if (!wrong) return;
  const words = [problem.detail, problem.remedy].map((part) => part[0].toUpperCase() + part.slice(1).replace(/([^.!?])$/, "$1.")).join(" ");
  wrong.setAttribute("aria-invalid", "true");
  wrong.setAttribute("aria-describedby", `${spec.name}-problem`);
  (wrong.closest(".criterion") ?? wrong).after(make("p", { id: `${spec.name}-problem`, class: "field-problem" }, words));
}
