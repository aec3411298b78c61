// The query: its parts as the API wants them and as people read them, and what adds, turns and removes one.

import { get, send } from "./api.js";
import { nameOf } from "./cards.js";
import { joined } from "./clauses.js";
import { go, read } from "./state.js";

const NAMES = "names of uploads";  // a file name stays in this tab: the address has a key only

/** The parts as the API takes them. */
export const partsAsJson = (parts) => parts.map(({ sign, kind, value, crop }) => (
  { [kind]: value, weight: sign, ...(crop ? { crop: crop.split(",").map(Number) } : {}) }));

/** The parts as parameters of an address, where there is but one and it is wanted; null otherwise. */
export const singlePart = (parts) => {
  const [{ sign, kind, value, crop }] = parts;
  return parts.length === 1 && sign > 0 ? { [kind]: value, ...(crop ? { crop } : {}) } : null;
};

/** What is like a query; where: clauses. */
export const searchParts = (parts, { where = [], method = "gradnet", ...rest }, signal) =>
  answer(parts, ["search", "search/combined"], { ...rest, method, where: joined(where) }, signal);

/** The same by GRAD-Net and by plain neighbours. */
export const compareParts = (parts, { where = [], ...rest }, signal) =>
  answer(parts, ["compare", "compare/combined"], { ...rest, where: joined(where) }, signal);

function answer(parts, [forOne, forSeveral], options, signal) {
  const one = singlePart(parts);
  if (one) return get(forOne, { ...one, ...options }, signal);
  const json = { ...options, where: options.where || null, parts: partsAsJson(parts) };
  return send("POST", forSeveral, { json, signal });
}

/** A part in words: its id, the name of the file, or the words in quotes. */
export function labelOf({ kind, value, crop }) {
  const label = { id: () => value, text: () => `“${value}”`, upload: () => uploadNames()[value] ?? "uploaded picture" }[kind]();
  return crop ? `part of ${label}` : label;
}

/** The same, without folders. */
export const shortLabelOf = (part) => (part.kind === "id" ? labelOf({ ...part, value: nameOf(part.value) }) : labelOf(part));

/** The whole query in words. */
export function queryInWords(parts) {
  const [first, ...rest] = parts.map((part) => `${part.sign < 0 ? "− " : ""}${labelOf(part)}`);
  return [first, ...rest.map((label) => (label.startsWith("− ") ? label : `+ ${label}`))].join(" ");
}

const uploadNames = () => JSON.parse(sessionStorage.getItem(NAMES) ?? "{}");

/** Remember what the file of an upload was called. */
export const nameUpload = (key, name) => sessionStorage.setItem(NAMES, JSON.stringify({ ...uploadNames(), [key]: name }));

const isSame = (a, b) => ["kind", "value", "crop"].every((key) => a[key] === b[key]);

/** Ask for these things only. */
export const ask = (parts) => go({ view: "", name: "", show: "", all: "", parts });

/** Ask for this too: more like it, or less; the same thing is never in a query twice. */
export const addPart = (part) => ask([...read().parts.filter((one) => !isSame(one, part)), { crop: "", sign: 1, ...part }]);

export const removePart = (at) => go({ parts: read().parts.filter((_, other) => other !== at) });

/** More like it where it was less, and less where it was more. */
export const turnPart = (at) => go({ parts: read().parts.map((one, other) => (other === at ? { ...one, sign: -one.sign } : one)) });
