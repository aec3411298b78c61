// Controls of the filter panel, one for each kind of field: ranges, dates, choices with their numbers, texts.

import { count, h } from "./dom.js";

const DAY = /^\d{4}-\d\d-\d\d$/;

let made = 0;
const newId = () => `control-${made += 1}`;

/** The control of a field, null where all items are the same: {name, element, take(clause), clauses()}. */
export function controlOf(field, nItems) {
  if (field.different === 1 && field.items === nItems) return null;
  const isChoice = field.values.length > 0 && ["text", "truth", "list"].includes(field.kind);
  const make = isChoice ? choices : { number: range, date: days, text: containing, list: containing }[field.kind];
  return make ? { name: field.name, ...make(field) } : null;
}

const group = (field, ...inside) => h("fieldset", { class: "field" }, h("legend", {}, h("bdi", {}, field.name.replaceAll("_", " "))), inside);

function labelled(text, input) {
  input.id = newId();
  return h("span", { class: "labelled" }, h("label", { for: input.id }, text), input);
}

const between = (from, to) => h("div", { class: "bounds" }, labelled("from", from), labelled("to", to));

/** From one number to another; the lowest and the highest that there are stand in the empty inputs. */
function range(field) {
  const input = (value) => h("input", { type: "number", step: "any", placeholder: value });
  const from = input(field.low), to = input(field.high);
  const value = (one) => (one.value === "" ? null : Number(one.value));
  return {
    element: group(field, between(from, to)),
    take: ({ sign, values }) => typeof values[0] === "number" && fill({ ">=": from, "<=": to }[sign], values[0]),
    clauses: () => bounds([[">=", value(from)], ["<=", value(to)]]),
  };
}

/** From one day to another, both included; times are texts that begin with their day. */
function days(field) {
  const from = h("input", { type: "date" }), to = h("input", { type: "date" });
  const said = field.low ? h("p", { class: "soft" }, `${field.low.slice(0, 10)} to ${field.high.slice(0, 10)}`) : null;
  const take = ({ sign, values: [value] }) => typeof value === "string" && DAY.test(value) &&
    (sign === "<" ? fill(to, dayBeside(value, -1)) : fill({ ">=": from }[sign], value));
  return {
    element: group(field, between(from, to), said),
    take,
    clauses: () => bounds([[">=", from.value || null], ["<", to.value ? dayBeside(to.value, 1) : null]]),
  };
}

function dayBeside(day, step) {
  const date = new Date(`${day}T00:00:00Z`);
  date.setUTCDate(date.getUTCDate() + step);
  return date.toISOString().slice(0, 10);
}

/** Some of the values that there are, of which an item has any. */
function choices(field) {
  const sign = field.kind === "list" ? "contains" : "in";
  const boxes = field.values.map(({ value, items }) => ({ value, box: h("input", { type: "checkbox", id: newId() }), items }));
  const list = boxes.map(({ value, box, items }) => h("li", {}, box,
    h("label", { for: box.id }, h("bdi", {}, String(value)), h("span", { class: "soft" }, ` ${items.toLocaleString("en")}`))));
  const others = field.different - field.values.length;
  return {
    element: group(field, h("ul", { class: "choices" }, list), others > 0 ? h("p", { class: "soft" }, `and ${count(others, "other value")}`) : null),
    take: (known) => {
      const meant = boxes.filter(({ value }) => known.values.includes(value));
      if (known.sign !== sign || meant.length !== known.values.length || boxes.some(({ box }) => box.checked)) return false;
      for (const { box } of meant) box.checked = true;
      return true;
    },
    clauses: () => {
      const values = boxes.filter(({ box }) => box.checked).map(({ value }) => value);
      return values.length ? [{ sign, values }] : [];
    },
  };
}

/** A part of a text, where there are too many different ones to choose from. */
function containing(field) {
  const input = h("input", { type: "text", autocomplete: "off", spellcheck: "false", autocapitalize: "off" });
  return {
    element: group(field, labelled("contains", input)),
    take: ({ sign, values }) => sign === "contains" && values.length === 1 && typeof values[0] === "string" && fill(input, values[0]),
    clauses: () => (input.value ? [{ sign: "contains", values: [input.value] }] : []),
  };
}

const bounds = (pairs) => pairs.filter(([, value]) => value !== null).map(([sign, value]) => ({ sign, values: [value] }));

/** Fill an input that is still empty; false where there is none. */
function fill(input, value) {
  if (!input || input.value !== "") return false;
  input.value = value;
  return true;
}
