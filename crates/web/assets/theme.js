// Light, dark, or the setting of the system, remembered where the browser allows it.

import { $ } from "./dom.js";

const names = ["auto", "light", "dark"];
let now = 0;

function store(write) {
  try {
    return write(localStorage);
  } catch {
    return null;
  }
}

function show() {
  if (now === 0) delete document.documentElement.dataset.theme;
  else document.documentElement.dataset.theme = names[now];
  $("theme").textContent = `Theme: ${names[now]}`;
  $("theme").setAttribute("aria-label", `Theme: ${names[now]}${now === 0 ? ", as the system" : ""}`);
}

export function begin() {
  now = Math.max(0, names.indexOf(store((kept) => kept.getItem("theme"))));
  show();
  $("theme").addEventListener("click", () => {
    now = (now + 1) % names.length;
    store((kept) => kept.setItem("theme", names[now]));
    show();
  });
}
