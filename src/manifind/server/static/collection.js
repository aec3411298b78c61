// The collection page: what is in it, what was learned, whether that can be trusted, and how far it has moved since.

import { finished, get, send } from "./api.js";
import { lineChart } from "./charts.js";
import { h, problemBox, say } from "./dom.js";

const GRAPH = ["nodes", "edges", "connected_components", "nodes_without_edge"];
const MODEL = ["dimension", "feature_dimension", "steps", "seconds", "energy_kept", "seed"];

export async function showCollection(main) {
  try {
    const facts = await get("collection");
    main.replaceChildren(h("h1", {}, facts.name), ...sections(facts));
    say("");
  } catch (problem) {
    main.replaceChildren(problemBox(problem));
  }
}

function sections(facts) {
  const { info, settings } = facts;
  const graph = { kind: settings.graph, neighbours: settings.n_neighbors === "None" ? "30" : settings.n_neighbors,
    similarity: settings.similarity, ...pick(info, GRAPH) };
  const charts = [
    facts.edge_weights.length > 1 && lineChart(facts.edge_weights, { title: "Weight of the strongest edge, the second, …", across: "neighbour" }),
    facts.loss.length > 1 && lineChart(facts.loss, { title: "Loss while it was trained", across: "step" }),
  ].filter(Boolean);
  return [
    h("h2", {}, "Can it be trusted?"), h("p", {}, facts.verdict), h("p", {}, facts.drift),
    facts.can_edit ? refitButton() : null,
    h("div", { class: "charts" },
      h("section", {}, h("h2", {}, "Items"), table({ items: facts.items, added_since_fit: facts.added_since_fit,
        removed_since_fit: facts.removed_since_fit, created: facts.created })),
      h("section", {}, h("h2", {}, "Graph"), table(graph)),
      h("section", {}, h("h2", {}, "Model"), table(pick(info, MODEL)))),
    h("div", { class: "charts" }, charts),
    h("details", {}, h("summary", {}, "All settings"), table(settings)),
  ].filter(Boolean);
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

function refitButton() {
  const bar = h("progress", { hidden: true, "aria-label": "Progress of the refit" });
  const words = h("span");
  const button = h("button", { onclick: async () => {
    button.disabled = true;
    bar.hidden = false;
    try {
      await finished(await send("POST", "refit"), (job) => {
        words.textContent = ` ${job.stage} ${job.done} of ${job.total} ${job.note}`;
        if (job.total) Object.assign(bar, { max: job.total, value: job.done });
      });
      say("fitted anew");
      dispatchEvent(new Event("changed"));
    } catch (problem) {
      words.textContent = ` ${problem.message} ${problem.hint}`;
      button.disabled = false;
    }
  } }, "Fit anew");
  return h("p", {}, button, " ", bar, words);
}
