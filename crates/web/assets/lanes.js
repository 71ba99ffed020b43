// Gestures over the lanes of the timeline: each calls `look` with the time that is to be seen.

// Pixels that a pointer may move in a click.
const still = 4;

// `view`: shown() is [from, to], span() the whole run, axis() the ends of the time axis as shares of the width. `choose` takes a time and
// a height, `measure` the two ends of a range.
export function listen(lanes, view, look, choose, measure) {
  const area = () => {
    const { left, width } = lanes.getBoundingClientRect();
    const [from, to] = view.axis();
    return { left: left + from * width, width: (to - from) * width };
  };
  const share = (x) => Math.min(Math.max((x - area().left) / area().width, 0), 1);
  const zoom = (factor, at = 0.5) => {
    const [from, to] = view.shown();
    const middle = from + at * (to - from);
    look(middle - at * factor * (to - from), middle + (1 - at) * factor * (to - from));
  };
  const shift = (part) => {
    const [from, to] = view.shown();
    look(from + part * (to - from), to + part * (to - from));
  };
  const moves = { left: () => shift(-1 / 3), right: () => shift(1 / 3), in: () => zoom(0.5), out: () => zoom(2), all: () => look(0, view.span()) };
  const keys = { ArrowLeft: "left", a: "left", ArrowRight: "right", d: "right", w: "in", "+": "in", "=": "in", s: "out", "-": "out", 0: "all", Home: "all" };
  lanes.addEventListener("keydown", (event) => {
    const what = keys[event.key] ?? keys[event.key.toLowerCase()];
    if (!what || event.ctrlKey || event.metaKey || event.altKey) return;
    event.preventDefault();
    moves[what]();
  });
  lanes.addEventListener("wheel", (event) => {
    if (!event.ctrlKey && !event.metaKey && !event.altKey) return;
    event.preventDefault();
    zoom(Math.exp(event.deltaY / 300), share(event.clientX));
  }, { passive: false });

  // Pointers that are down, where they are now; with two of them, the picture is stretched between them.
  const down = new Map();
  let start = null;
  const begin = (measures) => {
    const xs = [...down.values()].map(share);
    start = { xs, window: view.shown(), moved: start?.moved ?? false, measures: measures ?? start?.measures };
  };
  lanes.addEventListener("pointerdown", (event) => {
    if (event.button !== 0) return;
    down.set(event.pointerId, event.clientX);
    begin(event.shiftKey);
    lanes.classList.add("dragging");
  });
  lanes.addEventListener("pointermove", (event) => {
    if (!down.has(event.pointerId)) return;
    const before = down.get(event.pointerId);
    if (!start.moved && Math.abs(event.clientX - before) < still) return;
    if (!start.moved) lanes.setPointerCapture(event.pointerId);
    start.moved = true;
    down.set(event.pointerId, event.clientX);
    const [from, to] = start.window;
    const xs = [...down.values()].map(share);
    const times = start.xs.map((at) => from + at * (to - from));
    if (start.measures) return measure([times[0], from + xs[0] * (to - from)]);
    const wide = xs.length > 1 && Math.abs(xs[1] - xs[0]) > 0.01 ? (times[1] - times[0]) / (xs[1] - xs[0]) : to - from;
    if (wide > 0) look(times[0] - xs[0] * wide, times[0] + (1 - xs[0]) * wide);
  });
  for (const end of ["pointerup", "pointercancel"]) {
    lanes.addEventListener(end, (event) => {
      if (!down.delete(event.pointerId)) return;
      const [from, to] = view.shown();
      if (end === "pointerup" && !start.moved) choose(from + share(event.clientX) * (to - from), event.clientY - lanes.getBoundingClientRect().top);
      if (down.size > 0) return begin();
      start = null;
      lanes.classList.remove("dragging");
    });
  }
  return (what) => moves[what]();
}
