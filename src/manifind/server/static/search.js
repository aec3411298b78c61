// The search view: a query, its answers, the same by plain neighbours, and why; all items where nothing is asked.

import { finished, get, send } from "./api.js";
import { card, fullName, movement, thumbnail, withArrows } from "./cards.js";
import { count, h, problemBox, say } from "./dom.js";
import { go } from "./state.js";
import { showWhy } from "./why.js";

const PAGE = 36;

export async function showSearch(main, state, facts) {
  const isAsked = state.id || state.upload || state.text;
  const results = h("div");
  main.replaceChildren(...(isAsked ? [queryBar(state, facts), results] : [browseBar(state, facts), results]));
  try {
    if (!isAsked) await fillGrid(results, (offset) => browse(state, facts, offset));
    else if (state.method === "compare") await fillColumns(results, state, facts);
    else await fillGrid(results, (offset) => answers(state, facts, offset));
  } catch (problem) {
    results.replaceChildren(problemBox(problem));
  }
}

const asked = (state) => (state.id ? { id: state.id } : state.upload ? { upload: state.upload } : { text: state.text });

async function browse(state, facts, offset) {
  const found = await get("items", { offset, limit: PAGE, where: state.where, name: state.name });
  if (!offset) say(count(found.total, "item"));
  const edit = facts.can_edit ? (item) => removeItem(item) : null;
  return {
    cards: found.items.map((item) => card(item, { pictures: facts.pictures, edit })),
    more: offset + PAGE < found.total,
    empty: "No item has that.",
  };
}

async function answers(state, facts, offset) {
  const method = state.method || "gradnet";
  const found = await get("search", { ...asked(state), k: PAGE, offset, method, where: state.where });
  if (!offset) say(`${count(found.results.length, "result")}${found.more ? " and more" : ""}`);
  const why = method === "gradnet" ? (item) => showWhy(asked(state), item, facts) : null;
  return {
    cards: found.results.map((item) => card(item, { pictures: facts.pictures, why })),
    more: found.more,
    empty: "Nothing satisfies the filter.",
  };
}

async function fillGrid(place, load) {
  const grid = withArrows(h("ol", { class: "grid" }));
  const end = h("div", { class: "end" });
  let offset = 0;
  let busy = false;
  const more = async () => {
    if (busy) return;
    busy = true;
    try {
      const found = await load(offset);
      grid.append(...found.cards);
      offset += PAGE;
      if (!found.more) watch.disconnect();
      if (!grid.children.length) end.replaceChildren(h("p", {}, found.empty));
    } catch (problem) {
      watch.disconnect();
      end.replaceChildren(problemBox(problem));
    }
    busy = false;
  };
  const watch = new IntersectionObserver((seen) => seen.some((one) => one.isIntersecting) && more(), { rootMargin: "400px" });
  place.replaceChildren(grid, end);
  await more();
  watch.observe(end);
}

async function fillColumns(place, state, facts) {
  const found = await get("compare", { ...asked(state), k: PAGE, where: state.where });
  const titles = { knn: "Plain neighbours (k-NN)", gradnet: "GRAD-Net" };
  const columns = Object.entries(titles).map(([method, title]) => {
    const why = method === "gradnet" ? (item) => showWhy(asked(state), item, facts) : null;
    const cards = found[method].map((item) => card(item, { pictures: facts.pictures, why, mark: movement(item) }));
    return h("section", { "aria-label": title }, h("h2", {}, title), withArrows(h("ol", { class: "grid" }, cards)));
  });
  const moved = found.gradnet.filter((item) => item.other_rank === null || item.other_rank > PAGE).length;
  say(`${moved} of the first ${found.gradnet.length} ${moved === 1 ? "is" : "are"} not among the first ${count(PAGE, "plain neighbour")}`);
  place.replaceChildren(h("div", { class: "columns" }, columns));
}

