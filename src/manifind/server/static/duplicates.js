// Duplicates in groups: the best copy is proposed with its reason, and the others are removed from the collection.

import { get } from "./api.js";
import { card, withArrows } from "./cards.js";
import { count, h } from "./dom.js";
import { Endless } from "./lists.js";
import { made } from "./made.js";
import { change, openForm } from "./marking.js";
import { say } from "./toast.js";

const KINDS = { same: "The same", near: "Nearly the same" };
const MOST = 500;  // groups of one request
const MOST_SHOWN = 24;  // items of a group, until more are asked for
const READ_ONLY = "Nothing can be removed here. Whoever runs this server can allow it: start it with --allow-edit.";
const chosen = new Map();  // what people have chosen in place of what is proposed: whether to keep, by id

const isKept = (item) => chosen.get(item.id) ?? item.best;
const gone = (group) => group.items.filter((item) => !isKept(item)).map(({ id }) => id);

export async function showDuplicates(panel, view) {
  const { facts, isCurrent, how } = view;
  const list = h("div", { class: "groups" }), head = h("div", { class: "head" });
  const load = async (offset, limit) => {
    const found = await made("duplicates", { offset, limit }, { place: offset ? endless.end : panel, doing: "looking for duplicates", isCurrent });
    if (offset === 0) head.replaceChildren(...headOf(found, facts));
    return { ...found, more: offset + found.groups.length < found.total };
  };
  let number = 0;
  const append = ({ groups }) => {
    list.append(...groups.map((group) => groupBox(group, number += 1, facts)));
    return groups.length;
  };
  const endless = new Endless({ load, append, most: MOST, isCurrent, wanted: how.shown });
  await endless.begin();
  if (isCurrent()) panel.replaceChildren(head, list, endless.end);
  endless.look();
}

function headOf({ total, items }, facts) {
  if (!total) return [h("p", {}, "Nothing is there twice.")];
  const words = `${count(items, "item")} in ${count(total, "group")}; one of each is enough.`;
  const button = h("button", { type: "button", id: "all-proposed", onclick: () => askForAll() }, "Keep the best of all groups…");
  return [h("p", {}, words), facts.can_edit ? button : h("p", { class: "soft" }, READ_ONLY)];
}

function groupBox(group, number, facts) {
  const title = `${KINDS[group.kind]}: ${count(group.items.length, "item")}`;
  const act = h("button", { type: "button", id: `resolve-${number}`, onclick: () => resolve() });
  const grid = withArrows(h("ol", { class: "grid copies" }));
  const resolve = () => change("items/remove", { ids: gone(group) });
  const tell = () => {
    const away = gone(group).length, stay = group.items.length - away;
    act.textContent = sentence(group, away, stay);
    act.disabled = !away || !stay;
  };
  const sorted = [...group.items].sort((a, b) => Number(b.best) - Number(a.best));
  const append = (items) => grid.append(...items.map((item) => copy(item, facts, tell)));
  const rest = sorted.slice(MOST_SHOWN);
  const more = h("button", { type: "button", onclick: () => {
    more.remove();
    append(rest);
  } }, `Show ${count(rest.length, "more item")}`);
  append(sorted.slice(0, MOST_SHOWN));
  tell();
  return h("section", { class: "copies-group", "aria-label": `${title}, group ${number}` }, h("h2", {}, title), grid,
    h("div", { class: "buttons" }, rest.length ? more : null, facts.can_edit ? act : null));
}

function sentence({ items }, away, stay) {
  if (!away) return "All are kept";
  if (!stay) return "Keep at least one";
  const others = away === 1 ? "the other" : `the ${away} others`;
  if (stay > 1) return `Keep ${stay}, remove ${others}`;
  return items.find(isKept).best ? `Keep the best, remove ${others}` : `Keep this one, remove ${others}`;
}

function copy(item, facts, changed) {
  const element = card(item, { pictures: facts.pictures });
  const tick = h("input", { type: "checkbox", checked: isKept(item), onchange: () => {
    chosen.set(item.id, tick.checked);
    element.classList.toggle("kept", tick.checked);
    changed();
  } });
  element.classList.toggle("kept", isKept(item));
  element.querySelector(".label").after(h("div", { class: "copy-facts" }, h("div", { class: "said" }, h("bdi", {}, looksOf(item.fields))),
    item.best ? h("div", { class: "best" }, h("strong", {}, "Best"), `: ${item.reason}`) : null,
    facts.can_edit ? h("label", { class: "keep" }, tick, "Keep", h("span", { class: "hidden" }, ` ${item.id}`)) : null));
  return element;
}

/** What tells copies of a picture from each other. */
function looksOf({ path, width, height, bytes, format, taken }) {
  const size = typeof bytes === "number" ? (bytes >= 1e6 ? `${(bytes / 1e6).toFixed(1)} MB` : `${Math.ceil(bytes / 1e3)} kB`) : null;
  return [width && height ? `${width} x ${height}` : null, size, format, taken, path].filter((one) => one !== null && one !== undefined).join(" · ");
}

/** Ask once, and resolve every group as it stands, also those that are not shown yet. */
async function askForAll() {
  const groups = await every();
  const ids = groups.filter((group) => group.items.some(isKept)).flatMap(gone), what = count(ids.length, "item");
  if (!ids.length) return say("Nothing is left to remove: all items are marked to be kept.");
  const parts = [h("p", {}, `Of ${count(groups.length, "group")}, what is marked to be kept stays, and ${what} leave${ids.length === 1 ? "s" : ""} the collection. Their files stay where they are.`),
    h("p", {}, "This can be undone until the collection is fitted anew.")];
  return openForm(`Remove ${what} from the collection?`, parts, [{ text: `Remove ${what}`, value: "remove", primary: true }],
    async () => () => change("items/remove", { ids }));
}

async function every() {
  const groups = [];
  let total = Infinity;
  while (groups.length < total) {
    const found = await get("duplicates", { offset: groups.length, limit: MOST });
    if (!found.groups?.length) break;
    groups.push(...found.groups);
    ({ total } = found);
  }
  return groups;
}
