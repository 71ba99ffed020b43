// Light, dark, or the setting of the system. The theme is neither stored nor part of a link.

import { $ } from "./dom.js";

const names = ["auto", "light", "dark"];
let now = 0;

export function begin() {
  $("theme").addEventListener("click", () => {
    now = (now + 1) % names.length;
    if (now === 0) delete document.documentElement.dataset.theme;
    else document.documentElement.dataset.theme = names[now];
    $("theme").textContent = `Theme: ${names[now]}`;
    $("theme").setAttribute("aria-label", `Theme: ${now === 0 ? "as the system" : names[now]}`);
  });
}
