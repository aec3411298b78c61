// The API in words, from its own description.

import { h } from "./dom.js";

const response = await fetch("/api/v1/openapi.json", { headers: sessionStorage.getItem("token")
  ? { authorization: `Bearer ${sessionStorage.getItem("token")}` } : {} });
const description = await response.json();
const place = document.getElementById("paths");
if (!response.ok) place.textContent = description.error;
for (const [path, methods] of Object.entries(description.paths ?? {})) {
  for (const [method, about] of Object.entries(methods)) place.append(section(path, method, about));
}

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
