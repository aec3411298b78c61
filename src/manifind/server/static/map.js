// The map: every item a point, near what it is like; coloured by a field, with a query, its answers and the selection marked.

import { finished, get, getMap } from "./api.js";
import { card, withArrows } from "./cards.js";
import { queryChips } from "./chips.js";
import { joined } from "./clauses.js";
import { Colours, colourChoice, legend, loadColours, whenSchemeChanges } from "./colours.js";
import { count, h, problemBox } from "./dom.js";
import { filterBar } from "./filters.js";
import { progressInWords } from "./jobs.js";
import { Lasso } from "./lasso.js";
import { PointMap } from "./points.js";
import { searchParts } from "./query.js";
import { selection } from "./selection.js";
import { go } from "./state.js";

const SPACES = { features: "Learned features", descriptors: "Descriptors" };
const ANSWERS = 24;
const HELP = "Drag to move, scroll or pinch to zoom, click to look; draw with the lasso to select. ";
const KEYS = "Shift and drag draws, too. With keys: arrows and plus, minus, 0; Enter looks, Space selects, L draws a ring.";

const looked = {};  // how each map was last looked at, by space
let kept = new Map();  // what was loaded and holds until the collection changes
let leave = new AbortController();

addEventListener("changed", () => { kept = new Map(); });

/** What `load` gives, asked for once. */
function once(key, load) {
  if (!kept.has(key)) {
    const found = load();
    kept.set(key, found);
    found.catch(() => kept.delete(key));
  }
  return kept.get(key);
}

const ids = () => once("ids", async () => (await get("map/ids")).ids);
const places = () => once("places", async () => new Map((await ids()).map((id, at) => [id, at])));

/** how: what `state.start` says of the rendering. */
export async function showMap(main, state, facts, isCurrent, how) {
  const space = state.space || "features";
  const bar = h("progress", { "aria-label": "Progress of the map" }), words = h("span");
  const place = h("div", {}, h("p", {}, bar, " ", words)), tools = h("div", { class: "tools" }, spaceButtons(space), colourChoice(state));
  const parts = [headOf(state, facts), tools, place];
  if (!how.anew) main.replaceChildren(...parts);
  leave.abort();
  leave = new AbortController();
  const heard = (job) => {
    words.textContent = `${progressInWords(job)}…`;
    if (job.total > 1) Object.assign(bar, { max: job.total, value: job.done });
  };
  try {
    const points = await once(`points ${space}`, () => loadPoints(space, heard));
    const [colours, problems] = await settled(loadColours(state.colour, points.length / 2), new Colours("", null, points.length / 2));
    if (isCurrent()) await new MapView({ points, colours, space, state, facts, isCurrent, signal: leave.signal }).show(place, tools, problems);
  } catch (problem) {
    if (isCurrent()) place.replaceChildren(problemBox(problem));
  }
  if (how.anew && isCurrent()) main.replaceChildren(...parts);
}

/** A result, or what stands in for it with what went wrong. */
const settled = (promise, instead) => promise.then((found) => [found, []], (problem) => [instead, [problem]]);

function headOf(state, facts) {
  return h("section", { class: "query", "aria-label": "Map" },
    state.parts.length ? queryChips(state, facts) : h("h1", {}, `Map of ${count(facts.items, "item")}`),
    h("div", { class: "controls" }, filterBar(state, facts)));
}

function spaceButtons(space) {
  return h("div", { role: "group", class: "methods", "aria-label": "What the map is made of" }, Object.entries(SPACES).map(([one, label]) =>
    h("button", { type: "button", id: `space-${one}`, "aria-pressed": String(space === one), onclick: () => go({ space: one === "features" ? "" : one }) }, label)));
}

async function loadPoints(space, heard) {
  let found = await getMap(space);
  while (found.job) {
    heard(found.job);
    await finished(found.job, heard);
    found = await getMap(space);
  }
  return found.points;
}

