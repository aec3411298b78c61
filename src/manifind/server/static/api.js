// The API of the server, as functions; the only file that speaks to it.

const KEPT = "token";  // in the storage of this tab
const BETWEEN = 400;  // milliseconds between two looks at a job
const MOST_MISSED = 30;  // looks in a row that may fail: a server that is started anew goes on with its jobs
const MOST_HELD = 100 << 20;  // bytes of a download that the page holds; what is larger goes to the disk by a link

let token = readToken();

function readToken() {
  const given = new URLSearchParams(location.hash.slice(1)).get("token");
  if (given) {
    sessionStorage.setItem(KEPT, given);
    history.replaceState(history.state, "", location.pathname + location.search);  // not to be shared with the address
  }
  return sessionStorage.getItem(KEPT);
}

/** Take a token that was typed; kept as long as the tab is open, and never in the address. */
export function giveToken(typed) {
  token = typed;
  sessionStorage.setItem(KEPT, typed);
}

/** What the server refused, or that it did not answer (status 0). */
class Problem extends Error {
  constructor(status, said) {
    super(said.error || `the server answered with ${status}`);
    this.status = status;
    this.hint = said.hint ?? "";
  }
}

const AWAY = { error: "The server does not answer", hint: "It may have been stopped, or this machine may be offline. Start it, and try again." };

const address = (path, parameters = {}) => {
  const given = Object.entries(parameters).filter(([, value]) => value !== null && value !== undefined && value !== "");
  const query = new URLSearchParams(given.map(([name, value]) => [name, String(value)]));
  return `api/v1/${path}${given.length ? `?${query}` : ""}`;
};

async function ask(path, parameters, options = {}) {
  const headers = { ...(options.headers ?? {}), ...(token ? { authorization: `Bearer ${token}` } : {}) };
  const response = await fetch(address(path, parameters), { ...options, headers, credentials: "omit" }).catch((error) => {
    throw error.name === "AbortError" ? error : new Problem(0, AWAY);
  });
  if (response.ok) return response;
  if (response.status === 401) dispatchEvent(new Event("token"));
  throw new Problem(response.status, await response.json().catch(() => ({})));
}

export const get = async (path, parameters, signal) => (await ask(path, parameters, { signal })).json();

export async function send(method, path, { parameters, json, picture, signal } = {}) {
  const options = { method, headers: {}, signal };
  if (json !== undefined) {
    options.body = JSON.stringify(json);
    options.headers["content-type"] = "application/json";
  } else if (picture) {
    options.body = picture;
    options.headers["content-type"] = picture.type.startsWith("image/") ? picture.type : "application/octet-stream";
  }
  return (await ask(path, parameters, options)).json();
}

/** Places of all items, or the job that makes them. */
export async function getMap(space) {
  const response = await ask("map", { space });
  if (response.status === 202) return { job: await response.json() };
  return { points: new Float32Array(await response.arrayBuffer()) };
}

/** Show a picture in an image: by its address, or, where a token is needed, by its bytes. */
export function showPicture(image, path, parameters) {
  if (!token) {
    image.src = address(path, parameters);
    return;
  }
  ask(path, parameters)
    .then((response) => response.blob())
    .then((blob) => {
      image.addEventListener("load", () => URL.revokeObjectURL(image.src), { once: true });
      image.src = URL.createObjectURL(blob);
    })
    .catch(() => image.dispatchEvent(new Event("error")));
}

/** Save a file of the server under a name; a Problem where there is none. */
export async function download(path, name, parameters) {
  const response = await ask(path, parameters);
  if (!token && Number(response.headers.get("content-length")) > MOST_HELD) {
    response.body.cancel();
    saveAs(address(path, parameters), name);
    return;
  }
  const held = URL.createObjectURL(await response.blob());
  saveAs(held, name);
  setTimeout(() => URL.revokeObjectURL(held), 60_000);
}

function saveAs(href, name) {
  const link = document.createElement("a");
  Object.assign(link, { href, download: name });
  link.click();
}

/** The job once it is done; heard(job) is told where it stands. A server that is away for a moment is waited for. */
export async function finished(job, heard) {
  let state = job, missed = 0;
  while (state.state === "waiting" || state.state === "working") {
    heard?.(state);
    await new Promise((resolve) => setTimeout(resolve, BETWEEN * (1 + missed)));
    try {
      state = await get(`jobs/${state.id}`);
      missed = 0;
    } catch (problem) {
      missed += 1;
      if (problem.status || missed > MOST_MISSED) throw problem;
    }
  }
  if (state.state === "failed") throw new Problem(-1, state);
  return state;
}
