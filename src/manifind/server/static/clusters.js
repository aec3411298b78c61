// Groups of the learned space: what lies together, with a name from its metadata where there is one.

import { get } from "./api.js";
import { card, pathOf, nameOf, thumbnail, withArrows } from "./cards.js";
import { count, h } from "./dom.js";
import { Endless } from "./lists.js";
import { made } from "./made.js";
import { addressOf } from "./state.js";

const MOST = 500;  // items of one request

export async function showClusters(panel, view) {
  const { state, facts, isCurrent } = view;
  const { clusters } = await made("clusters", {}, { place: panel, doing: "looking for groups", isCurrent });
  if (!isCurrent() || !clusters) return;
  if (state.cluster) await showOne(panel, view, clusters.find(({ number }) => String(number) === state.cluster));
  else panel.replaceChildren(
    h("p", {}, clusters.length === 1 ? "All items are alike: there is one group." : `${count(clusters.length, "group")} of items that are alike, the largest first.`),
    h("ol", { class: "clusters" }, clusters.map((cluster) => clusterBox(cluster, state, facts))));
}

function clusterBox({ number, items, name, reason, examples }, state, facts) {
  const label = `${name}: ${count(items, "item")}`;
  const seen = examples.map((item) => (facts.pictures ? thumbnail(true, { id: item.id }, "") : h("span", { class: "none" }, h("bdi", {}, nameOf(pathOf(item))))));
  return h("li", {}, h("a", { class: "cluster", id: `cluster-${number}`, "data-link": true, "aria-label": label, href: addressOf({ ...state, cluster: String(number) }) },
    h("span", { class: "examples" }, seen),
    h("strong", {}, h("bdi", {}, name)), h("span", { class: "soft" }, count(items, "item"))),
    reason ? h("p", { class: "soft" }, h("bdi", {}, unbroken(reason))) : null);
}

/** A share is not parted from its sign. */
const unbroken = (reason) => reason.replaceAll(" %", "\u00a0%");

async function showOne(panel, { state, facts, isCurrent, how }, cluster) {
  const back = h("a", { "data-link": true, href: addressOf({ ...state, cluster: "" }) }, "All groups");
  if (!cluster) {
    panel.replaceChildren(h("p", {}, back), h("p", {}, `There is no group ${state.cluster}; the groups may have been found anew since.`));
    return;
  }
  const grid = withArrows(h("ol", { class: "grid" }));
  const load = async (offset, limit) => {
    const found = await get("items", { cluster: cluster.number, offset, limit });
    return { items: found.items, more: offset + found.items.length < found.total };
  };
  const append = ({ items }) => {
    grid.append(...items.map((item) => card(item, { pictures: facts.pictures })));
    return items.length;
  };
  const list = new Endless({ load, append, most: MOST, isCurrent, wanted: how.shown });
  await list.begin();
  if (isCurrent()) panel.replaceChildren(h("p", {}, back), h("h2", {}, h("bdi", {}, cluster.name), h("span", { class: "soft" }, ` ${count(cluster.items, "item")}`)),
    cluster.reason ? h("p", { class: "soft" }, h("bdi", {}, unbroken(cluster.reason))) : "", grid, list.end);
  list.look();
}
