// The state of the page: in the history, so that Back undoes a change, and in the URL fragment, which is never sent to
// the server, so that a link shows the same.

const usual = { scenario: "", example: "", view: "", method: "auto", timeline: null, studies: null, choice: null, pins: null };

// Changes of the same thing within this many milliseconds are one step of the history.
const together = 1500;

export const state = { ...usual };

async function through(stream, bytes) {
  const packed = new Blob([bytes]).stream().pipeThrough(stream);
  return new Uint8Array(await new Response(packed).arrayBuffer());
}

export async function link(from = state) {
  const kept = Object.fromEntries(Object.entries(from).filter(([key, value]) => value !== usual[key]));
  const bytes = await through(new CompressionStream("deflate-raw"), new TextEncoder().encode(JSON.stringify(kept)));
  const text = btoa(String.fromCharCode(...bytes));
  return `#1.${text.replaceAll("+", "-").replaceAll("/", "_").replaceAll("=", "")}`;
}

function take(kept) {
  for (const key of Object.keys(usual)) state[key] = kept[key] ?? usual[key];
  return typeof state.scenario === "string" && state.scenario !== "";
}

// Reads the state from the URL: "none", "example" if it names one, "shown", or "broken".
export async function restore() {
  const [, example] = /^#example=([\w-]+)$/.exec(location.hash) ?? [];
  if (example) return take({ example }) ? "shown" : "example";
  const match = /^#1\.([\w-]+)$/.exec(location.hash);
  if (!match) return location.hash.startsWith("#1") ? "broken" : "none";
  try {
    const text = atob(match[1].replaceAll("-", "+").replaceAll("_", "/"));
    const bytes = await through(new DecompressionStream("deflate-raw"), Uint8Array.from(text, (c) => c.charCodeAt(0)));
    return take(JSON.parse(new TextDecoder().decode(bytes))) ? "shown" : "broken";
  } catch {
    return "broken";
  }
}

let last = { step: "", at: 0 };
let begun = false;
let waiting = 0;

// Keeps the state; a change with another `step` than the one before can be undone on its own.
export function keep(step = "") {
  const now = performance.now();
  const kept = structuredClone(state);
  const own = step !== "" && (step !== last.step || now - last.at > together);
  if (step !== "") last = { step, at: now };
  if (own && begun) history.pushState(kept, "");
  else history.replaceState(kept, "");
  begun = true;
  clearTimeout(waiting);
  waiting = setTimeout(async () => history.replaceState(kept, "", await link(kept)), 150);
}

// Calls `changed` when the history or the URL goes to another state, with what the URL says if it is no step of the history.
export function onLink(changed) {
  addEventListener("popstate", async (event) => {
    clearTimeout(waiting);
    last = { step: "", at: 0 };
    changed(event.state && take(event.state) ? "shown" : await restore());
  });
}
