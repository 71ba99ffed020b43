// Plots: one tooltip and crosshair for pointer, touch and keyboard, and downloads of each plot.

import { $, make, save } from "./dom.js";
import { announce } from "./status.js";

const space = "http://www.w3.org/2000/svg";
// Points whose middles are this near to each other share a tooltip, and most of them that it lists.
const near = 2;
const most = 9;

let held = null;

function line(svg) {
  const element = document.createElementNS(space, "line");
  element.setAttribute("class", "crosshair");
  svg.querySelector(".plot")?.append(element);
  return element;
}

// The middle of every point, in the units of the drawing.
function located(plot) {
  plot.places ??= plot.points.map((point) => {
    const { x, y, width, height } = point.getBBox();
    return { point, x: x + width / 2, y: y + height / 2 };
  });
  return plot.places;
}

export function hide() {
  $("tip").hidden = true;
  if (held) for (const one of held.lines) one.remove();
  held = null;
}

// Shows what is at a point, with its action if it was chosen.
function show(plot, place, chosen) {
  hide();
  const { svg } = plot;
  const same = located(plot).filter((other) => Math.abs(other.x - place.x) < near);
  const texts = (same.length > most ? [place] : same).map((other) => other.point.dataset.tip);
  const [, , width, height] = svg.getAttribute("viewBox").split(" ").map(Number);
  const lines = [line(svg), line(svg)];
  Object.entries({ x1: place.x, x2: place.x, y1: 0, y2: height }).forEach(([name, value]) => lines[0].setAttribute(name, value));
  Object.entries({ x1: 0, x2: width, y1: place.y, y2: place.y }).forEach(([name, value]) => lines[1].setAttribute(name, value));
  held = { plot, place, lines };
  const action = plot.action?.(place.point);
  const button = chosen && action ? [make("button", { type: "button", class: "use" }, action.words)] : [];
  button[0]?.addEventListener("click", () => (hide(), action.act()));
  const tip = $("tip");
  tip.replaceChildren(...texts.map((text) => make("p", {}, text)), ...button);
  tip.hidden = false;
  const box = svg.getBoundingClientRect();
  const at = [box.left + (place.x / width) * box.width, box.top + (place.y / height) * box.height];
  const own = tip.getBoundingClientRect();
  tip.style.left = `${Math.max(8, Math.min(at[0] + 14, innerWidth - own.width - 8))}px`;
  tip.style.top = `${Math.max(8, at[1] - own.height - 12)}px`;
  return texts.join("; ");
}

function nearest(plot, event) {
  const box = plot.svg.getBoundingClientRect();
  const scale = plot.svg.viewBox.baseVal.width / box.width;
  const [x, y] = [(event.clientX - box.left) * scale, (event.clientY - box.top) * scale];
  const far = (place) => Math.hypot(place.x - x, (place.y - y) / 2);
  return located(plot).reduce((best, place) => (best && far(best) <= far(place) ? best : place), null);
}

function step(plot, way) {
  const order = [...located(plot)].sort((a, b) => a.x - b.x || b.y - a.y);
  const columns = order.filter((place, index) => index === 0 || place.x - order[index - 1].x >= near);
  const now = held?.plot === plot ? columns.findIndex((place) => Math.abs(place.x - held.place.x) < near) : way > 0 ? -1 : columns.length;
  const next = columns[Math.min(Math.max(now + way, 0), columns.length - 1)];
  if (next) announce(show(plot, next, true));
}

function listen(drawing, plot) {
  drawing.onpointermove = (event) => {
    if (event.pointerType === "touch" || $("tip").querySelector("button")) return;
    const place = nearest(plot, event);
    if (place) show(plot, place, false);
  };
  drawing.onpointerleave = (event) => event.pointerType !== "touch" && !$("tip").querySelector("button") && hide();
  drawing.onclick = (event) => {
    if (event.target.closest("button")) return;
    const place = nearest(plot, event);
    if (place) show(plot, place, true);
  };
  drawing.onkeydown = (event) => {
    if (event.target.closest("button")) return;
    const way = { ArrowLeft: -1, ArrowRight: 1 }[event.key];
    if (way) step(plot, way);
    else if (event.key === "Escape") hide();
    else if (event.key === "Enter" && held?.plot === plot) plot.action?.(held.place.point)?.act();
    else return;
    event.preventDefault();
  };
  drawing.onblur = (event) => $("tip").contains(event.relatedTarget) || hide();
}

async function picture(text, svg) {
  const [, , width, height] = svg.getAttribute("viewBox").split(" ").map(Number);
  const url = URL.createObjectURL(new Blob([text], { type: "image/svg+xml" }));
  const image = new Image();
  image.src = url;
  await image.decode();
  const canvas = make("canvas", { width: 2 * width, height: 2 * height });
  canvas.getContext("2d").drawImage(image, 0, 0, 2 * width, 2 * height);
  URL.revokeObjectURL(url);
  return new Promise((resolve) => canvas.toBlob(resolve));
}

function tools(drawing, svg, text) {
  const name = drawing.dataset.name ?? drawing.id;
  const button = (kind, content) => {
    const element = make("button", { type: "button", class: "link", "data-plot": kind, "aria-label": `Download ${name} as ${kind.toUpperCase()}` }, kind.toUpperCase());
    element.addEventListener("click", async () => save(`${name}.${kind}`, await content()));
    return element;
  };
  return make("div", { class: "plot-tools" }, button("svg", () => new Blob([text], { type: "image/svg+xml" })), button("png", () => picture(text, svg)));
}

// Gives the drawings within an element their tooltip and downloads. `action` says what can be done with a point.
export function enliven(within, action) {
  hide();
  for (const drawing of within.querySelectorAll(".drawing")) {
    const svg = drawing.querySelector("svg");
    if (!svg) continue;
    const copy = svg.cloneNode(true);
    copy.dataset.theme = document.documentElement.dataset.theme ?? (matchMedia("(prefers-color-scheme: dark)").matches ? "dark" : "light");
    const text = new XMLSerializer().serializeToString(copy);
    const points = [...svg.querySelectorAll("g")].filter((group) => group.firstElementChild?.tagName === "title");
    for (const point of points) {
      point.dataset.tip = point.firstElementChild.textContent;
      point.firstElementChild.remove();
    }
    listen(drawing, { svg, points, action });
    drawing.append(tools(drawing, svg, text));
  }
}
