// Uploads of recordings and models. A batch that a recording does not contain is asked for where it is missing.

import { $, insert, make, several } from "./dom.js";
import { upload } from "./api.js";

const largest = 64 * 2 ** 20;
let taken;

const say = (...words) => $("upload-state").replaceChildren(...words);

function askForBatch(file, problem) {
  const input = make("input", { type: "number", min: "1", inputmode: "numeric", required: true });
  const form = make("form", { class: "row" }, make("label", {}, "Samples of one step", input), make("button", { class: "primary" }, "Go on"));
  form.addEventListener("submit", (event) => {
    event.preventDefault();
    take(file, input.value);
  });
  say(make("p", {}, make("strong", {}, `${file.name}: `), `${problem.detail}.`), form);
  input.focus();
}

function describe(file, { overview, file: name, slow }) {
  const what = overview?.steps ? `${several(overview.steps, "step")} of ${several(overview.batch, "sample")}` : overview?.layers ? several(overview.layers, "layer") : "a fitted artefact";
  const notes = (overview?.notes ?? []).slice(0, 4).map((note) => make("li", {}, note));
  const called = name && file.name.replace(/\.\w+(\.gz)?$/, "") + name.slice(name.lastIndexOf("."));
  const link = name ? [make("a", { href: `/api/v1/uploads/${name}`, download: called }, "Download it as a file")] : [];
  say(`${file.name}: ${what}. `, ...link, make("ul", {}, ...notes));
  if (!slow) return;
  const table = make("div", {});
  insert(table, slow.html);
  $("upload-state").prepend(make("p", { class: "sentence" }, slow.summary), table);
}

async function take(file, batch) {
  if (!file) return;
  if (file.size > largest) return say("The file is larger than 64 MiB: compress it, or use stepcast import.");
  const bar = $("upload-progress");
  bar.hidden = false;
  bar.value = 0;
  say(`Reading ${file.name} …`);
  try {
    const answer = await upload(file, batch, (share) => (bar.value = share));
    describe(file, answer);
    taken(answer);
  } catch (problem) {
    if (problem.type === "urn:stepcast:unknown-batch") askForBatch(file, problem);
    else say(make("strong", {}, `${file.name}: ${problem.detail}. `), problem.remedy ?? "");
  } finally {
    bar.hidden = true;
    $("file").value = "";
  }
}

// `whenTaken` gets the answer; `whenSeen` is called when a file comes over the page.
export function begin(whenTaken, whenSeen) {
  taken = whenTaken;
  const drop = $("drop");
  $("file").addEventListener("change", () => take($("file").files[0]));
  for (const kind of ["dragenter", "dragover"]) {
    addEventListener(kind, (event) => {
      if (!event.dataTransfer?.types.includes("Files")) return;
      event.preventDefault();
      if (drop.hidden) whenSeen();
      drop.classList.add("over");
    });
  }
  addEventListener("dragleave", (event) => event.relatedTarget === null && drop.classList.remove("over"));
  addEventListener("drop", (event) => {
    drop.classList.remove("over");
    if (!event.dataTransfer?.files.length) return;
    event.preventDefault();
    if (drop.hidden) whenSeen();
    take(event.dataTransfer.files[0]);
  });
}
