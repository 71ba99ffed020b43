// Sharing: a link to what the page shows, and the page as a printed report. Browsers lend the clipboard to pages over HTTPS and of this machine only; elsewhere
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
  const open = (on) => {
    $("sharing").hidden = !on;
    $("share").setAttribute("aria-expanded", on);
  };
  $("share").addEventListener("click", () => open($("sharing").hidden));
  addEventListener("keydown", (event) => event.key === "Escape" && open(false));
  addEventListener("pointerdown", (event) => !event.target.closest("#sharing, #share") && open(false));
  // A report has everything open; only while it is printed.
  let closed = [];
  addEventListener("beforeprint", () => {
    closed = [...document.querySelectorAll("#answer details:not([open])")];
    for (const one of closed) one.open = true;
  });
  addEventListener("afterprint", () => closed.forEach((one) => (one.open = false)));
  $("print").addEventListener("click", () => {
    open(false);
    print();
  });
  $("copy").addEventListener("click", async () => {
    const url = new URL(await link(), location.href).href;
    const done = await copied(url);
    if (!done) return prompt("Copy this link", url);
    $("copy").textContent = "Copied";
    setTimeout(() => ($("copy").textContent = "Copy link"), 1500);
  });
}
