// The state of a lane in one line of constant height: fresh, stale, running, failed or none; and which question its answer belongs to.

import { $, make } from "./dom.js";
import { say } from "./problems.js";

const words = {
  fresh: () => "",
  running: (shown) => (shown ? `Computing. Still shown: ${name(shown)}.` : "Computing."),
  stale: (shown) => `Out of date: this answers ${name(shown)}.`,
  failed: (shown) => (shown ? `There is no answer. Still shown: ${name(shown)}.` : "There is no answer."),
  none: () => "Nothing is computed yet.",
};

const name = (question) => (question ? `${question[0]} (${question[1]})` : "an earlier question");

// The line at the head of the element with this id, made once.
export function row(id) {
  const panel = $(id);
  const badge = make("span", { class: "badge" });
  const answered = make("span", { class: "answered" });
  const text = make("span", { class: "status-text note" });
  const bar = make("progress", { class: "line", "aria-label": "Progress" });
  const cancel = make("button", { type: "button", class: "cancel" }, "Cancel");
  const again = make("button", { type: "button", class: "again" }, "Compute");
  const failure = make("div", { class: "failure problem", role: "alert", hidden: true });
  const line = make("div", { class: "status" }, badge, answered, text, cancel, again);
  panel.querySelector(".status-place").replaceWith(bar, line, failure);

  // `shown` is the answer that can be seen, `own` whether it answers the question.
  function show(state, { question, shown, own, problem, invalid }) {
    panel.dataset.state = state;
    panel.dataset.own = Boolean(own);
    badge.textContent = state;
    text.textContent = words[state](own ? null : shown?.question);
    again.hidden = state !== "stale" && (state !== "failed" || invalid);
    cancel.hidden = state !== "running";
    bar.removeAttribute("value");
    say(failure, problem);
    const title = (state === "fresh" ? question : shown?.question) ?? null;
    answered.replaceChildren(...(title ? [make("strong", {}, title[0]), ` ${title[1]}`] : []));
    for (const button of panel.querySelectorAll("[data-download]")) button.disabled = !shown?.complete;
  }

  function progress(share, said) {
    if (share === undefined) bar.removeAttribute("value");
    else bar.value = share;
    text.textContent = said;
  }

  return { show, progress, failure, again, listen: (stop) => cancel.addEventListener("click", stop) };
}

// Tells screen readers of a new answer.
export function announce(text) {
  $("said").textContent = text;
}