/** The map that is shown, and what belongs to it. */
class MapView {
  constructor(given) {
    Object.assign(this, given);
    this.status = h("p", { role: "status", class: "found" });
    this.said = (text) => { this.status.textContent = text; };
    this.map = new PointMap({ ...given, ids, said: this.said, open: (id) => go({ show: id }), toggle: (at) => this.toggle(at) });
    Object.assign(this.map, looked[this.space] ?? {});
    this.lasso = new Lasso(this.map, { select: (inside) => this.select(inside), said: this.said });
    this.key = h("div", { class: "key" });
    this.found = h("section", { class: "answers", "aria-label": "Answers", hidden: true });
    this.signal.addEventListener("abort", () => {
      const { x, y, zoom } = this.map;
      looked[this.space] = { x, y, zoom };
    });
  }

  async show(place, tools, problems) {
    tools.append(this.buttons(), this.status);
    place.replaceChildren(...problems.map((problem) => problemBox(problem)),
      h("p", { class: "soft", id: "map-help" }, HELP, h("span", { class: "keys" }, KEYS)), h("div", { class: "map-and-key" }, this.map.box, this.key), this.found);
    this.showKey();
    whenSchemeChanges(() => {
      this.map.recolour();
      this.showKey();
    }, this.signal);
    addEventListener("selection", () => this.markSelection(), { signal: this.signal });
    await Promise.all([this.markSelection(), this.markFitting(), this.markAnswers()]).catch((problem) => place.prepend(problemBox(problem)));
  }

  buttons() {
    const button = (id, text, label, run) => h("button", { type: "button", id, "aria-label": label, title: label, onclick: run }, text);
    return h("div", { role: "group", "aria-label": "Look closer", class: "methods" },
      button("closer", "+", "Closer", () => this.map.closer()),
      button("further", "−", "Further", () => this.map.further()),
      button("whole", "Whole", "The whole map", () => this.map.whole()), this.lasso.button);
  }

  showKey() {
    this.key.replaceChildren(...[legend(this.colours, () => this.map.draw())].filter(Boolean));
  }

  async select(inside) {
    const known = await ids();
    selection.range(inside.map((at) => known[at]));
  }

  async toggle(at) {
    if (at < 0) return;
    const id = (await ids())[at];
    selection.toggle(id);
    this.said(`${id} ${selection.has(id) ? "selected" : "no longer selected"}`);
  }

  async markSelection() {
    if (selection.size === 0) this.map.chosen = null;
    else {
      const at = await places();
      this.map.chosen = new Uint8Array(this.map.n);
      for (const id of selection) if (at.has(id)) this.map.chosen[at.get(id)] = 1;
    }
    this.map.draw();
  }

  /** Items that do not satisfy the filter are faint, and cannot be pointed at. */
  async markFitting() {
    if (!this.state.where.length) return;
    const [at, fitting] = await Promise.all([places(), get("map/ids", { where: joined(this.state.where) })]);
    this.map.fitting = new Uint8Array(this.map.n);
    for (const id of fitting.ids) this.map.fitting[at.get(id)] = 1;
    this.said(`${count(fitting.ids.length, "item")} of ${this.map.n.toLocaleString("en")} ${fitting.ids.length === 1 ? "satisfies" : "satisfy"} the filter`);
    this.map.draw();
  }

  async markAnswers() {
    const { parts, where } = this.state;
    if (!parts.length) return;
    const [at, { results }] = await Promise.all([places(), searchParts(parts, { k: ANSWERS, where })]);
    const asked = new Set(parts.filter(({ kind }) => kind === "id").map(({ value }) => value));
    this.map.query = [...asked].map((id) => at.get(id)).filter((one) => one !== undefined);
    this.map.answers = results.filter(({ id }) => !asked.has(id) && at.has(id)).map(({ id }) => at.get(id));
    this.map.draw();
    if (this.isCurrent()) this.list(results, at);
  }

  /** The answers as cards; the one that is pointed at is ringed on the map. */
  list(results, at) {
    const grid = withArrows(h("ol", { class: "grid" }));
    grid.append(...results.map((item) => card(item, { pictures: this.facts.pictures, parts: this.state.parts })));
    const pointAt = (event) => this.map.point(at.get(event.target.closest(".card")?.dataset.id) ?? -1);
    grid.addEventListener("focusin", pointAt);
    grid.addEventListener("pointerover", pointAt);
    grid.addEventListener("pointerleave", () => this.map.point(-1));
    this.found.replaceChildren(h("h2", {}, results.length === 1 ? "The answer" : `The first ${count(results.length, "answer")}`), grid);
    this.found.hidden = !results.length;
  }
}
