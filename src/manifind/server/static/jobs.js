// What the server is doing: a slim bar at the top of every view for each long job, and a word when it is over.

import { get, send } from "./api.js";
import { count, h } from "./dom.js";
import { say, sayProblem } from "./toast.js";

const IDLE = 5_000, BUSY = 500;  // milliseconds between two looks
const LONG = { index: "Indexing the folder", make: "Making the collection", refit: "Fitting anew", map: "Laying out the map",
  clusters: "Finding groups", duplicates: "Looking for duplicates", export: "Exporting" };
const STAGES = { reading: "looking at the files", pictures: "describing pictures", graph: "building the graph",
  walks: "walking along it", positives: "seeing where walks end", training: "training", features: "computing features",
  saving: "writing the collection", map: "placing items" };
const INDEXED = { added: "added", changed: "changed", moved: "moved", removed: "removed", kept: "kept as they were" };
const OVER = { index: indexed, make: indexed, refit: () => "Fitted anew." };  // what nobody else tells of

const place = h("section", { id: "jobs", "aria-label": "What is being done", hidden: true });
document.querySelector("header").after(place);

let running = new Map(), timer = 0, isLooking = false;

/** Where a job stands, in words; never "0 of 0". */
export function progressInWords({ state, stage, done, total, note, seconds_left: left }) {
  if (state === "waiting") return "waiting for its turn";
  if (!stage || !total) return "starting";
  const words = STAGES[stage] ?? stage;
  if (total === 1) return words;
  const n = `${done.toLocaleString("en")} of ${total.toLocaleString("en")}`;
  return [`${words}: ${n}`, note, left === null || left === undefined ? "" : timeLeft(left)].filter(Boolean).join(", ");
}

function timeLeft(seconds) {
  if (seconds < 60) return `about ${count(Math.max(1, seconds), "second")} left`;
  if (seconds < 5400) return `about ${count(Math.round(seconds / 60), "minute")} left`;
  return `about ${count(Math.round(seconds / 3600), "hour")} left`;
}

/** Start a job that is followed here, whatever becomes of the view that started it. */
export async function startJob(path, json) {
  const job = await send("POST", path, { json });
  running.set(job.id, job);
  show([...running.values()]);
  look();
  return job;
}

export const isRunning = (kind) => [...running.values()].some((job) => job.kind === kind);

/** A button that starts a job, and waits while one of its kind runs; it keeps the focus meanwhile. */
export function jobButton(kind, text, run, rest = {}) {
  const press = async (event) => {
    if (event.currentTarget.getAttribute("aria-disabled") === "true") return;
    try {
      await run();
    } catch (problem) {
      sayProblem(problem);
    }
  };
  return h("button", { type: "button", "data-runs": kind, "aria-disabled": String(isRunning(kind)), onclick: press, ...rest }, text);
}

async function look() {
  if (isLooking) return;
  isLooking = true;
  clearTimeout(timer);
  try {
    if (!document.hidden && !document.querySelector("form.token")) update((await get("jobs")).jobs);
  } catch { /* what the view itself asks for says so */ }
  isLooking = false;
  timer = setTimeout(look, running.size ? BUSY : IDLE);
}

/** jobs: all that are known; those that ran at the last look and do no more are over. */
function update(jobs) {
  const before = running;
  running = new Map(jobs.filter(isAtWork).map((job) => [job.id, job]));
  const over = [...before.keys()].filter((id) => !running.has(id)).map((id) => jobs.find((job) => job.id === id) ?? before.get(id));
  show([...running.values()]);
  over.filter((job) => job.kind in OVER).forEach(tellOver);
}

const isAtWork = ({ state }) => state === "waiting" || state === "working";

function tellOver(job) {
  const about = job.about ? `${job.about}: ` : "";
  if (job.state === "failed") sayProblem({ message: job.error, hint: job.hint }, `${about}${LONG[job.kind]}`);
  else if (job.state === "done") say(about + OVER[job.kind](job.result ?? {}));
  dispatchEvent(new Event("changed"));  // one that is not known any more ended with a server that was started anew
}

function indexed({ n_problems: bad = 0, ...counts }) {
  const parts = Object.entries(INDEXED).filter(([name]) => counts[name]).map(([name, word]) => `${counts[name].toLocaleString("en")} ${word}`);
  const left = bad ? ` ${count(bad, "file was", "files were")} left out.` : "";
  return `${parts.length ? `Indexed: ${parts.join(", ")}.` : "Nothing in the folder has changed."}${left}`;
}

function show(jobs) {
  const long = jobs.filter((job) => job.kind in LONG);
  place.hidden = !long.length;
  for (const line of [...place.children]) if (!long.some((job) => job.id === line.dataset.job)) line.remove();
  for (const job of long) lineOf(job).tell(job);
  for (const button of document.querySelectorAll("[data-runs]")) button.setAttribute("aria-disabled", String(isRunning(button.dataset.runs)));
}

const lines = new WeakMap();

function lineOf({ id, kind, about }) {
  const known = [...place.children].find((line) => line.dataset.job === id);
  if (known) return lines.get(known);
  const bar = h("progress", { "aria-label": LONG[kind] }), words = h("span", { class: "words" });
  const line = h("div", { class: "job", "data-job": id }, h("strong", {}, about ? `${about}: ` : "", LONG[kind]), bar, words);
  const tell = (job) => {
    const text = progressInWords(job);
    if (words.textContent !== text) words.textContent = text;
    if (job.state === "working" && job.total > 1) Object.assign(bar, { max: job.total, value: job.done });
    else bar.removeAttribute("value");
  };
  lines.set(line, { tell });
  place.append(line);
  return { tell };
}

document.addEventListener("visibilitychange", () => document.hidden || look());
look();
