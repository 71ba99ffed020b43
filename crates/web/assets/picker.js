// A small dialog below a chip: a searchable list, fields, or both.

import { $, make } from "./dom.js";

let opener = null;

export function close(focus = true) {
  const box = $("picker");
  if (box.hidden) return;
  box.hidden = true;
  box.replaceChildren();
  opener?.setAttribute("aria-expanded", "false");
  if (focus) (opener?.isConnected ? opener : document.querySelector(`[data-chip="${opener?.dataset.chip}"]`))?.focus();
}

addEventListener("keydown", (event) => event.key === "Escape" && close());
addEventListener("pointerdown", (event) => !event.target.closest("#picker, [data-chip]") && close(false));

function place(chip) {
  const box = $("picker");
  const at = chip.getBoundingClientRect();
  box.style.left = `${Math.max(8, Math.min(at.left, innerWidth - box.offsetWidth - 8)) + scrollX}px`;
  box.style.top = `${at.bottom + scrollY + 6}px`;
}

// Letters and digits alone, so that "Llama 3 70B" finds "llama3-70b".
const plain = (text) => text.toLowerCase().replaceAll(/[^a-z0-9]/g, "");

// `items`: value, label, note, group, also (other names). `extra`: an item that is always there.
export function list(items, chosen, extra) {
  const input = make("input", { type: "search", placeholder: "Search", "aria-label": "Search", role: "combobox", "aria-expanded": "true", "aria-controls": "picker-list", autocomplete: "off" });
  const box = make("div", { id: "picker-list", class: "picker-list", role: "listbox", "aria-label": "Choices" });
  let shown = [];
  let here = 0;
  const mark = () => {
    shown.forEach((row, place) => row.element.setAttribute("aria-selected", place === here));
    if (shown[here]) {
      input.setAttribute("aria-activedescendant", shown[here].element.id);
      shown[here].element.scrollIntoView({ block: "nearest" });
    }
  };
  const fits = (name) => {
    const wanted = name.split(/\s+/).map(plain).filter(Boolean);
    const whole = plain(name);
    return ({ value, label, note = "", group = "", also = [] }) => {
      const text = plain([value, label, note, group, ...also].join(" "));
      return text.includes(whole) || wanted.every((word) => text.includes(word));
    };
  };
  const fill = () => {
    // A checkpoint of a hub has an owner before its model's name, and behind it how it was trained.
    let name = input.value;
    let found = items.filter(fits(name));
    while (!found.length && /[/-]/.test(name)) {
      name = name.includes("/") ? name.split("/").at(-1) : name.slice(0, name.lastIndexOf("-"));
      found = items.filter(fits(name));
    }
    const whole = plain(name);
    // What begins as typed comes first.
    const rank = ({ value, also = [] }) => ([value, ...also].some((name) => plain(name) === whole) ? 0 : plain(value).startsWith(whole) ? 1 : 2);
    if (whole) found.sort((a, b) => rank(a) - rank(b));
    shown = [...found, ...(extra ? [extra] : [])].map((item, place) => {
      const element = make("div", { role: "option", id: `pick-${place}`, class: "pick-item" }, make("span", {}, item.label), make("span", { class: "note" }, item.note ?? ""));
      element.addEventListener("click", () => (item.act ? item.act() : chosen(item.value)));
      return { element, item };
    });
    const groups = new Set();
    box.replaceChildren(...shown.flatMap(({ element, item }) => {
      const title = whole || !item.group || groups.has(item.group) ? [] : [make("div", { class: "pick-group", role: "presentation" }, item.group)];
      groups.add(item.group);
      return [...title, element];
    }));
    here = 0;
    mark();
  };
  input.addEventListener("input", fill);
  input.addEventListener("keydown", (event) => {
    const way = { ArrowDown: 1, ArrowUp: -1 }[event.key];
    if (way) here = Math.min(Math.max(here + way, 0), shown.length - 1);
    else if (event.key === "Enter") shown[here]?.element.click();
    else return;
    event.preventDefault();
    mark();
  });
  fill();
  return [input, box];
}

// `fields`: name, label, value, placeholder, checkbox. Calls `done` with what they say.
export function fields(all, done, action = "Use") {
  const inputs = all.map(({ name, label, value, placeholder, checkbox }) => {
    const input = make("input", { name, ...(checkbox ? { type: "checkbox" } : { value: value ?? "", placeholder: placeholder ?? "", autocomplete: "off" }) });
    if (checkbox) input.checked = Boolean(value);
    return make("label", { class: checkbox ? "check" : "" }, label, input);
  });
  const form = make("form", { class: "picker-form" }, ...inputs, make("button", { class: "primary" }, action));
  form.addEventListener("submit", (event) => {
    event.preventDefault();
    const read = (input) => (input.type === "checkbox" ? input.checked : input.value.trim());
    done(Object.fromEntries([...form.querySelectorAll("input")].map((input) => [input.name, read(input)])));
  });
  return form;
}

// Values at hand, as buttons.
export function presets(values, chosen) {
  return make("div", { class: "presets" }, ...values.map(([value, words]) => {
    const button = make("button", { type: "button" }, words);
    button.addEventListener("click", () => chosen(value));
    return button;
  }));
}

export function open(chip, title, ...contents) {
  const again = opener === chip && !$("picker").hidden;
  close(false);
  if (again) return;
  opener = chip;
  const box = $("picker");
  box.setAttribute("aria-label", title);
  box.replaceChildren(...contents);
  box.hidden = false;
  chip.setAttribute("aria-expanded", "true");
  place(chip);
  box.querySelector("input, button")?.focus();
}
