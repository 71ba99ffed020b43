// Elements and their contents.

export const $ = (id) => document.getElementById(id);

// "1 worker", "3 workers".
export const several = (number, what) => `${number.toLocaleString("en")} ${what}${number === 1 ? "" : "s"}`;

export function make(tag, attributes = {}, ...children) {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (name in element && typeof value !== "string") element[name] = value;
    else element.setAttribute(name, value);
  }
  element.append(...children);
  return element;
}

let inserted = 0;

// HTML and SVG come from this server, which escapes every text in them; the content security policy forbids scripts in
// them. Plots get patterns of their own: those of a hidden plot are not drawn.
export function insert(element, html) {
  inserted += 1;
  element.innerHTML = html.replaceAll(/(id="|url\(#)(series-\d+|hatch)(?=["\)])/g, `$1p${inserted}-$2`);
}

export function save(name, content, type) {
  const url = URL.createObjectURL(content instanceof Blob ? content : new Blob([content], { type }));
  const anchor = make("a", { href: url, download: name });
  anchor.click();
  setTimeout(() => URL.revokeObjectURL(url), 10_000);
}

// Tabs that follow the keyboard pattern of ARIA: arrow keys move, only the selected tab can be reached with Tab. The selected one closes
// its panel.
export function tabs(list, chosen) {
  const all = [...list.querySelectorAll("[role=tab]")];
  // Without a tab, all panels are closed.
  const select = (tab, tell = true) => {
    for (const other of all) {
      const on = other === tab;
      other.setAttribute("aria-selected", on);
      other.tabIndex = on || (!tab && other === all[0]) ? 0 : -1;
      $(other.getAttribute("aria-controls")).hidden = !on;
    }
    if (tell) chosen(tab?.getAttribute("aria-controls") ?? "");
  };
  list.addEventListener("click", (event) => event.target.role !== null && all.includes(event.target) && select(event.target.getAttribute("aria-selected") === "true" ? null : event.target));
  list.addEventListener("keydown", (event) => {
    const shown = all.filter((tab) => !tab.hidden);
    const here = shown.indexOf(event.target);
    const to = { ArrowRight: here + 1, ArrowLeft: here - 1, Home: 0, End: shown.length - 1 }[event.key];
    if (here < 0 || to === undefined) return;
    event.preventDefault();
    const tab = shown[(to + shown.length) % shown.length];
    tab.focus();
    select(tab);
  });
  return (name) => select(all.find((tab) => tab.getAttribute("aria-controls") === name) ?? null, false);
}
