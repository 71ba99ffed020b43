// Methods side by side; each row is filled when its prediction arrives.

import { $, make } from "./dom.js";
import { stream } from "./api.js";
import { keep, state } from "./state.js";

let known = [];

export function offer(methods, again) {
  known = methods;
  const chosen = state.compared ?? methods.filter((method) => !method.refusal).map(({ name }) => name);
  const chip = ({ name, summary, refusal }) => {
    const box = make("input", { type: "checkbox", value: name });
    box.checked = chosen.includes(name) && !refusal;
    box.disabled = Boolean(refusal);
    box.addEventListener("change", () => {
      state.compared = [...$("chosen").querySelectorAll("input:checked")].map((box) => box.value);
      keep();
      again();
    });
    return make("label", { title: refusal ?? summary }, box, name);
  };
  const legend = $("chosen").querySelector("legend");
  $("chosen").replaceChildren(legend, ...methods.map(chip));
}

function row(method) {
  const cells = Array.from({ length: 4 }, (_, place) => make("td", place < 3 ? { class: "number" } : {}, place === 0 ? "…" : ""));
  return make("tr", { "data-method": method.name }, make("td", {}, method.name), ...cells);
}

function refused(tr, words) {
  tr.replaceChildren(tr.firstChild, make("td", { class: "words", colspan: "4" }, words));
}

export async function run(job) {
  const boxes = [...$("chosen").querySelectorAll("input:checked")].map((box) => box.value);
  const rows = new Map(known.map((method) => [method.name, row(method)]));
  const asked = known.filter(({ name }) => boxes.includes(name));
  const others = known.filter(({ refusal }) => refusal);
  for (const { name, refusal } of others) refused(rows.get(name), refusal);
  $("compared").replaceChildren(...[...asked, ...others].map(({ name }) => rows.get(name)));
  let done = 0;
  const one = async ({ name }) => {
    const tr = rows.get(name);
    try {
      await stream("predict", { scenario: state.scenario, method: name }, job.signal, (event) => {
        if (event.event === "progress") job.progress((done + event.done / event.of) / asked.length, `${name}, ${event.workers} workers`);
        if (event.event !== "answer") return;
        const { step, throughput, scaling_factor: scaling, bottleneck } = event.brief;
        [step, throughput, scaling, bottleneck].forEach((text, place) => (tr.children[place + 1].textContent = text));
      });
    } catch (error) {
      if (error.name === "AbortError") throw error;
      refused(tr, `${error.detail}; ${error.remedy}`);
    }
    done += 1;
  };
  await Promise.all(asked.map(one));
}
