// Which question the answer belongs to: fresh, stale, running, failed or none.

import { $, make } from "./dom.js";
import { say } from "./problems.js";

const words = {
  fresh: () => "",
  running: (question, shown) => (shown ? `Computing. Below is still the answer for ${name(shown)}.` : "Computing."),
  stale: (question, shown) => `Out of date: this is the answer for ${name(shown)}, not for the question as it is now.`,
  failed: (question, shown) => (shown ? `There is no answer. Below is the one for ${name(shown)}.` : "There is no answer."),
  none: () => "Nothing is computed yet.",
};

const name = (question) => (question ? `${question[0]} (${question[1]})` : "an earlier question");

// `shown` is the answer that can be seen, `own` whether it answers the question.
export function show(state, { question, shown, own, problem }) {
  const results = $("results");
  results.dataset.state = state;
  results.dataset.own = Boolean(own);
  $("badge").textContent = state;
  $("status-text").textContent = words[state](question, own ? null : shown?.question);
  $("again").hidden = state !== "stale" && (state !== "failed" || problem?.type === "urn:stepcast:invalid-scenario");
  $("cancel").hidden = state !== "running";
  if (state !== "running") $("progress").hidden = true;
  say($("failure"), problem);
  const title = shown?.question;
  $("answered").replaceChildren(...(title ? [make("strong", {}, title[0]), ` ${title[1]}`] : []));
  for (const button of document.querySelectorAll("[data-download]")) button.disabled = !shown?.complete;
}

export function progress(share, text) {
  $("progress").hidden = false;
  if (share === undefined) $("bar").removeAttribute("value");
  else $("bar").value = share;
  $("progress-text").textContent = text;
}

// Tells screen readers of a new answer.
export function announce(text) {
  $("said").textContent = text;
}
