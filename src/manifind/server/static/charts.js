// A line through some numbers, as SVG.

import { count, h } from "./dom.js";

const W = 420, H = 190, LEFT = 46, BOTTOM = 26, TOP = 10;

export function lineChart(values, { title, across }) {
  const top = Math.max(...values), low = Math.min(0, ...values);
  const x = (at) => LEFT + (values.length < 2 ? 0 : (at / (values.length - 1)) * (W - LEFT - 8));
  const y = (value) => TOP + (1 - (value - low) / (top - low || 1)) * (H - TOP - BOTTOM);
  const line = values.map((value, at) => `${at ? "L" : "M"}${x(at).toFixed(1)} ${y(value).toFixed(1)}`).join("");
  const ticks = [low, (low + top) / 2, top];
  return h("figure", {}, h("figcaption", {}, title),
    h("svg", { class: "chart", viewBox: `0 0 ${W} ${H}`, role: "img",
      "aria-label": `${title}: from ${values[0].toPrecision(3)} to ${values.at(-1).toPrecision(3)} over ${count(values.length, across)}` },
    ticks.map((tick) => [h("line", { x1: LEFT, x2: W, y1: y(tick), y2: y(tick) }),
      h("text", { x: LEFT - 5, y: y(tick) + 4, "text-anchor": "end" }, tick.toPrecision(2))]),
    h("path", { d: line }),
    h("text", { x: LEFT, y: H - 6 }, "1"), h("text", { x: W - 4, y: H - 6, "text-anchor": "end" }, count(values.length, across))));
}
