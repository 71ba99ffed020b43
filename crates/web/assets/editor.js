// The text of the scenario, with line numbers.

import { $ } from "./dom.js";

let wrong = 0;
let typing = 0;
let typed = () => {};

function number() {
  const lines = $("text").value.split("\n").length;
  $("lines").textContent = Array.from({ length: lines }, (_, place) => (place + 1 === wrong ? `▸${place + 1}` : `${place + 1}`)).join("\n");
  $("lines").scrollTop = $("text").scrollTop;
}

export function begin(changed) {
  typed = changed;
  $("text").addEventListener("scroll", () => ($("lines").scrollTop = $("text").scrollTop));
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
