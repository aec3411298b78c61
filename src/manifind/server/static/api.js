// The API of the server, as functions; the only file that speaks to it.

const token = readToken();

function readToken() {
  const given = new URLSearchParams(location.hash.slice(1)).get("token");
  if (given) {
    sessionStorage.setItem("token", given);
    history.replaceState(null, "", location.pathname + location.search);  // not to be shared with the address
  }
  return sessionStorage.getItem("token");
}

export class Problem extends Error {
  constructor(status, said) {
    super(said.error ?? `the server answered with ${status}`);
    this.status = status;
    this.hint = said.hint ?? "";
  }
}

function address(path, parameters = {}) {
  const given = Object.entries(parameters).filter(([, value]) => value !== null && value !== undefined && value !== "");
  const query = new URLSearchParams(given.map(([name, value]) => [name, String(value)]));
  return `/api/v1/${path}${given.length ? `?${query}` : ""}`;
}

async function ask(path, parameters, options = {}) {
  const headers = { ...(options.headers ?? {}), ...(token ? { authorization: `Bearer ${token}` } : {}) };
  const response = await fetch(address(path, parameters), { ...options, headers, credentials: "omit" });
  if (!response.ok) {
    const said = await response.json().catch(() => ({}));
    throw new Problem(response.status, said);
  }
  return response;
}

export const get = async (path, parameters, signal) => (await ask(path, parameters, { signal })).json();

export async function send(method, path, { parameters, json, picture } = {}) {
  const options = { method, headers: {} };
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

export async function finished(job, heard) {
  let state = job;
  while (state.state === "waiting" || state.state === "working") {
    heard?.(state);
    await new Promise((resolve) => setTimeout(resolve, 400));
    state = await get(`jobs/${state.id}`);
  }
  if (state.state === "failed") throw new Problem(0, state);
  return state;
}
