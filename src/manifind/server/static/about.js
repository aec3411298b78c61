// What is known of an item and what can be done with it, beside its picture: searches, path, file, labels, metadata.

import { download } from "./api.js";
import { nameOf, pathOf } from "./cards.js";
import { write } from "./clauses.js";
import { h } from "./dom.js";
import { askForLabels, change } from "./marking.js";
import { addPart } from "./query.js";
import { addressOf, read } from "./state.js";
import { say } from "./toast.js";

const LABELS = { tags: "Tag…", albums: "Album…" };
const ELSEWHERE = ["path", "sha256", "fingerprint", "modified", "exif", ...Object.keys(LABELS)];  // not in the table

const button = (text, run, rest = {}) => h("button", { type: "button", onclick: run, ...rest }, text);

/** item: as the API has it. crop(): chooses a part of its picture; null where there is none. */
export function about(item, facts, crop) {
  const given = Object.keys(LABELS).map((field) => labels(item, field, facts.can_edit));
  return [actions(item, crop), h("div", { class: "labels" }, given), tableOf(item)];
}

function actions(item, crop) {
  const { id } = item, path = pathOf(item), part = { sign: 1, kind: "id", value: id, crop: "" };
  const search = { ...read(), view: "", show: "", name: "", parts: [part] };
  return h("div", { class: "actions", role: "group", "aria-label": "What to do with it" },
    h("a", { class: "button primary", "data-link": true, href: addressOf(search) }, "Search like this"),
    crop ? button("Search by a part", crop) : null,
    button("More like this", () => addPart(part)),
    button("Less like this", () => addPart({ ...part, sign: -1 })),
    button(item.fields.path ? "Copy path" : "Copy id", (event) => copy(path, event.currentTarget)),
    crop ? button("Download", () => save(id, nameOf(path))) : null);
}

/** The tags or albums of an item, each of which leads to all items that have it. */
function labels(item, field, canEdit) {
  const given = [item.fields[field] ?? []].flat().map(String), ids = [item.id];
  if (!given.length && !canEdit) return null;
  const without = (value) => change("labels", { field, ids, add: [], remove: [value] });
  const takeOff = (value) => button("×", () => without(value), { "aria-label": `Take off ${value}` });
  const chips = given.map((value) => h("li", {},
    h("a", { "data-link": true, href: addressOf({ where: [write(field, "contains", value)] }) }, h("bdi", {}, value)),
    canEdit ? takeOff(value) : null));
  return h("div", { class: "chips", role: "group", "aria-label": field },
    chips.length ? [h("span", { class: "field" }, field), h("ul", {}, chips)] : null,
    canEdit ? button(LABELS[field], () => askForLabels(field, ids)) : null);
}

function tableOf(item) {
  const rows = Object.entries(item.fields).filter(([name]) => !ELSEWHERE.includes(name));
  const known = [["id", item.id], ["path", item.fields.path], ...rows, ["added", item.added_since_fit ? "since the last fit" : null]];
  const row = ([name, value]) => h("tr", {},
    h("th", { scope: "row" }, h("bdi", {}, name.replaceAll("_", " "))), h("td", {}, h("bdi", {}, shown(name, value))));
  return h("table", { class: "facts-table" }, h("tbody", {}, known.filter(([, value]) => value !== null && value !== undefined).map(row)));
}

function shown(name, value) {
  if (Array.isArray(value)) return value.join(", ");
  if (typeof value === "object") return JSON.stringify(value);
  if (name === "bytes" && typeof value === "number") return sizeOf(value);
  return String(value);
}

const sizeOf = (bytes) => (bytes < 1e6 ? `${(bytes / 1e3).toFixed(1)} kB` : `${(bytes / 1e6).toFixed(1)} MB`);

async function save(id, name) {
  try {
    await download("original", name, { id });
  } catch (problem) {
    say([problem.message, problem.hint].filter(Boolean).join("; "), { problem: true });
  }
}

/** Put a text into the clipboard; where the browser gives none, as over plain HTTP, by the old way. */
async function copy(text, place) {
  try {
    await navigator.clipboard.writeText(text);
  } catch {
    const field = h("textarea", { class: "hidden", "aria-label": "Path" });
    field.value = text;
    place.after(field);
    field.select();
    const isCopied = document.execCommand("copy");
    field.remove();
    place.focus();
    if (!isCopied) return say(`The browser does not let pages copy. It is ${text}`, { problem: true });
  }
  return say(`Copied ${text}`);
}
