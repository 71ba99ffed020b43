// The text of the scenario, with line numbers and colours.

import { $, make } from "./dom.js";

let wrong = 0;
let typing = 0;
let typed = () => {};

const tokens = /(?<comment>#.*)|(?<section>^\s*\[.*?\](?=\s*(?:#|$)))|(?<key>^\s*[\w.-]+(?=\s*=))|(?<string>"(?:[^"\\]|\\.)*"?|'[^']*'?)|(?<figure>\b[\d.][\w.+-]*|\btrue\b|\bfalse\b)/g;

// The text in colours, behind what is typed; longer ones are left plain.
function paint() {
  const text = $("text").value;
  const parts = (line) => {
    const found = [];
    let from = 0;
    for (const match of line.matchAll(tokens)) {
      const [kind] = Object.entries(match.groups).find(([, value]) => value !== undefined);
      found.push(line.slice(from, match.index), make("span", { class: `t-${kind}` }, match[0]));
      from = match.index + match[0].length;
    }
    return [...found, line.slice(from), "\n"];
  };
  $("paint").replaceChildren(...(text.length > 60_000 ? [text] : text.split("\n").flatMap(parts)));
}

function scrolled() {
  $("lines").scrollTop = $("paint").scrollTop = $("text").scrollTop;
  $("paint").scrollLeft = $("text").scrollLeft;
}

function number() {
  paint();
  const lines = $("text").value.split("\n").length;
  $("lines").textContent = Array.from({ length: lines }, (_, place) => (place + 1 === wrong ? `▸${place + 1}` : `${place + 1}`)).join("\n");
  scrolled();
}

export function begin(changed) {
  typed = changed;
  $("text").addEventListener("scroll", scrolled);
  $("text").addEventListener("input", () => {
    number();
    clearTimeout(typing);
    typing = setTimeout(() => {
      typing = 0;
      typed($("text").value);
    }, 200);
  });
}

// Takes what is being typed at once.
export function finish() {
  if (!typing) return false;
  clearTimeout(typing);
  typing = 0;
  typed($("text").value);
  return true;
}

// Shows a text, unless another one is being typed.
export function show(text) {
  if (typing) return;
  if ($("text").value !== text) $("text").value = text;
  number();
}

export function mark(line, invalid) {
  wrong = line ?? 0;
  if (invalid) $("text").setAttribute("aria-invalid", "true");
  else $("text").removeAttribute("aria-invalid");
  number();
}

export function jump(line, column = 1) {
  const text = $("text");
  const before = text.value.split("\n").slice(0, line - 1).join("\n").length + (line > 1 ? 1 : 0);
  const end = text.value.indexOf("\n", before);
  text.focus();
  text.setSelectionRange(before + column - 1, end < 0 ? text.value.length : end);
  const height = parseFloat(getComputedStyle(text).lineHeight);
  text.scrollTop = Math.max(0, (line - 4) * height);
}
