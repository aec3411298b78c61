// By what the points of the map are coloured: a palette for values, a ramp for numbers and dates, and the legend.

import { get } from "./api.js";
import { count, h } from "./dom.js";
import { go } from "./state.js";

/* Each is told from its neighbours in the list by how light it is, too, for people who see fewer colours. */
const PALETTES = {
  light: ["#0072b2", "#d55e00", "#00795a", "#aa3377", "#8a6d00", "#3a8fc8", "#cc5fa0", "#5d4037", "#6a51c9", "#5f8f00", "#b3122d", "#767676"],
  dark: ["#5ab4f0", "#ff9a57", "#3ccfa0", "#e07fc0", "#f0d24a", "#a8d8ff", "#ffb6de", "#c9a48f", "#afa0ff", "#b5db5a", "#ff7f9f", "#9aa3ad"],
};
const RAMPS = {
  light: ["#0d0887", "#5601a4", "#900da3", "#bf3984", "#e16462", "#f1844b"],
  dark: ["#a62098", "#cc4778", "#e66c5c", "#f68f44", "#fdb42f", "#f0f921"],
};
const UNKNOWN = { light: "#c3c9d0", dark: "#4a535e" };
const OTHER = 11;  // the label that stands for all others
const STEPS = 64;
export const PLAIN = 255, NONE = 254;  // codes of points where nothing is coloured, or where there is no value

const dark = matchMedia("(prefers-color-scheme: dark)");
const scheme = () => (dark.matches ? "dark" : "light");
export const whenSchemeChanges = (run, signal) => dark.addEventListener("change", run, { signal });

const rgb = (text) => [1, 3, 5].map((at) => parseInt(text.slice(at, at + 2), 16));
const asPixel = ([r, g, b]) => ((255 << 24) | (b << 16) | (g << 8) | r) >>> 0;

function between(stops, share) {
  const place = share * (stops.length - 1), at = Math.min(stops.length - 2, Math.floor(place));
  const [from, to] = [rgb(stops[at]), rgb(stops[at + 1])];
  return from.map((value, channel) => Math.round(value + (to[channel] - value) * (place - at)));
}

/** How the points are coloured: a code for each, and what the codes look like in the present scheme. */
export class Colours {
  hidden = new Set();  // codes that the legend leaves out

  /** found: what the server says of a field, null for one colour. n: how many points. */
  constructor(field, found, n) {
    Object.assign(this, { field, found });
    this.codes = new Uint8Array(n).fill(PLAIN);
    if (!found) return;
    this.isRamp = found.kind === "number" || found.kind === "date";
    const [low, high] = this.isRamp ? ends(found.values) : [0, 0];
    found.values.forEach((value, at) => {
      this.codes[at] = value === null ? NONE : this.isRamp ? Math.round(((value - low) / (high - low || 1)) * (STEPS - 1)) : value;
    });
  }

  /** What each code looks like as a pixel. */
  pixels() {
    const style = getComputedStyle(document.documentElement), now = scheme();
    const table = new Uint32Array(256).fill(asPixel(style.getPropertyValue("--point").split(",").map(Number)));
    table[NONE] = asPixel(rgb(UNKNOWN[now]));
    if (this.isRamp) for (let step = 0; step < STEPS; step += 1) table[step] = asPixel(between(RAMPS[now], step / (STEPS - 1)));
    else if (this.found) PALETTES[now].forEach((colour, code) => { table[code] = asPixel(rgb(colour)); });
    return table;
  }

  /** The same as text, for what is no pixel. */
  css(at) {
    const value = this.pixels()[this.codes[at]];
    return `rgb(${value & 255} ${(value >> 8) & 255} ${(value >> 16) & 255})`;
  }

  isShown = (at) => !this.hidden.has(this.codes[at]);
}

function ends(values) {
  let low = Infinity, high = -Infinity;
  for (const value of values) {
    if (value === null) continue;
    low = Math.min(low, value);
    high = Math.max(high, value);
  }
  return [low, high];
}

export async function loadColours(field, n) {
  return new Colours(field, field ? await get("map/colours", { field }) : null, n);
}

const nameOf = (field) => (field === "path" ? "folder" : field.replaceAll("_", " "));

/** What chooses the field; filled once the fields are known. */
export function colourChoice(state) {
  const select = h("select", { id: "colour", onchange: () => go({ colour: select.value }) }, h("option", { value: "" }, "one colour"));
  if (state.colour) select.append(h("option", { value: state.colour, selected: true }, nameOf(state.colour)));
  get("fields").then(({ fields }) => {
    for (const { name } of fields) if (name !== state.colour) select.append(h("option", { value: name }, nameOf(name)));
  }, () => {});
  return h("span", { class: "colour-choice" }, h("label", { for: "colour" }, "Colour by"), select);
}

/** What the colours mean; its buttons leave some points out. changed(): the points are to be drawn again. */
export function legend(colours, changed) {
  const { found, field } = colours;
  if (!found) return null;
  const body = colours.isRamp ? ramp(colours) : labels(colours, changed);
  return h("section", { class: "legend", "aria-label": "What the colours mean" }, h("h2", {}, h("bdi", {}, nameOf(field))), body);
}

function ramp({ found }) {
  const bar = h("div", { class: "ramp" });
  bar.style.background = `linear-gradient(to right, ${RAMPS[scheme()].join(", ")})`;
  const missing = found.values.filter((value) => value === null).length;
  const text = (value) => (typeof value === "number" ? value.toLocaleString("en", { maximumSignificantDigits: 5, useGrouping: Math.abs(value) >= 1e4 }) : value);
  return [bar, h("div", { class: "ends" }, h("span", {}, text(found.low)), h("span", {}, text(found.high))),
    missing ? h("p", { class: "soft" }, `${count(missing, "item")} without`) : null];
}

function labels(colours, changed) {
  const { found, codes } = colours, counts = new Uint32Array(256);
  for (const code of codes) counts[code] += 1;
  const entries = found.labels.map((label, code) => [label, code]);
  if (counts[NONE]) entries.push(["without", NONE]);
  return h("ul", {}, entries.map(([label, code]) => {
    const swatch = h("span", { class: "swatch", "aria-hidden": "true" });
    swatch.style.background = code === NONE ? UNKNOWN[scheme()] : PALETTES[scheme()][code];
    const box = h("input", { type: "checkbox", checked: !colours.hidden.has(code), onchange: () => {
      if (box.checked) colours.hidden.delete(code);
      else colours.hidden.add(code);
      changed();
    } });
    const isRest = code === NONE || (code === OTHER && label === "other");
    return h("li", {}, h("label", {}, box, swatch, h("bdi", { class: isRest ? "rest" : null }, label),
      h("span", { class: "soft" }, counts[code].toLocaleString("en"))));
  }));
}
