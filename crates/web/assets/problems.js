// Errors where they happen: at the field of the form, at the line of the text, and in a bar above the answer.

import { $, make } from "./dom.js";
import * as editor from "./editor.js";

const sentence = (text) => (text ? text[0].toUpperCase() + text.slice(1) + (/[.!?]$/.test(text) ? "" : ".") : "");

// The field of a key, or of the section that it is in.
function field(key) {
  let name = (key ?? "").replaceAll(/\[(\d+)\]/g, ".$1");
  while (name !== "") {
    const found = $("fields").querySelector(`[name="${CSS.escape(name)}"]`);
    if (found) return found;
    name = name.split(".").slice(0, -1).join(".");
  }
  return null;
}

function lead(problem) {
  const control = field(problem.key);
  if (problem.line && (!control || !$("toml").hidden)) {
    $("tab-toml").click();
    editor.jump(problem.line, problem.column);
  } else if (control) {
    $("tab-form").click();
    control.scrollIntoView({ block: "center" });
    control.focus();
  }
}

// What the page can do by itself about a problem: set a key, or use another method.
let doing = { "set-key": () => {}, "use-method": () => {} };
export function begin(change, useMethod) {
  doing = {
    "set-key": (remedy) => change([{ key: remedy.key, value: remedy.value }]),
    "use-method": (remedy) => useMethod(remedy.method),
  };
}

function offers(problem) {
  return (problem.remedies ?? [])
    .filter((remedy) => remedy.kind in doing)
    .map((remedy) => {
      const words = remedy.kind === "set-key" ? `Set ${remedy.key} to ${remedy.value}` : `Use ${remedy.method}`;
      const button = make("button", { type: "button", class: "link" }, words);
      button.addEventListener("click", () => doing[remedy.kind](remedy));
      return button;
    });
}

// Shows a problem in a bar, with a way to where it is.
export function say(element, problem) {
  if (!problem) {
    element.hidden = true;
    element.replaceChildren();
    return;
  }
  const where = [problem.key, problem.line && `line ${problem.line}`].filter(Boolean).join(", ");
  const place = problem.line || field(problem.key);
  const go = make("button", { type: "button", class: "link" }, "Show where");
  go.addEventListener("click", () => lead(problem));
  element.replaceChildren(
    make("p", {}, make("strong", {}, where ? `${where}: ` : ""), sentence(problem.detail ?? problem.message)),
    make("p", { class: "note" }, sentence(problem.remedy), ...[...(place ? [go] : []), ...offers(problem)].flatMap((button) => [" ", button])),
  );
  element.hidden = false;
}

// Marks the field and the line of the scenario's problem, or none.
export function mark(problem) {
  for (const old of $("fields").querySelectorAll("[aria-invalid]")) {
    old.removeAttribute("aria-invalid");
    old.removeAttribute("aria-describedby");
  }
  $("field-problem")?.remove();
  say($("problem"), problem);
  editor.mark(problem?.line, Boolean(problem));
  const control = problem && field(problem.key);
  if (!control) return;
  control.setAttribute("aria-invalid", "true");
  control.setAttribute("aria-describedby", "field-problem");
  control.closest("label").after(make("p", { id: "field-problem", class: "field-problem whole" }, `${sentence(problem.detail)} ${sentence(problem.remedy)}`));
}
