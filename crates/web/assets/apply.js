// Buttons that make a row of a table the scenario.

import { make } from "./dom.js";

// The table with this title.
export function table(within, title) {
  const heading = [...within.querySelectorAll("h3, summary")].find((heading) => heading.textContent === title);
  return heading?.closest("section").querySelector("table") ?? null;
}

// `edits`: those of every row; rows without any get no button.
export function offer(table, edits, change, names) {
  if (!table || edits.every((row) => row.length === 0)) return;
  table.tHead?.rows[0]?.append(make("td", {}));
  [...table.tBodies[0].rows].forEach((row, place) => {
    const cell = row.insertCell();
    if (!edits[place]?.length) return;
    const button = make("button", { type: "button", class: "use", "aria-label": `Use: ${names[place]}` }, "Use");
    button.addEventListener("click", () => change(edits[place]));
    cell.append(button);
  });
}
