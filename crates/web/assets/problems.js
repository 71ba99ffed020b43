// Errors, each once: at the chip of the sentence, or at the line of the text; what fails without being wrong stands in its lane.

import { $, make } from "./dom.js";
import * as ask from "./ask.js";
import * as editor from "./editor.js";

const sentence = (text) => (text ? text[0].toUpperCase() + text.slice(1) + (/[.!?]$/.test(text) ? "" : ".") : "");

let show = () => {};

// What the page can do by itself about a problem: set a key, or use another method.
let doing = { "set-key": () => {}, "use-method": () => {} };
export function begin(change, useMethod, showEditor) {
  show = showEditor;
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
  const go = make("button", { type: "button", class: "link" }, "Show where");
  go.addEventListener("click", () => {
    show();
    editor.jump(problem.line, problem.column);
  });
  element.replaceChildren(
    make("p", {}, make("strong", {}, where ? `${where}: ` : ""), sentence(problem.detail ?? problem.message)),
    make("p", { class: "note" }, sentence(problem.remedy), ...[...(problem.line ? [go] : []), ...offers(problem)].flatMap((button) => [" ", button])),
  );
  element.hidden = false;
}

// Marks the chip and the line of the scenario's problem, or none.
export function mark(problem) {
  for (const old of $("sentence").querySelectorAll("[aria-invalid]")) {
    old.removeAttribute("aria-invalid");
    old.removeAttribute("aria-describedby");
  }
  const box = $("problem");
  // Beside the text while that is open, otherwise below the sentence.
  const home = $("toml").hidden ? $("ask") : $("toml");
  if (box.parentElement !== home) home.append(box);
  say(box, problem);
  editor.mark(problem?.line, Boolean(problem));
  const chip = problem && ask.found(problem.key);
  if (!chip) return;
  chip.setAttribute("aria-invalid", "true");
  chip.setAttribute("aria-describedby", "problem");
}
