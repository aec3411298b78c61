// Why a result belongs there: the strongest path through the graph, picture by picture, with the weights of the edges.

import { get } from "./api.js";
import { nameOf, pathOf, thumbnail } from "./cards.js";
import { byId, count, h, problemBox } from "./dom.js";
import { shortLabelOf, singlePart } from "./query.js";

/** parts: of the query; each has a path of its own, so that of several one is chosen. */
export async function showWhy(parts, item, facts) {
  const dialog = byId("dialog"), body = h("div");
  const wanted = parts.filter((part) => part.sign > 0);
  const choose = (at) => {
    [...choice.children].forEach((button, other) => button.setAttribute("aria-pressed", String(other === at)));
    explain(body, wanted[at], item, facts);
  };
  const choice = h("div", { role: "group", "aria-label": "From which part of the query", class: "methods" },
    wanted.map((part, at) => h("button", { type: "button", onclick: () => choose(at) }, shortLabelOf(part))));
  dialog.replaceChildren(h("h2", { id: "dialog-title" }, "Why ", h("bdi", {}, nameOf(pathOf(item))), "?"),
    ...(wanted.length > 1 ? [choice] : []), body,
    h("form", { method: "dialog" }, h("button", { class: "primary" }, "Close")));
  if (!dialog.open) dialog.showModal();
  if (wanted.length) choose(0);
  else body.replaceChildren(h("p", {}, "The query asks only for less of something, and no path leads away from that."));
}

async function explain(body, part, item, facts) {
  body.replaceChildren("looking for the way…");
  body.turn = part;
  const found = await get("why", { ...singlePart([part]), result: item.id }).catch((problem) => ({ problem }));
  if (body.turn !== part) return;  // another part was chosen meanwhile
  body.replaceChildren(...(found.problem ? [problemBox(found.problem)] : explained(found, part, facts)));
}

function explained(found, part, facts) {
  if (!found.path.length) return [h("p", {}, "No path of the graph leads there; it is near in the learned features alone.")];
  const steps = found.path.map((step, at) => [
    at === 0 ? null : h("li", { class: "edge" }, h("span", { "aria-hidden": "true" }, "→"), ` ${step.weight.toFixed(3)}`,
      h("meter", { min: 0, max: 1, value: step.weight, "aria-label": "weight of the edge" })),
    h("li", {}, step.id === null ? theQuery(part, facts) : h("figure", {}, thumbnail(facts.pictures, { id: step.id }, step.id),
      h("figcaption", {}, h("bdi", {}, nameOf(step.path ?? step.id))))),
  ]);
  const hops = found.path.length - 1;
  const words = hops === 1 ? "They are neighbours in the graph." :
    `${count(hops - 1, "item")} on the way: each is a neighbour of the next, though the ends need not look alike.`;
  return [h("p", {}, words, " The weight of an edge is the share of what flows along it in one step."), h("ol", { class: "path" }, steps)];
}

function theQuery(part, facts) {
  const hasPicture = facts.pictures && part.kind !== "text";
  return h("figure", {}, thumbnail(hasPicture, { [part.kind]: part.value }, shortLabelOf(part)), h("figcaption", {}, "the query"));
}
