// Runs of the views. There is one at a time: a change cancels it at once and starts another. Answers are kept by what
// was asked, and each view knows which of them it shows.

import * as status from "./status.js";

// Answers that are kept.
const most = 40;
// After this many milliseconds a run shows that it goes on.
const slow = 300;

const kept = new Map();
const shown = new Map();
let wanted = null;
let job = null;
let lost = () => {};

export function begin(whenLost) {
  lost = whenLost;
}

// What a view shows: `body` was asked, `data` is the answer.
export function answer(view) {
  return shown.get(view) ?? null;
}

function tell(state, problem = wanted?.invalid) {
  const { view, key, question } = wanted;
  const own = shown.get(view)?.key === key;
  status.show(state, { question, shown: shown.get(view), own, problem });
  if (state === "fresh") document.body.dataset.done = view;
  else delete document.body.dataset.done;
}

function end() {
  job?.abort.abort();
  clearTimeout(job?.slow);
  job = null;
}

// The question changes, or turns out to be invalid: nothing that is shown answers it.
export function outdate(invalid = null) {
  end();
  if (!wanted) wanted = { view: "forecast" };
  Object.assign(wanted, { key: null, invalid });
  tell(invalid ? "failed" : "running");
}

export function cancel() {
  end();
  tell(shown.has(wanted.view) ? (shown.get(wanted.view).key === wanted.key ? "fresh" : "stale") : "none");
}

function accept(view, entry) {
  shown.set(view.name, entry);
  view.draw(entry);
}

function remember(key, entry) {
  kept.delete(key);
  kept.set(key, entry);
  if (kept.size > most) kept.delete(kept.keys().next().value);
}

// Shows the answer of `view` to the question: a kept one, or one that is computed now, by some views only if `asked`.
export async function look(view, question, asked = false) {
  end();
  const body = view.body();
  const key = body && `${view.name} ${JSON.stringify(view.identity?.(body) ?? body)}`;
  wanted = { view: view.name, key, question, invalid: null };
  if (!body) return tell("none");
  if (shown.get(view.name)?.key === key && shown.get(view.name).complete) return tell("fresh");
  if (kept.has(key)) {
    accept(view, kept.get(key));
    return tell("fresh");
  }
  if (view.manual && !asked) return tell(shown.has(view.name) ? "stale" : "none");
  const abort = new AbortController();
  const own = (job = { abort, signal: abort.signal });
  own.slow = setTimeout(() => status.progress(undefined, "computing"), slow);
  own.progress = (share, words) => {
    if (job !== own) return;
    clearTimeout(own.slow);
    status.progress(share, words);
  };
  // Of parts that come faster than they can be drawn, the last is drawn.
  own.part = (data) => {
    const waiting = own.latest !== undefined;
    own.latest = data;
    if (waiting) return;
    requestAnimationFrame(() => {
      const latest = own.latest;
      own.latest = undefined;
      if (job !== own) return;
      accept(view, { key, body, question, data: latest, complete: false });
      tell("running");
    });
  };
  tell("running");
  try {
    const data = await view.run(body, own);
    if (job !== own) return;
    end();
    const entry = { key, body, question, data, complete: true };
    if (view.identity === undefined) remember(key, entry);
    accept(view, entry);
    tell("fresh");
    status.announce(view.summary?.(entry) ?? "");
  } catch (error) {
    if (job !== own) return;
    end();
    tell("failed", error);
    view.failed?.(error);
    if (error.offline) lost();
  }
}