function queryBar(state, facts) {
  const label = state.id || (state.upload ? "uploaded picture" : `“${state.text}”`), heading = h("h1", {}, label);
  const hasPicture = facts.pictures && (state.id || state.upload);
  return h("section", { class: "query", "aria-label": "Query" },
    h("div", { class: "asked" },
      hasPicture || state.id ? thumbnail(hasPicture, asked(state), hasPicture ? `The query: ${label}` : label) : null,
      h("div", {}, heading, state.id ? detailsOf(state.id, heading) : null)),
    h("div", { class: "controls" }, methodButtons(state), filterForm(state), uploadControl(facts)));
}

function browseBar(state, facts) {
  const title = state.name ? `Items with “${state.name}” in their name` : facts.items === 1 ? "1 item" : `All ${count(facts.items, "item")}`;
  return h("section", { class: "query", "aria-label": "Items" },
    h("div", { class: "asked" }, h("h1", {}, title)),
    h("div", { class: "controls" }, filterForm(state), uploadControl(facts), addControl(facts)));
}

function detailsOf(id, heading) {
  const place = h("div", { class: "fields" });
  get("item", { id }).then((item) => {
    heading.textContent = fullName(item);
    const shown = Object.entries(item.fields).filter(([name]) => !["sha256", "fingerprint", "modified", "path"].includes(name));
    place.textContent = shown.map(([name, value]) => `${name} ${value}`).join(" · ");
  }, () => {});
  return place;
}

function methodButtons(state) {
  const names = { "": "GRAD-Net", knn: "k-NN", compare: "Side by side" };
  return h("div", { role: "group", "aria-label": "Method" }, Object.entries(names).map(([method, label]) =>
    h("button", { "aria-pressed": String((state.method || "") === method), onclick: () => go({ method }) }, label)));
}

function filterForm(state) {
  const input = h("input", { type: "text", id: "where", value: state.where, placeholder: "Filter: year >= 1990 and place = 'Rome'",
    autocomplete: "off", spellcheck: "false" });
  return h("form", { onsubmit: (event) => { event.preventDefault(); go({ where: input.value.trim() }); } },
    h("label", { class: "hidden", for: "where" }, "Filter"), input);
}

function uploadControl(facts) {
  if (!facts.can_upload) return null;
  const file = h("input", { type: "file", accept: "image/*,.heic", id: "upload", class: "hidden",
    onchange: () => file.files[0] && searchPicture(file.files[0]) });
  return h("div", { class: "drop" }, h("label", { for: "upload" }, "Drop, paste or "),
    h("button", { onclick: () => file.click() }, "choose a picture"), file);
}

function addControl(facts) {
  if (!facts.can_edit || !facts.pictures) return null;
  const file = h("input", { type: "file", accept: "image/*,.heic", multiple: true, id: "add", class: "hidden",
    onchange: () => addPictures([...file.files]) });
  return h("div", {}, h("label", { for: "add", class: "hidden" }, "Pictures to add"),
    h("button", { onclick: () => file.click() }, "Add pictures"), file);
}

export async function searchPicture(picture) {
  say("describing the picture…");
  try {
    const found = await send("POST", "search/picture", { picture, parameters: { k: 1 } });
    go({ view: "", id: "", text: "", name: "", upload: found.upload });
  } catch (problem) {
    say(`${problem.message}. ${problem.hint}`);
  }
}

async function addPictures(files) {
  try {
    for (const [at, picture] of files.entries()) {
      say(`adding ${at + 1} of ${files.length}…`);
      await finished(await send("POST", "pictures", { picture }));
    }
    dispatchEvent(new Event("changed"));
    say(`${files.length} added`);
  } catch (problem) {
    say(`${problem.message}. ${problem.hint}`);
  }
}

async function removeItem(item) {
  if (!confirm(`Remove ${fullName(item)} from the collection? Its file stays where it is.`)) return;
  try {
    await finished(await send("DELETE", "items", { parameters: { id: item.id } }));
    dispatchEvent(new Event("changed"));
    say(`${fullName(item)} removed`);
  } catch (problem) {
    say(`${problem.message}. ${problem.hint}`);
  }
}
