// Lanes of the page: in each one view computes at a time, and a change cancels it at once and starts another. Answers are kept by
// what was asked, and each view knows which of them it shows.

import * as status from "./status.js";

// Answers that are kept.
const most = 40;

const kept = new Map();
const shown = new Map();
let lost = () => {};

export function begin(whenLost) {
  lost = whenLost;
}

// What a view shows: `body` was asked, `data` is the answer.
export function answer(view) {
  return shown.get(view) ?? null;
}

function remember(key, entry) {
  kept.delete(key);
  kept.set(key, entry);
  if (kept.size > most) kept.delete(kept.keys().next().value);
}

function tellDone(view, done) {
  const all = new Set((document.body.dataset.done ?? "").split(" ").filter(Boolean));
  if (done) all.add(view);
  else all.delete(view);
  document.body.dataset.done = [...all].join(" ");
}

// A lane shows in the element with this id.
export function lane(id) {
  const row = status.row(id);
  let wanted = null;
  let job = null;

  function tell(state, problem = wanted?.invalid) {
    const { view, key, question } = wanted;
    const own = shown.get(view)?.key === key && key !== null;
    // What is wrong with the question stands at the question.
    row.show(state, { question, shown: shown.get(view), own, problem: problem === wanted.invalid ? null : problem, invalid: wanted.invalid });
    tellDone(view, state === "fresh");
  }

  function end() {
    job?.abort.abort();
    job = null;
  }

  // The question changes, or turns out to be invalid: nothing that is shown answers it.
  function outdate(invalid = null) {
    end();
    if (!wanted) return;
    Object.assign(wanted, { key: null, invalid });
    tell(invalid ? "failed" : "running");
  }

  function cancel() {
    end();
    tell(shown.has(wanted.view) ? (shown.get(wanted.view).key === wanted.key ? "fresh" : "stale") : "none");
  }

  // Nothing is asked for.
  function leave() {
    end();
    if (wanted) tellDone(wanted.view, false);
    wanted = null;
  }

  function accept(view, entry) {
    shown.set(view.name, entry);
    view.draw(entry);
  }

  // Shows the answer of `view` to the question: a kept one, or one that is computed now, by some views only if `asked`.
  async function look(view, question, asked = false) {
    end();
    if (wanted && wanted.view !== view.name) tellDone(wanted.view, false);
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
    own.progress = (share, words) => job === own && row.progress(share, words);
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
      if (!view.windowed) remember(key, entry);
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

  row.listen(cancel);
  return { look, outdate, cancel, leave, row };
}
