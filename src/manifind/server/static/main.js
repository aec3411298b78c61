// Puts the page together: which view is shown, what lies above it, and what works everywhere.

import { get } from "./api.js";
import { showAsked } from "./ask.js";
import { itemOf } from "./cards.js";
import { showCollection } from "./collection.js";
import { byId, h, problemBox } from "./dom.js";
import { shown } from "./lists.js";
import { showMap } from "./map.js";
import { offerPictures } from "./pictures.js";
import { queryInWords } from "./query.js";
import { showReview } from "./review.js";
import { showSearch } from "./search.js";
import { selection } from "./selection.js";
import { addressOf, again, read, start } from "./state.js";
import { askForToken } from "./token.js";
import { closeViewer, openViewer } from "./viewer.js";

const VIEWS = { "": showSearch, map: showMap, review: showReview,
  collection: (place, state, known, _, how) => showCollection(place, state, known, how) };
const main = byId("main");
let facts = null;

async function render(state, how) {
  try {
    facts ??= await get("collection");
  } catch (problem) {
    if (problem.status !== 401) main.replaceChildren(problemBox(problem));
    return;
  }
  if (how.below && !how.isCurrent()) return;
  const done = how.below ? showBelow(state, how) : null;
  showViewer(state);
  if (!done) return;
  await done;
  if (how.isCurrent() && read().show) showViewer(read());  // it may walk along the list now
}

function showViewer({ show, view }) {
  if (show) openViewer(show, { facts, shown: view ? cardsOf(main) : shown });
  else closeViewer();
}

async function showBelow(state, how) {
  const focus = focusKept();
  showAround(state, how);
  const done = (VIEWS[state.view] ?? showSearch)(main, state, facts, how.isCurrent, how);
  focus();
  await done;
  focus({ last: true });
}

/** What stands around every view. */
function showAround(state, { anew }) {
  for (const link of document.querySelectorAll("nav [data-view]")) {
    if (link.dataset.view === (state.view || "search")) link.setAttribute("aria-current", "page");
    else link.removeAttribute("aria-current");
  }
  const { parts, where } = state;  // the map marks the query and its answers
  document.querySelector("nav [data-view=map]").setAttribute("href", addressOf({ parts, where, view: "map" }));
  if (!anew && byId("dialog").open) byId("dialog").close();
  byId("home").textContent = facts.name;
  byId("start").hidden = !facts.several;
  document.title = [state.parts.length ? queryInWords(state.parts) : state.name || state.view, facts.name].filter(Boolean).join(" · ");
  showAsked(state, facts, anew);
  offerPictures(facts);
  showWarnings(facts.warnings ?? []);
  const bar = selection.bar(facts);
  if (!bar.isConnected) document.body.append(bar);  // moved, it would lose the focus
}

/** What is wrong with the collection as a whole, until somebody has read it. */
function showWarnings(warnings) {
  const open = warnings.filter(({ problem }) => !sessionStorage.getItem(`read: ${problem}`));
  byId("warnings").replaceChildren(...open.map(({ problem, hint }) => {
    const close = () => {
      sessionStorage.setItem(`read: ${problem}`, "yes");
      box.remove();
    };
    const box = h("div", { class: "problem" }, h("strong", {}, problem), hint ? h("div", {}, hint) : null,
      h("button", { type: "button", class: "close", "aria-label": "Close this warning", onclick: close }, "×"));
    return box;
  }));
}

/** The cards of a view as a list to walk along. */
const cardsOf = (place) => ({ items: [...place.querySelectorAll(".card")].map(itemOf).filter(Boolean), more: null });

/** Whoever works with keys goes on where they were: at the same control, the same card, or else at the results. */
function focusKept() {
  const before = document.activeElement, wasInMain = main.contains(before);
  const { id } = before, cardId = before.closest(".card")?.dataset.id;
  return ({ last = false } = {}) => {
    if (!wasInMain || document.activeElement !== document.body) return;
    const same = id ? byId(id) : [...main.querySelectorAll(".card")].find((one) => one.dataset.id === cardId)?.querySelector(".open");
    (same ?? (last ? main : null))?.focus({ preventScroll: true });
  };
}

addEventListener("changed", () => {
  facts = null;
  again();
});
addEventListener("token", () => askForToken(main, "collection", () => dispatchEvent(new Event("changed"))));

document.addEventListener("keydown", (event) => {
  if (event.key === "/" && !event.target.closest("input, textarea, select, dialog")) {
    event.preventDefault();
    byId("box").focus();
    byId("box").select();
  }
});

start(render);
