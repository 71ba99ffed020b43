// Elements and their contents.

export const $ = (id) => document.getElementById(id);

export function make(tag, attributes = {}, ...children) {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (name in element && typeof value !== "string") element[name] = value;
    else element.setAttribute(name, value);
  }
  element.append(...children);
  return element;
}

// HTML and SVG come from this server, which escapes every text in them; the content security policy forbids scripts in
// them.
export function insert(element, html) {
  element.innerHTML = html;
}

export function save(name, content, type) {
  const url = URL.createObjectURL(content instanceof Blob ? content : new Blob([content], { type }));
  const anchor = make("a", { href: url, download: name });
  anchor.click();
  setTimeout(() => URL.revokeObjectURL(url), 10_000);
}

// Tabs that follow the keyboard pattern of ARIA: arrow keys move, only the selected tab can be reached with Tab.
export function tabs(list, chosen) {
  const all = [...list.querySelectorAll("[role=tab]")];
  const select = (tab, tell = true) => {
    for (const other of all) {
      const on = other === tab;
      other.setAttribute("aria-selected", on);
      other.tabIndex = on ? 0 : -1;
      $(other.getAttribute("aria-controls")).hidden = !on;
    }
    if (tell) chosen(tab.getAttribute("aria-controls"));
  };
  list.addEventListener("click", (event) => event.target.role !== null && all.includes(event.target) && select(event.target));
  list.addEventListener("keydown", (event) => {
    const here = all.indexOf(event.target);
    const to = { ArrowRight: here + 1, ArrowLeft: here - 1, Home: 0, End: all.length - 1 }[event.key];
    if (here < 0 || to === undefined) return;
    event.preventDefault();
    const tab = all[(to + all.length) % all.length];
    tab.focus();
    select(tab);
  });
  return (name) => select(all.find((tab) => tab.getAttribute("aria-controls") === name) ?? all[0], false);
}
