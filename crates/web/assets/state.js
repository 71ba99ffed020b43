// The state in a link: the scenario and the view, packed into the URL fragment, which is never sent to the server.

const usual = { scenario: "", example: "", view: "forecast", editor: "form", method: "auto", compared: null, timeline: null, search: null };

export const state = { ...usual };

async function through(stream, bytes) {
  const packed = new Blob([bytes]).stream().pipeThrough(stream);
  return new Uint8Array(await new Response(packed).arrayBuffer());
}

export async function link() {
  const kept = Object.fromEntries(Object.entries(state).filter(([key, value]) => value !== usual[key]));
  const bytes = await through(new CompressionStream("deflate-raw"), new TextEncoder().encode(JSON.stringify(kept)));
  const text = btoa(String.fromCharCode(...bytes));
  return `#1.${text.replaceAll("+", "-").replaceAll("/", "_").replaceAll("=", "")}`;
}

// Reads the state from the URL; false if it has none.
export async function restore() {
  const match = /^#1\.([\w-]+)$/.exec(location.hash);
  if (!match) return false;
  try {
    const text = atob(match[1].replaceAll("-", "+").replaceAll("_", "/"));
    const bytes = await through(new DecompressionStream("deflate-raw"), Uint8Array.from(text, (c) => c.charCodeAt(0)));
    const kept = JSON.parse(new TextDecoder().decode(bytes));
    for (const key of Object.keys(usual)) state[key] = kept[key] ?? usual[key];
    return typeof state.scenario === "string" && state.scenario !== "";
  } catch {
    return false;
  }
}

let own = "";
let waiting = 0;

// Writes the state into the URL after a short delay.
export function keep() {
  clearTimeout(waiting);
  waiting = setTimeout(async () => {
    own = await link();
    history.replaceState(null, "", own);
  }, 150);
}

// Calls `changed` when the URL changes by other means.
export function onLink(changed) {
  addEventListener("hashchange", () => location.hash !== own && changed());
}
