// Adding to a collection: picture files from here, what is new in its folder, and a fit that learns from all of it.

import { finished, get, send } from "./api.js";
import { addressOf } from "./state.js";
import { count, h, problemBox } from "./dom.js";
import { jobButton, startJob } from "./jobs.js";
import { say, sayProblem } from "./toast.js";

const AT_ONCE = 2;  // files that are sent at the same time
const MOST_ATTEMPTS = 30, PAUSE = 1_500;  // where the server is too busy; milliseconds
const LONGEST_NAME = 1000;
const CANCELLED = "not added: cancelled";

/** What can be added to a collection, and how; null where nothing can. */
export function addControls(facts) {
  if (!facts.can_edit) return null;
  return h("div", { class: "adding" },
    facts.pictures ? h("section", { "aria-labelledby": "add-title" }, h("h3", { id: "add-title" }, "Pictures from this device"), dropZone(), said) : null,
    facts.can_index ? h("section", { "aria-labelledby": "folder-title" }, h("h3", { id: "folder-title" }, "Its folder"), folderControls(facts)) : null,
    h("section", { "aria-labelledby": "fit-title" }, h("h3", { id: "fit-title" }, "Learn from what has changed"), h("p", {}, facts.drift),
      jobButton("refit", "Fit anew", () => startJob("refit", {}), { id: "fit-anew" })));
}

// Files, one after another, each with what became of it. The list outlives the view, which is drawn anew meanwhile.

const list = h("ul", { class: "outcomes" });
const total = h("p", { role: "status" });
const cancel = h("button", { type: "button", id: "cancel-adding", onclick: () => cancelAll() }, "Cancel the rest");
const said = h("div", { class: "added", hidden: true }, total, cancel, list);
let waiting = [], sending = new Map(), outcomes = { added: 0, known: 0, refused: 0, cancelled: 0 };

function dropZone() {
  const input = h("input", { type: "file", id: "add-files", class: "hidden", tabindex: "-1", multiple: true,
    accept: "image/*,.heic,.heif", onchange: (event) => {
      addFiles([...event.target.files]);
      event.target.value = "";  // so that the same file can be chosen again
    } });
  const zone = h("div", { class: "drop-zone" }, h("label", { for: "add-files", class: "hidden" }, "Pictures to add"), input,
    h("button", { type: "button", id: "choose-files", onclick: () => input.click() }, "Add pictures…"),
    h("span", { class: "soft" }, h("span", { class: "by-mouse" }, " or drop them here"), ". They are saved in the folder of the collection."));
  for (const name of ["dragenter", "dragover", "dragleave", "drop"]) {
    zone.addEventListener(name, (event) => {
      event.preventDefault();
      event.stopPropagation();  // dropped elsewhere they are searched by
      document.body.classList.remove("dragging");
      zone.classList.toggle("over", name === "dragenter" || name === "dragover");
      if (name === "drop") addFiles(filesOf(event.dataTransfer));
    });
  }
  return zone;
}

function filesOf(transfer) {
  const entries = [...transfer.items].map((item) => item.webkitGetAsEntry?.());
  for (const entry of entries.filter((one) => one?.isDirectory)) {
    say(`${entry.name} is a folder. Choose the pictures in it, or let the server index it.`, { problem: true });
  }
  const folders = entries.filter((one) => one?.isDirectory).map((one) => one.name);
  const files = [...transfer.files].filter((file) => !folders.includes(file.name));
  if (!files.length && !folders.length) say("What was dropped is no file.", { problem: true });
  return files;
}

export function addFiles(files) {
  if (!files.length) return;
  if (!waiting.length && !sending.size) begin();
  for (const file of files) {
    const words = h("span", {}, "waiting"), line = h("li", {}, h("bdi", {}, file.name), " ", words);
    list.append(line);
    waiting.push({ file, line, words });
  }
  tellTotal();
  next();
}

function begin() {
  list.replaceChildren();
  outcomes = { added: 0, known: 0, refused: 0, cancelled: 0 };
  said.hidden = false;
  addEventListener("beforeunload", warn);
}

const warn = (event) => event.preventDefault();

function next() {
  while (waiting.length && sending.size < AT_ONCE) {
    const one = waiting.shift(), stop = new AbortController();
    sending.set(one, stop);
    one.words.textContent = "sending…";
    add(one, stop.signal).then((outcome) => {
      outcomes[outcome] += 1;
      one.line.className = outcome;
      sending.delete(one);
      tellTotal();
      next();
    });
  }
  if (!waiting.length && !sending.size) end();
}

