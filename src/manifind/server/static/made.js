// Answers that a job may have to make first, with a bar that says how far it is.

import { finished, get } from "./api.js";
import { h } from "./dom.js";

/** The answer at a path. place: where the bar is shown meanwhile. isCurrent(): whether anybody still waits. */
export async function made(path, parameters, { place, doing, isCurrent }) {
  let found = await get(path, parameters);
  while (isAJob(found) && isCurrent()) {
    await finished(found, waitingIn(place, doing));
    found = await get(path, parameters);
  }
  return found;
}

const isAJob = (found) => typeof found.state === "string" && typeof found.id === "string";

function waitingIn(place, doing) {
  const bar = h("progress", { "aria-label": doing }), words = h("span", {}, `${doing}…`);
  place.replaceChildren(h("p", { role: "status" }, bar, " ", words));
  return (job) => {
    if (job.total > 1) Object.assign(bar, { max: job.total, value: job.done });
    words.textContent = job.state === "waiting" ? "waiting for its turn…" : `${doing}…`;
  };
}
