// A server that does not answer: the page says so, tries again by itself, and goes on once it is back.

import { $ } from "./dom.js";
import { get } from "./api.js";

const every = 1500;
let trying = 0;

export function lost(again) {
  if (trying) return;
  $("server").hidden = false;
  trying = setInterval(async () => {
    try {
      await get("methods");
    } catch (problem) {
      if (problem.offline) return;
    }
    clearInterval(trying);
    trying = 0;
    $("server").hidden = true;
    again();
  }, every);
}
