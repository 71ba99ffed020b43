// Uploads of recordings and models.

import { $, make } from "./dom.js";
import { upload } from "./api.js";

const largest = 64 * 2 ** 20;

export function begin(taken) {
  const drop = $("drop");
  const take = async (file) => {
    if (!file) return;
    const say = (...words) => $("upload-state").replaceChildren(...words);
    if (file.size > largest) return say("The file is larger than 64 MiB: compress it, or use stepcast import.");
    const bar = $("upload-progress");
    bar.hidden = false;
    bar.value = 0;
    say(`Reading ${file.name} …`);
    try {
      const answer = await upload(file, $("batch").value, (share) => (bar.value = share));
      const { overview, file: name } = answer;
      const what = overview?.steps ? `${overview.steps} steps of ${overview.batch} samples` : overview?.layers ? `${overview.layers} layers` : "a fitted artefact";
      const notes = (overview?.notes ?? []).slice(0, 4).map((note) => make("li", {}, note));
      say(`${overview?.name ?? file.name}: ${what}. `, ...(name ? [make("a", { href: `/api/v1/uploads/${name}`, download: name }, "Download it as a file")] : []), make("ul", {}, ...notes));
      taken(answer);
    } catch (problem) {
      say(make("strong", {}, `${problem.detail}. `), problem.remedy ?? "");
    } finally {
      bar.hidden = true;
      $("file").value = "";
    }
  };
  $("file").addEventListener("change", () => take($("file").files[0]));
  for (const kind of ["dragenter", "dragover"]) {
    addEventListener(kind, (event) => {
      if (!event.dataTransfer?.types.includes("Files")) return;
      event.preventDefault();
      drop.classList.add("over");
    });
  }
  addEventListener("dragleave", (event) => event.relatedTarget === null && drop.classList.remove("over"));
  addEventListener("drop", (event) => {
    drop.classList.remove("over");
    if (!event.dataTransfer?.files.length) return;
    event.preventDefault();
    take(event.dataTransfer.files[0]);
  });
}
