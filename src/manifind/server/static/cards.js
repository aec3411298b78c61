// An item as a card: its picture or its id, its rank and score, and what can be done with it.

import { showPicture } from "./api.js";
import { h } from "./dom.js";
import { go } from "./state.js";

/** Where the file of an item is now, or its id where nothing is known of a file. */
export const pathOf = (item) => (typeof item.fields?.path === "string" ? item.fields.path : item.id);

/** Path and id of an item, where these differ: a file that was moved keeps its id. */
export const fullName = (item) => (pathOf(item) === item.id ? item.id : `${pathOf(item)} (id ${item.id})`);

/** The name of a file, without its folders. */
export const nameOf = (path) => path.split("/").pop();

export function thumbnail(hasPictures, parameters, text) {
  const none = () => h("div", { class: "none" }, text);
  if (!hasPictures) return none();
  const image = h("img", { alt: text, loading: "lazy", decoding: "async" });
  image.addEventListener("error", () => image.replaceWith(none()), { once: true });
  showPicture(image, "thumbnail", parameters);
  return image;
}

export function fieldsText(fields) {
  return Object.entries(fields).filter(([name]) => name !== "path").map(([name, value]) => `${name} ${value}`).join(", ");
}

export function card(item, { pictures, why, mark, edit }) {
  const search = () => go({ view: "", id: item.id, upload: "", text: "", name: "" });
  const said = fieldsText(item.fields ?? {}), name = fullName(item);
  return h("li", { class: "card" },
    h("button", { class: "open", title: `Search for items like ${name}`, "aria-label": `Search like ${name}`, onclick: search },
      thumbnail(pictures, { id: item.id }, pictures ? `Picture ${name}` : name)),
    h("div", { class: "label", title: name }, nameOf(pathOf(item))),
    pictures || !said ? null : h("div", { class: "fields", title: said }, said),
    item.rank === undefined ? null : h("div", { class: "facts" },
      h("span", {}, `${item.rank}. ${item.score.toFixed(3)} `, mark ?? ""),
      why ? h("button", { onclick: () => why(item), "aria-label": `Why ${name}` }, "why") : null),
    edit ? h("div", { class: "facts" }, h("button", { onclick: () => edit(item), "aria-label": `Remove ${name}` }, "remove")) : null);
}

/** Where a result stands in the other list. */
export function movement(item) {
  if (item.other_rank === null) return h("span", { class: "up", title: "not among the first thousand of the other" }, "new");
  const moved = item.other_rank - item.rank;
  if (moved === 0) return h("span", { title: "the same rank in the other list" }, "=");
  const words = moved > 0 ? `up ${moved} from rank ${item.other_rank}` : `down ${-moved} from rank ${item.other_rank}`;
  return h("span", { class: moved > 0 ? "up" : "down", title: words, "aria-label": words }, `${moved > 0 ? "▲" : "▼"}${Math.abs(moved)}`);
}

/** Arrow keys move among the cards of a grid. */
export function withArrows(grid) {
  grid.addEventListener("keydown", (event) => {
    const step = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
    const vertical = { ArrowDown: 1, ArrowUp: -1 }[event.key];
    if (!step && !vertical) return;
    const cards = [...grid.querySelectorAll(".open")];
    const at = cards.indexOf(document.activeElement);
    if (at < 0) return;
    const columns = getComputedStyle(grid).gridTemplateColumns.split(" ").length;
    const next = cards[at + (step ?? vertical * columns)];
    if (next) {
      event.preventDefault();
      next.focus();
    }
  });
  return grid;
}
