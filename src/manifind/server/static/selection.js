// The items that are selected, kept as long as the tab is open, and the bar that says what can be done with them.

import { count, h } from "./dom.js";
import { askForExport, askForLabels, askToRemove, undo } from "./marking.js";
import { go } from "./state.js";
import { say } from "./toast.js";

const PLACE = `selection of ${location.pathname}`;  // each collection of a server has its own
const HIDDEN = `undo hidden of ${location.pathname}`;
const MOST_IN_A_QUERY = 256, MOST_AT_ONCE = 10_000;
const TYPED_INTO = "input:not([type=checkbox]), textarea, select, dialog";

/** Why nothing can be changed here. */
const READ_ONLY = "Nothing can be changed here. Whoever runs this server can allow it: start it with --allow-edit.";

const ids = new Set(kept());

function kept() {
  try {
    return JSON.parse(sessionStorage.getItem(PLACE) ?? "[]").map(String);
  } catch {
    return [];
  }
}

function changed() {
  try {
    sessionStorage.setItem(PLACE, JSON.stringify([...ids]));
  } catch {
    sessionStorage.removeItem(PLACE);  // too many to be kept; they stay until the page is left
  }
  fill();
  told.textContent = ids.size ? `${count(ids.size, "item")} selected` : "Nothing is selected";
  dispatchEvent(new Event("selection"));
}

/** A set of ids in the order in which they were chosen; each change is told to the window as "selection". */
export const selection = {
  get size() {
    return ids.size;
  },
  [Symbol.iterator]: () => ids[Symbol.iterator](),
  has: (id) => ids.has(id),
  toggle(id) {
    if (!ids.delete(id)) ids.add(id);
    changed();
  },
  /** Select these too. */
  range(more) {
    for (const id of more) ids.add(id);
    changed();
  },
  /** Select these and no others. */
  set(wanted) {
    ids.clear();
    selection.range(wanted);
  },
  /** Select these no longer. */
  drop(gone) {
    for (const id of gone) ids.delete(id);
    changed();
  },
  clear() {
    selection.set([]);
  },
  bar,
};

const told = h("p", { class: "hidden", role: "status" });  // for those who listen
document.body.append(told);
const box = h("section", { class: "selection-bar", "aria-label": "Selection", hidden: true });
new ResizeObserver(() => document.documentElement.style.setProperty("--selection", `${box.offsetHeight}px`)).observe(box);
let known = null;  // what the server last said of the collection
let cameFrom = null;

/** The bar at the bottom, always the same element; facts: of the collection, as they are now. */
function bar(facts) {
  known = facts;
  fill();
  return box;
}

function fill() {
  if (!known) return;
  const focused = box.contains(document.activeElement) ? document.activeElement.textContent : null;
  const last = known.can_edit ? known.undo : null, isEmpty = !ids.size;
  const offered = last && sessionStorage.getItem(HIDDEN) !== String(last.step);
  box.hidden = isEmpty && !offered;
  box.classList.toggle("small", isEmpty);
  document.body.classList.toggle("selecting", !isEmpty);
  if (isEmpty) box.replaceChildren(...(offered ? [undoPart(last)] : []));
  else box.replaceChildren(chosenPart(), actionsPart(last));
  if (focused === null) return;
  const same = [...box.querySelectorAll("button")].find((one) => one.textContent === focused);
  (same ?? document.querySelector("main")).focus();
}

const button = (text, run, rest = {}) => h("button", { type: "button", onclick: run, ...rest }, text);

function chosenPart() {
  return h("div", { class: "chosen" },
    h("strong", {}, `${count(ids.size, "item")} selected`),
    button("All shown", () => selection.range(shownIds()), { title: "Select everything that is shown", "aria-label": "Select all shown" }),
    button("Clear", clear, { "aria-label": "Clear the selection" }));
}

function actionsPart(last) {
  const refused = (text) => button(text, () => say(READ_ONLY), { class: "refused", title: READ_ONLY });
  const deed = (text, run) => button(text, () => isAtMost(MOST_AT_ONCE, "This is done for") && run([...ids]));
  const change = (text, run) => (known.can_edit ? deed(text, run) : refused(text));
  return h("div", { class: "actions", role: "group", "aria-label": "What to do with the selection" },
    change("Tag…", (chosen) => askForLabels("tags", chosen)),
    change("Album…", (chosen) => askForLabels("albums", chosen)),
    deed("Export…", (chosen) => askForExport(chosen, known)),
    button("Use as query", useAsQuery),
    change("Remove…", askToRemove),
    last ? undoButton(last, "Undo") : null);
}

function isAtMost(most, what) {
  if (ids.size <= most) return true;
  say(`${what} at most ${count(most, "item")}, and ${count(ids.size, "item is", "items are")} selected. Select fewer.`, { problem: true });
  return false;
}

const undoButton = (last, text) => {
  const words = `Undo: ${last.label}`;
  return button(text ?? words, () => undo(last.step), { title: words, "aria-label": words });
};

/** What undoes the last change, whoever made it, where nothing is selected. */
function undoPart(last) {
  const hide = () => {
    sessionStorage.setItem(HIDDEN, String(last.step));
    fill();
  };
  return h("div", { class: "undo" }, undoButton(last), button("×", hide, { "aria-label": "Do not offer this undo" }));
}

function clear() {
  selection.clear();
  goBack();
}

function useAsQuery() {
  if (!isAtMost(MOST_IN_A_QUERY, "A query can have")) return;
  const parts = [...ids].map((value) => ({ sign: 1, kind: "id", value, crop: "" }));
  go({ view: "", show: "", name: "", method: "", parts });
}

/** The ids of all cards that the page shows, whatever view it is. */
const shownIds = () => [...document.querySelectorAll("main [data-id]")].map((card) => card.dataset.id);

function goBack() {
  const place = cameFrom?.isConnected ? cameFrom : document.querySelector("main");
  cameFrom = null;
  place?.focus();
}

addEventListener("changed", (event) => {
  if (event.detail?.removed?.some((id) => ids.has(id))) selection.drop(event.detail.removed);
});

document.addEventListener("keydown", (event) => {
  if (event.ctrlKey || event.metaKey || event.altKey || event.target.closest(TYPED_INTO)) return;
  if (event.key === "m" && !box.hidden) {
    cameFrom = document.activeElement;
    box.querySelector(".actions button, .undo button").focus();
    event.preventDefault();
  } else if (event.key === "Escape" && box.contains(event.target)) goBack();
});
