// The API in words, from its own description.

import { get } from "./api.js";
import { byId, h, problemBox } from "./dom.js";
import { askForToken } from "./token.js";

const place = byId("paths");
let description = {};

async function show() {
  try {
    description = await get("openapi.json");
    place.replaceChildren(...sections());
  } catch (problem) {
    if (problem.status !== 401) place.replaceChildren(problemBox(problem, show));
  }
}

const sections = () => Object.entries(description.paths ?? {}).flatMap(([path, methods]) =>
  Object.entries(methods).map(([method, about]) => section(path, method, about)));

function section(path, method, about) {
  const parameters = (about.parameters ?? []).map((one) => h("tr", {},
    h("th", { scope: "row" }, one.name + (one.required ? "" : " (optional)")),
    h("td", {}, [one.description, typeOf(one.schema)].filter(Boolean).join(" · "))));
  const body = Object.entries(about.requestBody?.content ?? {}).map(([kind, { schema }]) =>
    h("p", {}, `body: ${kind}`, schema?.$ref ? h("pre", {}, JSON.stringify(fieldsOf(schema.$ref), null, 2)) : null));
  return h("section", {}, h("h2", {}, `${method.toUpperCase()} ${path}`), h("p", {}, about.summary ?? ""),
    parameters.length ? h("table", { class: "facts-table" }, h("tbody", {}, parameters)) : null, body);
}

function typeOf(schema = {}) {
  const one = (schema.anyOf ?? [schema]).filter((part) => part.type !== "null")[0] ?? {};
  const range = [one.minimum !== undefined && `from ${one.minimum}`, one.maximum !== undefined && `to ${one.maximum}`];
  return [one.enum ? one.enum.join(" or ") : one.type, ...range, schema.default !== undefined && `else ${schema.default}`]
    .filter(Boolean).join(", ");
}

function fieldsOf(reference) {
  const properties = description.components.schemas[reference.split("/").pop()]?.properties ?? {};
  return Object.fromEntries(Object.entries(properties).map(([name, schema]) => [name, typeOf(schema)]));
}

addEventListener("token", () => askForToken(place, "openapi.json", show));
show();
