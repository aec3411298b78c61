// The search view: all items where nothing is asked; the answers to a query; the same beside plain neighbours.

import { get } from "./api.js";
import { card, movement, withArrows } from "./cards.js";
import { queryChips } from "./chips.js";
import { joined } from "./clauses.js";
import { count, h, problemBox } from "./dom.js";
import { filterBar } from "./filters.js";
import { judgeButtons } from "./judge.js";
import { Endless, shown } from "./lists.js";
import { compareParts, searchParts } from "./query.js";
import { go } from "./state.js";
import { showWhy } from "./why.js";

const MOST = { items: 500, search: 1000, compare: 200 };  // of one request
const METHODS = { "": "GRAD-Net", knn: "k-NN", compare: "Side by side" };

/** how: what else `state.start` says of the rendering. */
export async function showSearch(main, state, facts, isCurrent, how) {
  const view = { state, facts, how, found: foundLine(state), note: h("div"), place: h("div", { class: "results" }) };
  const parts = [barOf(view), view.note, view.place];
  if (!how.anew) main.replaceChildren(...parts);
  shown.items = [];
  try {
    if (!state.parts.length) await browse(view);
    else if (state.method === "compare") await compare(view);
    else await answers(view);
  } catch (problem) {
    view.place.replaceChildren(problemBox(problem));
  }
  if (how.anew && isCurrent()) main.replaceChildren(...parts);
}

/** How many there are, for everybody; where a heading says it already, for those who listen. */
const foundLine = ({ parts, where, name }) => h("p", { class: parts.length || where.length || name ? "found" : "found hidden", role: "status" });

function barOf({ state, facts, found }) {
  const isAsked = state.parts.length > 0;
  const bar = h("section", { class: "query", "aria-label": isAsked ? "Query" : "Items" },
    isAsked ? queryChips(state, facts) : h("h1", {}, titleOf(state, facts)),
    h("div", { class: "controls" }, isAsked ? methodButtons(state) : null, filterBar(state, facts), found));
  const size = new ResizeObserver(() => document.documentElement.style.setProperty("--bar", `${bar.offsetHeight}px`));
  size.observe(bar);
  return bar;
}

function titleOf(state, facts) {
  if (state.name) return `Items with “${state.name}” in their name`;
  return facts.items === 1 ? "1 item" : `All ${count(facts.items, "item")}`;
}

function methodButtons(state) {
  return h("div", { role: "group", "aria-label": "Method", class: "methods" }, Object.entries(METHODS).map(([method, label]) =>
    h("button", { type: "button", id: `method-${method || "gradnet"}`, "aria-pressed": String((state.method || "") === method),
      onclick: () => go({ method }) }, label)));
}

/** One grid that goes on: load(offset, k) gives {items, more}. */
async function fill(view, load, options, most, empty) {
  const { place, facts, how } = view, grid = withArrows(h("ol", { class: "grid" }));
  const append = ({ items }) => {
    shown.items.push(...items);
    grid.append(...items.map((item) => card(item, { pictures: facts.pictures, ...options(item) })));
    return items.length;
  };
  const list = new Endless({ load, append, most, isCurrent: how.isCurrent, wanted: how.shown });
  shown.more = () => list.go();
  place.replaceChildren(grid, list.end);
  await list.begin();
  if (!grid.children.length) list.end.replaceChildren(h("p", {}, empty));
}

async function browse(view) {
  const { state } = view, where = joined(state.where);
  const load = async (offset, limit) => {
    const found = await get("items", { offset, limit, where, name: state.name });
    view.found.textContent = count(found.total, "item");
    return { items: found.items, more: offset + found.items.length < found.total };
  };
  const empty = state.name ? `No item has “${state.name}” in its name${where ? " and satisfies the filter" : ""}.`
    : where ? "No item satisfies the filter." : "There are no items.";
  await fill(view, load, () => ({}), MOST.items, empty);
}

async function answers(view) {
  const { state, facts } = view, { parts, where } = state, method = state.method || "gradnet";
  const why = method === "gradnet" ? (item) => showWhy(parts, item, facts) : null;
  const load = async (offset, k) => {
    const found = await searchParts(parts, { k, offset, method, where, cut: !state.all });
    const total = offset + found.results.length;
    view.note.replaceChildren(...(found.cut_off && !total ? [h("p", { class: "cut" }, "Nothing here is really alike.")] : []));
    view.found.textContent = `${count(total, "result")}${found.more ? " and more" : ""}`;
    rest.replaceChildren(...(found.cut_off ? [showMore()] : []));
    if (found.cut_off && !total) empty.textContent = "";
    return { items: found.results, more: found.more };
  };
  const options = (item) => ({ why, deeds: judgeButtons(item, parts, facts) });
  const rest = h("div", { class: "end" }), empty = h("span", {}, "Nothing satisfies the filter.");
  await fill(view, load, options, MOST.search, empty);
  view.place.append(rest);
}

/** Leads to the results that probably do not belong, too. */
const showMore = () => h("button", { type: "button", class: "show-more", onclick: () => go({ all: "1" }) }, "Show more, less alike");

const TITLES = { knn: "Plain neighbours (k-NN)", gradnet: "GRAD-Net" };
const LEGENDS = { knn: "▲ k-NN ranks it higher than GRAD-Net, ▼ GRAD-Net does",
  gradnet: "▲ GRAD-Net ranks it higher than k-NN, ▼ k-NN does" };

async function compare(view) {
  const { state, facts, how, place } = view, { parts, where } = state;
  const columns = Object.fromEntries(Object.keys(TITLES).map((method) => [method, column(method, parts, facts)]));
  const append = (found) => {
    for (const [method, { take }] of Object.entries(columns)) take(found[method]);
    view.found.textContent = movedInWords(columns.gradnet.items);
    return Math.max(found.gradnet.length, found.knn.length);
  };
  const load = async (offset, k) => ({ more: false, ...(await compareParts(parts, { k, offset, where })) });
  const list = new Endless({ load, append, most: MOST.compare, isCurrent: how.isCurrent, wanted: how.shown });
  shown.items = columns.gradnet.items;
  shown.more = () => list.go();
  place.replaceChildren(h("div", { class: "columns" }, Object.values(columns).map(({ element }) => element)), list.end);
  await list.begin();
  if (!list.offset) list.end.replaceChildren(h("p", {}, "Nothing satisfies the filter."));
}

/** A method's own list: {element, items, take(results)}; the viewer walks along the one that people are in. */
function column(method, parts, facts) {
  const items = [], grid = withArrows(h("ol", { class: "grid" }));
  const why = method === "gradnet" ? (item) => showWhy(parts, item, facts) : null;
  const take = (results) => {
    items.push(...results);
    grid.append(...results.map((item) => card(item, { pictures: facts.pictures, why, mark: movement(item, method),
      deeds: judgeButtons(item, parts, facts) })));
  };
  for (const name of ["pointerdown", "focusin"]) grid.addEventListener(name, () => { shown.items = items; });
  const element = h("section", { "aria-label": TITLES[method] }, h("h2", {}, TITLES[method]), h("p", { class: "soft" }, LEGENDS[method]), grid);
  return { element, items, take };
}

function movedInWords(items) {
  const among = items.length, moved = items.filter((item) => item.other_rank === null || item.other_rank > among).length;
  return `${moved} of the first ${count(among, "result")} of GRAD-Net ${moved === 1 ? "is" : "are"} not among the first ${among} of k-NN`;
}
