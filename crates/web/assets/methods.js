// Methods side by side; rows appear as methods answer.

import { $, insert, make, several } from "./dom.js";
import { stream } from "./api.js";
import { state } from "./state.js";

export const name = "methods";
let choose;

export function begin(chosen) {
  choose = chosen;
}

export function body() {
  return { scenario: state.scenario };
}

export async function run(body, job) {
  let last;
  await stream("compare", body, job.signal, (event) => {
    if (event.event === "progress") {
      job.part(event);
      job.progress(event.done / event.of, `${event.done} of ${event.of} methods`);
    } else last = event;
  });
  return last;
}

export function draw({ data }) {
  insert($("compared"), data.html.join("\n"));
  const table = $("compared").querySelector("table");
  if (data.methods.length > 0) {
    table.tHead.rows[0].append(make("td", {}));
    data.methods.forEach((method, place) => {
      const button = make("button", { type: "button", class: "use", "aria-label": `Use the method ${method}` }, "Use");
      button.addEventListener("click", () => choose(method));
      table.tBodies[0].rows[place].insertCell().append(button);
    });
  }
  const words = data.comparison?.differences ?? [];
  $("compared").append(make("ul", { class: "note" }, ...words.map((text) => make("li", {}, text))));
}

export function summary({ data }) {
  return `${several(data.methods.length, "method")} answered.`;
}
