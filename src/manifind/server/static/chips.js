// The query as chips: what is asked for, more or less of it, each to be turned or removed.

import { startAdding } from "./ask.js";
import { thumbnail } from "./cards.js";
import { h } from "./dom.js";
import { labelOf, queryInWords, removePart, shortLabelOf, turnPart } from "./query.js";
import { addressOf, read } from "./state.js";

export function queryChips(state, facts) {
  return h("div", { class: "asked" },
    h("h1", { class: "hidden" }, queryInWords(state.parts)),
    h("ul", { class: "parts", "aria-label": "Query" }, state.parts.map((part, at) => chip(part, at, state, facts))),
    h("button", { type: "button", id: "add-part", onclick: startAdding, title: "Search by several things together" }, "Add…"));
}

function chip(part, at, state, facts) {
  const name = labelOf(part), isLess = part.sign < 0;
  const turn = h("button", { type: "button", class: "turn", id: `turn-${at}`, onclick: () => turnPart(at), "aria-pressed": String(isLess),
    "aria-label": `Less like ${name}`, title: isLess ? "less like this; press for more" : "more like this; press for less" }, isLess ? "−" : "+");
  return h("li", { class: isLess ? "part less" : "part" }, turn,
    part.kind === "text" ? h("bdi", {}, name) : seen(part, name, facts),
    h("button", { type: "button", class: "off", id: `off-${at}`, onclick: () => removePart(at), title: "Remove",
      "aria-label": `Remove ${name} from the query` }, "×"));
}

/** A picture or an item; an item leads to the viewer. */
function seen(part, name, facts) {
  const inside = [facts.pictures ? picture(part) : null, h("bdi", { title: name }, shortLabelOf(part))];
  if (part.kind === "upload") return h("span", { class: "seen" }, inside);
  return h("a", { class: "seen", "data-link": true, href: addressOf({ ...read(), show: part.value }), "aria-label": `Look at ${name}` }, inside);
}

/** Its thumbnail; where only a part of it is asked for, that is framed. */
function picture(part) {
  const image = thumbnail(true, { [part.kind]: part.value }, "");
  const shares = part.crop.split(",").map(Number);
  if (!part.crop || shares.some((share) => share > 1)) return h("span", { class: "small" }, image);
  const frame = h("span", { class: "frame" });
  ["left", "top", "width", "height"].forEach((side, at) => { frame.style[side] = `${shares[at] * 100}%`; });
  return h("span", { class: "small" }, image, frame);
}
