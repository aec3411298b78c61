// The box in which people say what they look for, in words or by a name, with suggestions while they type.

import { get } from "./api.js";
import { fullName, thumbnail } from "./cards.js";
import { byId, count, h } from "./dom.js";
import { ask } from "./query.js";
import { go, read } from "./state.js";

const WAIT = 150;  // milliseconds without a key after which names are looked up
const MOST = 8;

let facts = null, isAdding = false, isFirst = true;
let options = [], at = -1, timer = 0, request = null;

const box = byId("box"), list = byId("suggestions");

/** Ask for parts of a query; they join the query that stands where people have said that they add to it. */
export function take(parts) {
  const before = isAdding ? read().parts : [];
  stopAdding();
  ask([...before, ...parts]);
}

/** What is said next joins the query that stands. */
export function startAdding() {
  isAdding = true;
  box.value = "";
  label();
  box.focus();
}

function stopAdding() {
  isAdding = false;
  label();
}

/** The box says what the page shows; what somebody is typing stays where the same is only shown anew. */
export function showAsked(state, known, isSame) {
  facts = known;
  label();
  const wasTyped = isFirst && box.value && document.activeElement === box;  // while the page was still loading
  isFirst = false;
  if (wasTyped) typed();
  if (wasTyped || isSame) return;
  stopAdding();
  close();
  const [part] = state.parts;
  box.value = state.parts.length === 1 && part.kind === "text" ? part.value : state.parts.length ? "" : state.name;
}

function label() {
  const words = facts?.understands_words;
  box.labels[0].textContent = words ? "Find items by words, or by name" : "Find items by name";
  if (isAdding) box.placeholder = `Add ${words ? "words or " : ""}a name to the query`;
  else box.placeholder = words ? "Describe what to find, or type a name ( / )" : "Find by name ( / )";
  box.classList.toggle("adding", isAdding);
}

const listNames = (name) => go({ view: "", show: "", parts: [], name });
const askWords = (value) => take([{ sign: 1, kind: "text", value, crop: "" }]);
const askItem = (value) => take([{ sign: 1, kind: "id", value, crop: "" }]);

function submit() {
  const typed = box.value.trim();
  if (at >= 0) choose(options[at]);
  else if (typed && facts?.understands_words) choose({ run: () => askWords(typed) });
  else if (!isAdding) choose({ run: () => listNames(typed) });
}

function choose(option) {
  close();
  option.run();
}

function typed() {
  const text = box.value.trim();
  clearTimeout(timer);
  request?.abort();
  if (!text) return close();
  offer(general(text));
  timer = setTimeout(() => lookUp(text), WAIT);
  return undefined;
}

/** Suggestions that need no answer of the server. */
function general(text) {
  const search = isAdding ? `Add “${text}” to the query` : `Search for “${text}”`;
  const words = facts?.understands_words && { text: search, run: () => askWords(text) };
  const names = !isAdding && { text: `List the items with “${text}” in their name`, run: () => listNames(text) };
  return [words, names].filter(Boolean);
}

async function lookUp(text) {
  request = new AbortController();
  try {
    const found = await get("items", { name: text, limit: MOST }, request.signal);
    const named = found.items.map((item) => ({ text: fullName(item), run: () => askItem(item.id), item }));
    offer([...general(text), ...named]);
    byId("suggested").textContent = `${count(found.total, "name")} found`;
  } catch {
    // Suggestions are a help: what is wrong is said when people search.
  }
}

function offer(found) {
  const chosen = options[at]?.text;
  options = found;
  at = chosen ? found.findIndex((option) => option.text === chosen) : -1;
  list.replaceChildren(...found.map((option, index) => h("li", { role: "option", id: `suggestion-${index}`, onclick: () => choose(option) },
    option.item && facts.pictures ? thumbnail(true, { id: option.item.id }, "") : null, h("bdi", {}, option.text))));
  list.hidden = !found.length;
  box.setAttribute("aria-expanded", String(Boolean(found.length)));
  mark();
}

function mark() {
  [...list.children].forEach((option, index) => option.setAttribute("aria-selected", String(index === at)));
  if (at < 0) box.removeAttribute("aria-activedescendant");
  else box.setAttribute("aria-activedescendant", `suggestion-${at}`);
  list.children[at]?.scrollIntoView({ block: "nearest" });
}

function close() {
  clearTimeout(timer);
  request?.abort();
  at = -1;
  byId("suggested").textContent = "";
  offer([]);
}

function key(event) {
  if (event.key === "ArrowDown" && list.hidden) typed();
  else if (event.key === "ArrowDown" || event.key === "ArrowUp") {
    const step = event.key === "ArrowDown" ? 1 : -1, places = options.length + 1;  // one of them is the box itself
    at = ((at + 1 + step + places) % places) - 1;
    mark();
  } else if (event.key === "Escape" && !list.hidden) close();
  else if (event.key === "Escape" && isAdding) stopAdding();
  else return;
  event.preventDefault();
}

byId("ask").addEventListener("submit", (event) => {
  event.preventDefault();
  submit();
});
box.addEventListener("input", typed);
box.addEventListener("keydown", key);
list.addEventListener("pointerdown", (event) => event.preventDefault());  // the box keeps the focus, and the list stays
box.addEventListener("blur", close);
