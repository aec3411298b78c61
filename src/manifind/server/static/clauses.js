// Filter clauses: written from what people choose, read back into it, said in words, and joined for the API.

const WORD = /^[A-Za-z_][\w.:-]*$/u;
const RESERVED = new Set(["and", "or", "not", "in", "contains", "true", "false"]);
const NAME = String.raw`([A-Za-z_][\w.:-]*|'(?:[^'\\]|\\.)*')`;
const VALUE = String.raw`('(?:[^'\\]|\\.)*'|[-+]?[\d.]+(?:e[-+]?\d+)?|true|false)`;
const PLAIN = new RegExp(`^${NAME} (=|>=|<=|<|>|contains) ${VALUE}$`, "su");
const AMONG = new RegExp(`^${NAME} in \\((${VALUE}(?:, ${VALUE})*)\\)$`, "su");
const SIGNS = { ">=": "from", "<=": "to", "<": "below", ">": "above", contains: "contains", in: "is" };

const quoted = (text) => `'${text.replace(/[\\']/g, "\\$&")}'`;
const unquoted = (text) => (text.startsWith("'") ? text.slice(1, -1).replace(/\\(.)/gsu, "$1") : text);
const nameText = (name) => (WORD.test(name) && !RESERVED.has(name) ? name : quoted(name));
const valueText = (value) => (typeof value === "string" ? quoted(value) : String(value));

function valueOf(text) {
  if (text.startsWith("'")) return unquoted(text);
  return text === "true" || text === "false" ? text === "true" : Number(text);
}

/** A clause: name, sign, and one value, or several for "in" and "contains" of which one is enough. */
export function write(name, sign, values) {
  const written = [values].flat().map(valueText), field = nameText(name);
  if (sign === "in") return written.length > 1 ? `${field} in (${written.join(", ")})` : `${field} = ${written[0]}`;
  return written.map((value) => `${field} ${sign} ${value}`).join(" or ");
}

/** What `write` was given; null for a clause that somebody wrote differently. */
export function understand(clause) {
  const found = parsed(clause);
  return found && write(found.name, found.sign, found.values) === clause ? found : null;
}

function parsed(clause) {
  const among = AMONG.exec(clause);
  if (among) {
    return { name: unquoted(among[1]), sign: "in", values: [...among[2].matchAll(new RegExp(VALUE, "gsu"))].map(([text]) => valueOf(text)) };
  }
  const plain = PLAIN.exec(clause);
  if (plain) return { name: unquoted(plain[1]), sign: plain[2] === "=" ? "in" : plain[2], values: [valueOf(plain[3])] };
  return someOf(clause);
}

/** name contains 'a' or name contains 'b' */
function someOf(clause) {
  const one = new RegExp(`${NAME} contains ${VALUE}(?: or |$)`, "gsuy");
  const found = [];
  while (one.lastIndex < clause.length) {
    const match = one.exec(clause);
    if (!match || (found.length && match[1] !== found[0][1])) return null;
    found.push(match);
  }
  return found.length ? { name: unquoted(found[0][1]), sign: "contains", values: found.map((match) => valueOf(match[2])) } : null;
}

/** A clause as people say it. */
export function inWords(clause) {
  const known = understand(clause);
  if (!known) return clause;
  const isDate = known.sign === "<" && typeof known.values[0] === "string";
  return `${known.name} ${isDate ? "before" : SIGNS[known.sign]} ${known.values.map((value) => String(value)).join(" or ")}`;
}

/** All clauses as one text, each of which must hold. */
export const joined = (clauses) => (clauses.length > 1 ? clauses.map((clause) => `(${clause})`).join(" and ") : clauses[0] ?? "");
