// Filters: chips of the clauses that hold, and a panel in which they are chosen from the fields that there are.

import { get } from "./api.js";
import { inWords, joined, understand, write } from "./clauses.js";
import { controlOf } from "./controls.js";
import { count, h, problemBox } from "./dom.js";
import { go, read } from "./state.js";

const FIRST = ["tags", "albums"];
const WAIT = 200;  // milliseconds after a choice until what it leaves is counted

/** The clauses that hold, each with a button that takes it away, and the button that opens the panel. */
export function filterBar(state, facts) {
  const chips = state.where.map((clause, at) => h("li", { class: "clause" }, h("bdi", {}, inWords(clause)),
    h("button", { type: "button", class: "off", id: `no-filter-${at}`, "aria-label": `Remove the filter ${inWords(clause)}`, title: "Remove",
      onclick: () => go({ where: state.where.filter((_, other) => other !== at) }) }, "×")));
  return h("div", { class: "filter-bar" },
    h("button", { type: "button", id: "filter", "aria-haspopup": "dialog", onclick: () => openPanel(facts) }, "Filter"),
    chips.length ? h("ul", { class: "clauses", "aria-label": "Filters" }, chips) : null);
}

function openPanel(facts) {
  const panel = new Panel(read().where, facts.items);
  document.body.append(panel.dialog);
  panel.dialog.showModal();
  panel.load();
}

class Panel {
  controls = [];
  timer = 0;

  constructor(where, nItems) {
    Object.assign(this, { where, nItems });
    this.line = h("input", { type: "text", id: "where", autocomplete: "off", spellcheck: "false", autocapitalize: "off",
      "aria-describedby": "where-help where-problem" });
    this.problem = h("div", { id: "where-problem" });
    this.fields = h("div", { class: "fields-there" }, "looking for the fields…");
    this.button = h("button", { type: "submit", class: "primary" }, "Apply");
    this.dialog = h("dialog", { class: "filters", "aria-labelledby": "filters-title", onclose: () => this.dialog.remove() }, this.form());
  }

  form() {
    const cancel = h("button", { type: "button", onclick: () => this.dialog.close() }, "Cancel");
    const none = h("button", { type: "button", onclick: () => this.leave([]) }, "No filter");
    return h("form", { onsubmit: (event) => this.submit(event), oninput: () => this.countLater() },
      h("h2", { id: "filters-title", tabindex: "-1", autofocus: true }, "Filter"), this.fields,
      h("div", { class: "expert" }, h("label", { for: "where" }, "In the filter language"), this.line,
        h("p", { id: "where-help" }, "For example ", h("code", {}, "year >= 1990 and not place in ('Rome', 'Paris')")), this.problem),
      h("div", { class: "buttons" }, this.button, none, cancel));
  }

  /** The fields come from the collection; clauses that no control can show stay in the line of the filter language. */
  async load() {
    try {
      const { fields } = await get("fields");
      const place = (field) => (FIRST.includes(field.name) ? FIRST.indexOf(field.name) : FIRST.length);
      this.controls = fields.sort((a, b) => place(a) - place(b)).map((field) => controlOf(field, this.nItems)).filter(Boolean);
      const elements = this.controls.map((control) => control.element);
      this.fields.replaceChildren(...(elements.length ? elements : ["There is nothing in which the items differ."]));
    } catch (problem) {
      this.fields.replaceChildren(problemBox(problem));
    }
    const rest = this.where.filter((clause) => !this.isTaken(understand(clause)));
    if (rest.length) this.line.value = joined(rest);
  }

  isTaken(known) {
    return known !== null && this.controls.some((control) => control.name === known.name && control.take(known));
  }

  get chosen() {
    return this.controls.flatMap((control) => control.clauses().map(({ sign, values }) => write(control.name, sign, values)));
  }

  get clauses() {
    const typed = this.line.value.trim();
    return [...this.chosen, ...(typed ? [typed] : [])];
  }

  countLater() {
    clearTimeout(this.timer);
    this.timer = setTimeout(() => this.count(), WAIT);
  }

  /** How many items the choice leaves, said on the button; a line that is being typed is not yet counted. */
  async count() {
    const where = joined(this.clauses);
    const found = await get("items", { where, limit: 1 }).catch(() => null);
    if (where === joined(this.clauses)) this.button.textContent = found ? `Show ${count(found.total, "item")}` : "Apply";
  }

  async submit(event) {
    event.preventDefault();
    try {
      await get("items", { where: this.line.value.trim(), limit: 1 });
      await get("items", { where: joined(this.clauses), limit: 1 });
      this.leave(this.clauses);
    } catch (problem) {
      this.problem.replaceChildren(problemBox(problem));
      this.line.focus();
    }
  }

  leave(where) {
    this.dialog.close();
    go({ where });
  }
}
