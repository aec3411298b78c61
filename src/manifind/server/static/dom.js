// Elements from names and texts: what comes from the collection is never read as HTML.

export function h(name, attributes = {}, ...children) {
  const element = name === "svg" || svgNames.has(name)
    ? document.createElementNS("http://www.w3.org/2000/svg", name)
    : document.createElement(name);
  for (const [key, value] of Object.entries(attributes)) {
    if (key.startsWith("on")) element.addEventListener(key.slice(2), value);
    else if (value === true) element.setAttribute(key, "");
    else if (value !== false && value !== null && value !== undefined) element.setAttribute(key, value);
  }
  element.append(...children.flat(Infinity).filter((child) => child !== null && child !== undefined && child !== false));
  return element;
}

const svgNames = new Set(["path", "line", "text", "g"]);

/** A number with its noun: 1 item, 2 items. */
export const count = (n, noun) => `${n} ${noun}${n === 1 ? "" : "s"}`;

export const byId = (id) => document.getElementById(id);

export function say(text) {
  byId("status").textContent = text;
}

export function problemBox(problem) {
  const text = problem.message || String(problem);
  return h("div", { class: "problem", role: "alert" }, h("strong", {}, text), problem.hint ? h("div", {}, problem.hint) : null);
}
