// A timeline: how many items were taken in each month; a click leads to them.

import { get } from "./api.js";
import { joined, understand, write } from "./clauses.js";
import { count, h } from "./dom.js";
import { filterBar } from "./filters.js";
import { addressOf } from "./state.js";

const MONTHS = ["January", "February", "March", "April", "May", "June", "July", "August", "September", "October", "November", "December"];
const MOST_YEARS = 200;  // that are shown; who has more has nonsense among them

export async function showTimeline(panel, { state, facts, isCurrent }) {
  const { months, undated } = await get("timeline", { where: joined(state.where) });
  if (!isCurrent()) return;
  const dated = months.reduce((sum, { items }) => sum + items, 0);
  const words = dated ? `${count(dated, "item")} with a date` : "No item has a date.";
  panel.replaceChildren(
    h("div", { class: "head" }, h("p", {}, words, undated ? `; ${count(undated, "item")} without` : null), filterBar(state, facts)),
    h("div", { class: "years", onkeydown: move }, yearsOf(months).slice(0, MOST_YEARS).map((year) => yearBox(year, state, topOf(months)))));
}

const topOf = (months) => Math.max(...months.map(({ items }) => items));

/** [{year, items, months: [number of items in each]}], the latest first. */
function yearsOf(months) {
  const years = new Map();
  for (const { month, items } of months) {
    const [year, number] = month.split("-");
    if (!years.has(year)) years.set(year, Array(12).fill(0));
    years.get(year)[Number(number) - 1] = items;
  }
  return [...years].map(([year, found]) => ({ year, items: found.reduce((a, b) => a + b, 0), months: found })).reverse();
}

function yearBox({ year, items, months }, state, top) {
  return h("section", { class: "year", "aria-label": year },
    h("h2", {}, h("a", { "data-link": true, href: within(state, `${year}-01-01`, `${following(year)}-01-01`) }, year), h("span", { class: "soft" }, ` ${count(items, "item")}`)),
    h("ol", {}, months.map((n, at) => monthBox(year, at, n, state, top))));
}

function monthBox(year, at, n, state, top) {
  const bar = h("span", { class: "bar", "aria-hidden": "true" });
  bar.style.height = n ? `${Math.max(6, 100 * Math.sqrt(n / top))}%` : "0";  // by area, so that small ones are seen
  const inside = [h("span", { class: "room", "aria-hidden": "true" }, bar), h("span", { class: "month", "aria-hidden": "true" }, MONTHS[at].slice(0, 3)),
    h("span", { class: "n", "aria-hidden": "true" }, n ? n.toLocaleString("en") : "")];
  if (!n) return h("li", {}, h("span", { class: "empty" }, inside, h("span", { class: "hidden" }, `${MONTHS[at]} ${year}: none`)));
  const day = (month) => `${month > 12 ? following(year) : year}-${String(month > 12 ? 1 : month).padStart(2, "0")}-01`;
  const label = `${MONTHS[at]} ${year}: ${count(n, "item")}`;
  return h("li", {}, h("a", { "data-link": true, href: within(state, day(at + 1), day(at + 2)), "aria-label": label, title: label }, inside));
}

const following = (year) => String(Number(year) + 1).padStart(4, "0");

/** The address of the items of a time; another time that was asked for gives way. */
function within(state, from, to) {
  const others = state.where.filter((clause) => understand(clause)?.name !== "taken");
  return addressOf({ ...state, view: "", tab: "", show: "", parts: [], where: [...others, write("taken", ">=", from), write("taken", "<", to)] });
}

/** Arrow keys move among the months that have items. */
function move(event) {
  const step = { ArrowRight: 1, ArrowDown: 1, ArrowLeft: -1, ArrowUp: -1 }[event.key];
  const links = [...event.currentTarget.querySelectorAll("a")], to = step && links[links.indexOf(event.target) + step];
  if (!to) return;
  event.preventDefault();
  to.focus();
}
