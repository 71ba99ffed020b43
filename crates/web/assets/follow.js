// Files that somebody chose: they are sent with a question and not kept in the link, and read again while they grow, where the
// browser lets a page do so.

import { make, several } from "./dom.js";

// Characters of all files together: the server takes 1 MiB.
const most = 900_000;
const pause = 5000;

let texts = [];
let timer = 0;

// Of a long log, its first lines tell when the run began, and its last what it does now.
function cut(text, room) {
  if (text.length <= room) return text;
  const head = text.slice(0, room / 10);
  const tail = text.slice(-0.9 * room);
  return head.slice(0, head.lastIndexOf("\n") + 1) + tail.slice(tail.indexOf("\n") + 1);
}

// What the files add to a question; null without any.
export function body() {
  if (texts.length === 0) return null;
  return texts.length === 1 ? { log: texts[0].text } : { files: texts };
}

// Tells questions with different files apart.
export const identity = ({ log = "", files = [], ...rest }) => ({ ...rest, read: [log.length, log.slice(-200), ...files.map(({ name, text }) => `${name} ${text.length}`)] });

// A control that calls `changed` when files were chosen, or have grown.
export function control(id, changed) {
  const said = make("output", { class: "note" }, "None is chosen.");
  const input = make("input", { type: "file", id, multiple: true, hidden: true, "aria-label": "Files" });
  const button = make("button", { type: "button" }, "Choose files");
  async function take(files, words) {
    const packed = files.find(({ name }) => /\.(gz|tgz|tar|zip)$/.test(name));
    if (packed) return (said.textContent = `${packed.name} is packed: traces of all ranks are read above, as one archive, by “I have a trace”.`);
    texts = await Promise.all(files.map(async (file) => ({ name: file.name, text: cut(await file.text(), most / files.length) })));
    said.textContent = `${files.length > 2 ? several(files.length, "file") : files.map(({ name }) => name).join(", ")}${words}`;
    changed();
  }
  input.addEventListener("change", () => take([...input.files], ""));
  button.addEventListener("click", async () => {
    clearTimeout(timer);
    if (!window.showOpenFilePicker) return input.click();
    let handles;
    try {
      handles = await window.showOpenFilePicker({ multiple: true });
    } catch {
      return;
    }
    let read = "";
    const look = async () => {
      const files = await Promise.all(handles.map((handle) => handle.getFile()));
      const now = files.map(({ size, lastModified }) => `${size} ${lastModified}`).join();
      if (now !== read) await take(files, ", followed while it grows");
      read = now;
      timer = setTimeout(look, pause);
    };
    await look();
  });
  return [button, input, said];
}
