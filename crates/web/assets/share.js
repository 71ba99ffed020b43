// A link to what the page shows. Browsers lend the clipboard to pages over HTTPS and of this machine only; elsewhere
// the link is copied as a selection, or shown.

import { $, make } from "./dom.js";
import { link } from "./state.js";

async function copied(text) {
  try {
    await navigator.clipboard.writeText(text);
    return true;
  } catch {
    const field = make("textarea", { "aria-hidden": "true", class: "off-screen" });
    field.value = text;
    document.body.append(field);
    field.select();
    const done = document.execCommand("copy");
    field.remove();
    return done;
  }
}

export function begin() {
  $("copy").addEventListener("click", async () => {
    const url = new URL(await link(), location.href).href;
    const done = await copied(url);
    if (!done) return prompt("Copy this link", url);
    $("copy").textContent = "Copied";
    setTimeout(() => ($("copy").textContent = "Copy link"), 1500);
  });
}
