// Why a result belongs there: the strongest path through the graph, picture by picture, with the weights of the edges.

import { get } from "./api.js";
import { nameOf, pathOf, thumbnail } from "./cards.js";
import { byId, count, h, problemBox } from "./dom.js";

export async function showWhy(asked, item, facts) {
  const dialog = byId("dialog");
  const body = h("div", {}, "looking for the way…");
  dialog.replaceChildren(
    h("h2", { id: "dialog-title" }, `Why ${nameOf(pathOf(item))}?`), body,
    h("form", { method: "dialog" }, h("button", { class: "primary" }, "Close")));
  if (!dialog.open) dialog.showModal();
  try {
    const found = await get("why", { ...asked, result: item.id });
    body.replaceChildren(...explained(found, asked, facts));
  } catch (problem) {
    body.replaceChildren(problemBox(problem));
  }
}

function explained(found, asked, facts) {
  if (!found.path.length) return [h("p", {}, "No path of the graph leads there; it is near in the learned features alone.")];
  const steps = found.path.map((step, at) => [
    at === 0 ? null : h("li", { class: "edge" }, h("span", { "aria-hidden": "true" }, "→"), ` ${step.weight.toFixed(3)}`,
      h("meter", { min: 0, max: 1, value: step.weight, "aria-label": "weight of the edge" })),
    h("li", {}, h("figure", {}, thumbnail(facts.pictures && !(step.id === null && asked.text), step.id === null ? asked : { id: step.id }, step.id ?? asked.text ?? "the query"),
      h("figcaption", {}, step.id === null ? "the query" : nameOf(step.path ?? step.id)))),
  ]);
  const hops = found.path.length - 1;
  const words = hops === 1 ? "They are neighbours in the graph." :
    `${count(hops - 1, "item")} on the way: each is a neighbour of the next, though the ends need not look alike.`;
  return [h("p", {}, words, " The weight of an edge is the share of what flows along it in one step."), h("ol", { class: "path" }, steps)];
}
