// The collection page: what is in it, what was learned, whether that can be trusted, what was done last, what can be added.

import { addControls } from "./add.js";
import { get } from "./api.js";
import { lineChart } from "./charts.js";
import { count, h, problemBox } from "./dom.js";
import { judgedSummary } from "./judge.js";
import { undo } from "./marking.js";

const GRAPH = ["nodes", "edges", "connected_components", "nodes_without_edge"];
const MODEL = ["dimension", "feature_dimension", "steps", "seconds", "energy_kept", "seed"];
const MOST_CHANGES = 5;  // that are shown at once

/** how: what `state.start` says of the rendering. */
export async function showCollection(main, state, facts, how) {
  const changes = await get("changes").then((found) => listOf(found.changes, facts), problemBox);
  if (how.isCurrent()) main.replaceChildren(h("h1", {}, h("bdi", {}, facts.name)), ...sections(facts, changes));
}

function sections(facts, changes) {
  const { info, settings } = facts, adding = addControls(facts);
  const graph = { kind: settings.graph, neighbours: settings.n_neighbors === "None" ? "30" : settings.n_neighbors,
    similarity: settings.similarity, ...pick(info, GRAPH) };
  const charts = [
    facts.edge_weights.length > 1 && lineChart(facts.edge_weights, { title: "Weight of the strongest edge, the second, …", across: "neighbour" }),
    facts.loss.length > 1 && lineChart(facts.loss, { title: "Loss while it was trained", across: "step" }),
  ].filter(Boolean);
  const section = (title, ...parts) => h("section", {}, h("h2", {}, title), ...parts);
  return [
    section("Can it be trusted?", h("p", {}, facts.verdict), adding ? null : h("p", {}, facts.drift)),
    section("What was judged", judgedSummary(facts)),
    adding ? section("Add", adding) : null,
    section("Last changes", changes),
    h("div", { class: "charts" },
      section("Items", table({ items: facts.items, added_since_fit: facts.added_since_fit,
        removed_since_fit: facts.removed_since_fit, fitted: when(facts.created) })),
      section("Graph", table(graph)),
      section("Model", table(pick(info, MODEL)))),
    h("div", { class: "charts" }, charts),
    h("details", {}, h("summary", {}, "All settings"), table(settings)),
  ].filter(Boolean);
}

/** The changes that can be undone, one after another, the last one first. */
function listOf(changes, facts) {
  if (!changes.length) return h("p", {}, "Nothing has been changed since the fit that could be undone.");
  const lines = changes.map((change, at) => h("li", {}, h("bdi", {}, change.label), h("span", { class: "soft" }, ` ${when(change.made)}, ${count(change.items, "item")} `),
    facts.can_edit && !at ? h("button", { type: "button", id: "undo-last", onclick: (event) => press(event, change.step) }, "Undo") : null));
  const more = lines.splice(MOST_CHANGES);
  return h("div", { class: "changes" }, h("ol", {}, lines),
    more.length ? h("details", {}, h("summary", {}, `${count(more.length, "change")} before these`), h("ol", { start: MOST_CHANGES + 1 }, more)) : null);
}

async function press(event, step) {
  event.currentTarget.disabled = true;  // the list is drawn anew
  await undo(step);
}

function when(text) {
  const date = new Date(text);
  return Number.isNaN(date.getTime()) ? text : date.toLocaleString("en-GB", { dateStyle: "medium", timeStyle: "short" });
}

const pick = (from, names) => Object.fromEntries(names.filter((name) => name in from).map((name) => [name, from[name]]));

function table(facts) {
  const rows = Object.entries(facts).map(([name, value]) =>
    h("tr", {}, h("th", { scope: "row" }, name.replaceAll("_", " ")), h("td", {}, shown(value))));
  return h("table", { class: "facts-table" }, h("tbody", {}, rows));
}

function shown(value) {
  if (typeof value !== "number") return String(value ?? "–");
  return Number.isInteger(value) ? value.toLocaleString("en") : value.toPrecision(4);
}
