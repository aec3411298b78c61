// An item as a card: its picture or its id, rank and score; it opens the viewer, can be selected, and leads to searches.

import { showPicture } from "./api.js";
import { h } from "./dom.js";
import { addPart } from "./query.js";
import { selection } from "./selection.js";
import { addressOf, read } from "./state.js";

/** Where the file of an item is now, or its id where nothing is known of a file. */
export const pathOf = (item) => (typeof item.fields?.path === "string" ? item.fields.path : item.id);

/** Path and id of an item, where these differ: a file that was moved keeps its id. */
export const fullName = (item) => (pathOf(item) === item.id ? item.id : `${pathOf(item)} (id ${item.id})`);

/** The name of a file, without its folders. */
export const nameOf = (path) => path.split("/").pop();

/** A small picture; where there is none, a text. alt: "" where the text stands beside it. */
export function thumbnail(hasPictures, parameters, text, alt = text) {
  const none = () => h("div", { class: "none" }, text);
  if (!hasPictures) return none();
  const image = h("img", { alt, loading: "lazy", decoding: "async", draggable: "false" });
  image.addEventListener("error", () => image.replaceWith(none()), { once: true });
  showPicture(image, "thumbnail", parameters);
  return image;
}

function fieldsText(fields) {
  return Object.entries(fields).filter(([name]) => name !== "path").map(([name, value]) => `${name} ${value}`).join(", ");
}

const items = new WeakMap();  // of the cards that there are

/** The item that a card was made of. */
export const itemOf = (element) => items.get(element);

/** pictures: whether there are any. mark: beside its score. why(item): shows the way there. deeds: further buttons. */
export function card(item, { pictures, mark, why, deeds }) {
  const name = fullName(item), said = fieldsText(item.fields ?? {});
  const element = h("li", { class: "card", "data-id": item.id },
    h("a", { class: "open", "data-link": true, href: addressOf({ ...read(), show: item.id }), title: name, "aria-label": `Look at ${name}` },
      thumbnail(pictures, { id: item.id }, name, "")),
    h("input", { type: "checkbox", class: "pick", "aria-label": `Select ${name}` }),
    h("div", { class: "label", title: name }, h("bdi", {}, nameOf(pathOf(item)))),
    pictures || !said ? null : h("div", { class: "fields", title: said }, h("bdi", {}, said)),
    item.rank === undefined ? null : h("div", { class: "facts" }, h("span", {}, `${item.rank}. ${item.score.toFixed(3)}`), mark),
    h("div", { class: "deeds" },
      likeButton(item, name, 1), likeButton(item, name, -1),
      why ? h("button", { type: "button", onclick: () => why(item), "aria-label": `Why ${name}`, title: "Why it is here" }, "why") : null,
      deeds));
  items.set(element, item);
  showSelected(element);
  return element;
}

function likeButton(item, name, sign) {
  const words = sign > 0 ? "More like" : "Less like";
  return h("button", { type: "button", onclick: () => addPart({ sign, kind: "id", value: item.id }), title: `${words} this`,
    "aria-label": `${words} ${name}` }, sign > 0 ? "+" : "−");
}

function showSelected(element) {
  const isSelected = selection.has(element.dataset.id);
  element.classList.toggle("selected", isSelected);
  element.querySelector(".pick").checked = isSelected;
}

addEventListener("selection", () => document.querySelectorAll("li.card[data-id]").forEach(showSelected));

const METHODS = { gradnet: "GRAD-Net", knn: "k-NN" };

/** Where a result of one method stands with the other, and which of the two ranks it higher. */
export function movement(item, method) {
  const own = METHODS[method], other = METHODS[method === "gradnet" ? "knn" : "gradnet"];
  if (item.other_rank === null) return mark("up", "new", `${own} finds it; it is not among the first thousand of ${other}`);
  const moved = item.other_rank - item.rank;
  if (moved === 0) return mark("same", "=", `${own} and ${other} give it the same rank`);
  const words = `${moved > 0 ? own : other} ranks it ${Math.abs(moved)} higher`;
  return mark(moved > 0 ? "up" : "down", `${moved > 0 ? "▲" : "▼"}${Math.abs(moved)}`, words);
}

const mark = (name, sign, words) => h("span", { class: `mark ${name}`, title: words },
  h("span", { "aria-hidden": "true" }, sign), h("span", { class: "hidden" }, words));


/** Arrow keys move among the cards of a grid, Space selects, Shift extends; Tab goes through one card and then on. */
export function withArrows(grid) {
  new Walk(grid);
  return grid;
}

class Walk {
  current = null;  // the card whose controls Tab reaches
  anchor = null;  // where a range of selected cards begins

  constructor(grid) {
    this.grid = grid;
    new MutationObserver((changes) => this.take(changes)).observe(grid, { childList: true });
    grid.addEventListener("focusin", (event) => this.makeCurrent(event.target.closest(".card")));
    grid.addEventListener("click", (event) => this.click(event));
    grid.addEventListener("keydown", (event) => this.key(event));
  }

  get cards() {
    return [...this.grid.querySelectorAll(".card")];
  }

  take(changes) {
    for (const added of changes.flatMap((change) => [...change.addedNodes])) reach(added, added === this.current);
    if (!this.current?.isConnected) this.makeCurrent(this.grid.querySelector(".card"));
  }

  makeCurrent(element) {
    if (element === this.current) return;
    reach(this.current, false);
    this.current = element;
    reach(this.current, true);
  }

  click(event) {
    const element = event.target.closest(".card"), isPick = event.target.matches(".pick");
    if (!isPick && !(event.shiftKey && event.target.closest(".open"))) return;
    if (!isPick) event.preventDefault();
    this.select(element, event.shiftKey);
    showSelected(element);
  }

  key(event) {
    const from = event.target.closest(".card");
    if (!from || event.ctrlKey || event.metaKey || event.altKey) return;
    const isSpace = event.key === " " && event.target.matches(".open");
    const to = isSpace ? from : neighbour(this.cards, from, event.key, columnsOf(this.grid));
    if (!to) return;
    event.preventDefault();
    if (isSpace) this.select(from, event.shiftKey);
    else if (event.shiftKey) this.extend(from, to);
    to.querySelector(".open").focus();
  }

  select(element, isRange) {
    if (isRange && this.anchor?.isConnected) this.extend(this.anchor, element);
    else selection.toggle(element.dataset.id);
    this.anchor = element;
  }

  /** Select from one card to another. */
  extend(from, to) {
    const { cards } = this, [first, last] = [cards.indexOf(from), cards.indexOf(to)].sort((a, b) => a - b);
    selection.range(cards.slice(first, last + 1).map((one) => one.dataset.id));
    this.anchor = to;
  }
}

const reach = (element, can) => element?.querySelectorAll("a, button, input").forEach((one) => { one.tabIndex = can ? 0 : -1; });

const columnsOf = (grid) => getComputedStyle(grid).gridTemplateColumns.split(" ").length;

function neighbour(cards, from, key, columns) {
  const step = { ArrowRight: 1, ArrowLeft: -1, ArrowDown: columns, ArrowUp: -columns }[key];
  if (step) return cards[cards.indexOf(from) + step];
  return { Home: cards[0], End: cards.at(-1) }[key];
}
