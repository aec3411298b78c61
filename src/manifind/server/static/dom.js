// Elements from names and texts: what comes from the collection is never read as HTML.

const SVG = new Set(["svg", "path", "line", "text", "g", "circle", "rect", "polyline", "polygon"]);

export function h(name, attributes = {}, ...children) {
  const element = SVG.has(name) ? document.createElementNS("http://www.w3.org/2000/svg", name) : document.createElement(name);
  for (const [key, value] of Object.entries(attributes)) {
    if (key.startsWith("on")) element.addEventListener(key.slice(2), value);
    else if (value === true) element.setAttribute(key, "");
    else if (value !== false && value !== null && value !== undefined) element.setAttribute(key, value);
  }
  element.append(...children.flat(Infinity).filter((child) => child !== null && child !== undefined && child !== false));
  return element;
}

/** A number with its noun: 1 item, 2 items, 50,000 items. */
export const count = (n, noun, nouns = `${noun}s`) => `${n.toLocaleString("en")} ${n === 1 ? noun : nouns}`;

export const byId = (id) => document.getElementById(id);

/** What went wrong, in words; again() is offered where trying again may help. */
export function problemBox(problem, again = () => dispatchEvent(new Event("changed"))) {
  const mayHelp = problem.status === 0 || problem.status === 503;
  return h("div", { class: "problem", role: "alert" }, h("strong", {}, problem.message || String(problem)),
    problem.hint ? h("div", {}, problem.hint) : null,
    mayHelp ? h("button", { type: "button", onclick: () => again() }, "Try again") : null);
}
