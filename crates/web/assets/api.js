// Requests to the server. Failures are thrown as a Problem with detail, remedy and key.

export class Problem extends Error {
  constructor(details) {
    super(details.detail);
    Object.assign(this, details);
  }
}

const gone = () => new Problem({ offline: true, detail: "the server cannot be reached", remedy: "start it again: stepcast serve" });

async function failed(response) {
  try {
    return new Problem(await response.json());
  } catch {
    return new Problem({ detail: `the server answered ${response.status}`, remedy: "try again" });
  }
}

async function reach(path, options) {
  let response;
  try {
    response = await fetch(`/api/v1/${path}`, options);
  } catch (error) {
    throw error.name === "AbortError" ? error : gone();
  }
  if (!response.ok) throw await failed(response);
  return response;
}

function send(path, body, accept, signal) {
  return reach(path, { method: "POST", headers: { "Content-Type": "application/json", Accept: accept }, body: JSON.stringify(body), signal });
}

export async function get(path) {
  return (await reach(path)).json();
}

export async function post(path, body, signal) {
  return (await send(path, body, "application/json", signal)).json();
}

export async function blob(path, body, accept) {
  return (await send(path, body, accept)).blob();
}

// Calls `receive` with every event, in order, until the stream ends.
export async function stream(path, body, signal, receive) {
  const response = await send(path, body, "application/x-ndjson", signal);
  const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
  let rest = "";
  for (;;) {
    let part;
    try {
      part = await reader.read();
    } catch (error) {
      throw error.name === "AbortError" || signal.aborted ? error : gone();
    }
    if (part.done) return;
    const lines = (rest + part.value).split("\n");
    rest = lines.pop();
    for (const line of lines) {
      if (line === "") continue;
      const event = JSON.parse(line);
      if (event.event === "problem") throw new Problem(event.problem);
      receive(event);
    }
  }
}

// Uploads with XMLHttpRequest, because fetch does not report progress.
export function upload(file, batch, progress) {
  return new Promise((resolve, reject) => {
    const request = new XMLHttpRequest();
    const query = new URLSearchParams({ name: file.name });
    if (batch) query.set("batch", batch);
    request.open("POST", `/api/v1/uploads?${query}`);
    request.setRequestHeader("Content-Type", "application/octet-stream");
    request.responseType = "json";
    request.upload.onprogress = (event) => event.lengthComputable && progress(event.loaded / event.total);
    request.onerror = () => reject(new Problem({ detail: "the upload was cut off", remedy: "the limit is 64 MiB; try again" }));
    request.onload = () => (request.status === 200 ? resolve(request.response) : reject(new Problem(request.response ?? { detail: `the server answered ${request.status}`, remedy: "try again" })));
    request.send(file);
  });
}