/** What became of a file: added, known, refused or cancelled. */
async function add({ file, words }, signal) {
  try {
    const { result } = await finished(await sent(file, words, signal));
    const name = result.name ?? result.ids[0];
    words.replaceChildren(result.known ? "is there already: " : "added as ", linkTo(result.ids[0], result.known ? result.ids[0] : name));
    return result.known ? "known" : "added";
  } catch (problem) {
    const isStopped = problem.name === "AbortError";
    words.textContent = isStopped ? CANCELLED : `refused: ${[problem.message, problem.hint].filter(Boolean).join("; ")}`;
    return isStopped ? "cancelled" : "refused";
  }
}

const linkTo = (id, name) => h("a", { "data-link": true, href: addressOf({ show: id }) }, h("bdi", {}, name));

/** The job that adds a file; where too many are waiting already, it is sent again in a moment. */
async function sent(file, words, signal) {
  for (let attempt = 1; ; attempt += 1) {
    try {
      return await send("POST", "pictures", { picture: file, parameters: { name: file.name.slice(0, LONGEST_NAME) }, signal });
    } catch (problem) {
      if (problem.status !== 503 || attempt === MOST_ATTEMPTS) throw problem;
      words.textContent = "waiting for the server…";
      await new Promise((resolve) => setTimeout(resolve, PAUSE));
      signal.throwIfAborted();
    }
  }
}

function cancelAll() {
  for (const { line, words } of waiting) {
    words.textContent = CANCELLED;
    line.className = "cancelled";
  }
  outcomes.cancelled += waiting.length;
  waiting = [];
  for (const stop of sending.values()) stop.abort();
  next();
  tellTotal();
}

function tellTotal() {
  const { added, known, refused, cancelled } = outcomes, left = waiting.length + sending.size;
  const parts = [`${count(added, "picture")} added`, known && `${known} there already`, refused && `${refused} refused`,
    cancelled && `${cancelled} cancelled`, left && `${left} to go`];
  total.textContent = `${parts.filter(Boolean).join(", ")}.`;
  cancel.hidden = !left;
}

function end() {
  removeEventListener("beforeunload", warn);
  if (outcomes.added) dispatchEvent(new Event("changed"));
}

// The folder: brought up to date when that is asked for, or whenever it changes.

function folderControls(facts) {
  const body = h("div", {}, "looking at the folder…");
  get("index").then((state) => body.replaceChildren(...folderParts(state, facts)), (problem) => body.replaceChildren(problemBox(problem)));
  return body;
}

function folderParts({ folder, is_there: isThere, watched }, facts) {
  if (!isThere) return [h("p", {}, folder ? [h("bdi", {}, folder), " is not there now."] : "It is not known here."), ...folderChoice()];
  const box = h("input", { type: "checkbox", id: "watch", checked: watched, onchange: () => watch(box) });
  return [
    h("p", {}, h("bdi", { class: "path" }, folder)),
    h("p", { class: "soft" }, "New pictures in it are added, changed ones are described again, and items whose file is gone are removed."),
    jobButton("index", "Bring up to date", () => startJob("index", {}), { id: "bring-up-to-date" }),
    h("p", { class: "check" }, box, h("label", { for: "watch" }, " Watch it: do so whenever it changes")),
    facts.removed_since_fit ? h("p", { class: "soft" }, "Items that were removed here while their files stay are added again.") : null,
  ].filter(Boolean);
}

async function watch(box) {
  try {
    if (box.checked) await startJob("index", { watch: true });
    else await finished(await send("POST", "index", { json: { watch: false } }));
    say(box.checked ? "The folder is watched from now on." : "The folder is not watched any more.");
  } catch (problem) {
    box.checked = !box.checked;
    sayProblem(problem);
  }
}

/** For a folder that is elsewhere now. */
function folderChoice() {
  const select = h("select", { id: "folder" }), label = h("label", { for: "folder" }, "Where it is now");
  fillFolders(select);
  return [h("p", {}, label, select),
    jobButton("index", "Index this folder", () => startJob("index", { folder: select.value }), { id: "bring-up-to-date" })];
}

/** The folders that the server may index, as choices. */
export async function fillFolders(select) {
  try {
    const { folders, is_whole: isWhole } = await get("folders");
    select.replaceChildren(...folders.map(({ path, name, pictures }) => h("option", { value: path }, `${name} (${count(pictures, "picture")})`)));
    if (!folders.length) select.append(h("option", { value: "", disabled: true, selected: true }, "none has pictures in it"));
    if (!isWhole) select.append(h("option", { disabled: true }, "and more, which are too many to list"));
  } catch (problem) {
    sayProblem(problem);
  }
}
